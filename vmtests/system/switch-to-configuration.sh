#!/bin/sh
# fake_switch: what stands in for NixOS's switch-to-configuration on a Debian guest. Same actions, same exit codes:
# 0 done, 1 the check failed, 2 activation failed, 4 activated but units failed, 11 another switch holds the lock.
# What it manages: unit files, files below /etc, /run/current-system. The services themselves are the real ones.
set -u
system=@out@
units=/etc/systemd/system
managed=/var/lib/fake-switch

check() {
  if [ -e "$system/etc/nginx/nginx.conf" ]; then
    nginx -q -t -c "$system/etc/nginx/nginx.conf" || return 1
  fi
}

# Copies the files of $1 below $2, removes those listed in $3 that are no more; prints what changed.
sync_files() {
  touch "$managed/$3"
  (cd "$1" && find . -type f | sed 's|^\./||' | sort) > "$managed/$3.new"
  while read -r path; do
    if ! cmp -s "$1/$path" "$2/$path"; then
      mkdir -p "$(dirname "$2/$path")"
      cp "$1/$path" "$2/$path.new" && mv "$2/$path.new" "$2/$path" || return 2
      echo "$path"
    fi
  done < "$managed/$3.new"
  comm -23 "$managed/$3" "$managed/$3.new" | while read -r path; do
    [ "$3" = units ] && systemctl disable --now -q "$path" >&2
    rm -f "$2/$path"
    echo "$path"
  done
  mv "$managed/$3.new" "$managed/$3"
}

switch() {
  mkdir -p "$managed" /run/nixos
  exec 9> /run/nixos/switch-to-configuration.lock
  flock -n 9 || { echo "Could not acquire lock" >&2; return 11; }
  changed_etc=$(sync_files "$system/etc" /etc etc) || return 2
  changed_units=$(sync_files "$system/units" "$units" units) || return 2
  if [ -n "$changed_units" ]; then
    systemctl daemon-reload || return 2
  fi
  failed=
  for unit in $(cat "$managed/units"); do
    if grep -q '^WantedBy=multi-user.target' "$units/$unit"; then
      mkdir -p "$units/multi-user.target.wants"
      ln -sfn "../$unit" "$units/multi-user.target.wants/$unit"
    fi
    action=start
    case " $(echo $changed_units) " in *" $unit "*) action=restart ;; esac
    case "$unit $changed_etc" in
      "nginx.service "*nginx/* | "postgresql.service "*postgresql/*) action=restart ;;
    esac
    systemctl "$action" "$unit" < /dev/null 9>&- || failed="$failed $unit"
  done
  ln -sfn "$system" /run/current-system.new && mv -T /run/current-system.new /run/current-system || return 2
  if [ -n "$failed" ]; then
    echo "warning: the following units failed:$failed" >&2
    return 4
  fi
}

case "${1-}" in
  check) check ;;
  boot) : ;;
  switch | test) switch ;;
  *) echo "usage: switch-to-configuration check|switch|boot|test" >&2; exit 1 ;;
esac
