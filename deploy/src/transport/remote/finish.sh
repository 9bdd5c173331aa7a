# Units must not go on with older grants, and activations whose results were read are removed. Arguments: those
# activations' units as one word list, then pairs of a unit and a file it uses. A unit is restarted when it became
# active before its file was written, to the second.
activations=$1
shift
[ -d /run/systemd/system ] || exit 0
restarted=' '
while [ $# -ge 2 ]; do
  case $restarted in *" $1 "*) shift 2; continue ;; esac
  entered=$(systemctl show -p ActiveEnterTimestamp --timestamp=unix --value "$1")
  if [ "$(systemctl show -p ActiveState --value "$1")" = active ] &&
    [ "${entered#@}" -le "$(stat -c %Y "$2")" ]; then
    restarted="$restarted$1 "
    if systemctl try-restart "$1" 1>&2; then echo "restarted=$1"; else echo "failed=$1"; fi
  fi
  shift 2
done
for activation in $activations; do
  systemctl stop "$activation" 2> /dev/null
  systemctl reset-failed "$activation" 2> /dev/null
done
exit 0
