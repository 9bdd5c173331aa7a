# Writes secret files. Arguments: size owner group mode path, again and again; stdin: the contents, one after another.
# All of them arrive whole under a temporary name before the first takes its place.
set -eu

each() {
  action=$1
  shift
  while [ $# -ge 5 ]; do
    "$action" "$1" "$2" "$3" "$4" "$5"
    shift 5
  done
}

receive() {
  (umask 066 && mkdir -p "$(dirname "$5")")
  rm -f "$5.provisor-new"
  (umask 077 && head -c "$1" > "$5.provisor-new")
  if [ "$(stat -c %s "$5.provisor-new")" != "$1" ]; then
    echo "the contents of $5 did not arrive whole" >&2
    exit 1
  fi
}

own() {
  if id -u "$2" > /dev/null 2>&1 && chown "$2:$3" "$1" 2> /dev/null; then
    chmod "$4" "$1"
  else
    # The activation makes the owner; until then the file is root's alone.
    chmod 0600 "$1"
    echo "pending=$5"
  fi
}

place() {
  new=$5.provisor-new
  if [ -f "$5" ] && [ "$(sha256sum < "$5")" = "$(sha256sum < "$new")" ]; then
    rm -f "$new"
    own "$5" "$2" "$3" "$4" "$5"
  else
    own "$new" "$2" "$3" "$4" "$5"
    sync "$new"
    mv -f "$new" "$5"
    sync "$(dirname "$5")"
    echo "changed=$5"
  fi
}

each receive "$@"
each place "$@"
