# What the host is, and what earlier runs left on it.
echo "boot=$(cat /proc/sys/kernel/random/boot_id)"
echo "current=$(readlink -f /run/current-system)"
command -v nix-store > /dev/null && echo "nix=yes"
if [ -d /run/systemd/system ]; then
  echo "systemd=yes"
  systemctl show 'provisor-switch-*' -p Id -p LoadState -p ActiveState -p Result -p ExecMainCode -p ExecMainStatus |
    sed 's/^/unit:/'
fi
exit 0
