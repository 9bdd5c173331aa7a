# Waits until the activation has ended, and says all that is known. Arguments: unit system run.
echo "boot=$(cat /proc/sys/kernel/random/boot_id)"
if [ -d /run/systemd/system ]; then
  while :; do
    case $(systemctl show -p ActiveState --value "$1") in
      activating | deactivating | reloading) sleep 0.5 ;;
      *) break ;;
    esac
  done
  systemctl show "$1" -p Id -p LoadState -p ActiveState -p Result -p ExecMainCode -p ExecMainStatus | sed 's/^/unit:/'
  if systemctl --quiet is-failed "$1"; then
    systemctl list-units --failed --plain --no-legend --no-pager | sed 's/ .*//; s/^/failed=/'
    journalctl --unit="$1" --lines=20 --output=cat --no-pager 2> /dev/null | sed 's/^/log=/'
  fi
fi
if [ -f /var/lib/provisor/activations ]; then
  sed -n "s|^$3 $2 |record=|p" /var/lib/provisor/activations | tail -n 1
fi
echo "current=$(readlink -f /run/current-system)"
