#!/bin/busybox sh
# The first program of a guest: mounts the read-only image under a writable layer, makes the agent's unit, and hands
# over to systemd. On an error it ends, the kernel panics, and QEMU ends with the reason on the console.
# Every command is an applet of busybox, which its shell finds through /proc.

fail() {
    echo "provisor-init: $*" >/dev/console
    exit 1
}

# The block device with this serial number, whatever slot it is in.
disk() {
    for serial in /sys/block/vd*/serial; do
        if [ "$(cat "$serial" 2>/dev/null)" = "$1" ]; then
            serial=${serial#/sys/block/}
            echo "/dev/${serial%/serial}"
        fi
    done
}

/bin/busybox mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

while read -r module; do
    insmod "/modules/$module" || fail "cannot load $module"
done </modules/order

root=$(disk provisor-root)
[ -n "$root" ] || fail "no disk with the serial provisor-root"
mount -t squashfs -o ro "$root" /image || fail "cannot mount the image"

layer=$(disk provisor-disk)
if [ -n "$layer" ]; then
    mount -t ext4 -o noatime "$layer" /layer || fail "cannot mount the writable disk"
else
    echo "provisor-init: no disk with the serial provisor-disk, so nothing survives a reboot" >/dev/console
    mount -t tmpfs -o mode=0755 layer /layer || fail "cannot mount a layer in memory"
fi
mkdir -p /layer/upper /layer/work
mount -t overlay -o noatime,lowerdir=/image,upperdir=/layer/upper,workdir=/layer/work root /root \
    || fail "cannot mount the root"

mount -t tmpfs -o mode=0755,nosuid,nodev run /root/run
mkdir -p /root/run/provisor /root/run/systemd/system/sysinit.target.wants
cp /agent /root/run/provisor/agent
cp /provisor-agent.service /root/run/systemd/system/
ln -s ../provisor-agent.service /root/run/systemd/system/sysinit.target.wants/

# The name by which the agent finds its port: udev would make it, later.
mkdir -p /dev/virtio-ports
for port in /sys/class/virtio-ports/*/name; do
    [ -e "$port" ] || continue
    device=${port%/name}
    ln -sf "../${device##*/}" "/dev/virtio-ports/$(cat "$port")"
done

# The journal goes to the host line by line, for as long as journald lives: it needs neither the agent nor a network.
if [ -c /dev/hvc0 ]; then
    mkdir -p /root/run/systemd/journald.conf.d
    printf '[Journal]\nForwardToConsole=yes\nTTYPath=/dev/hvc0\nMaxLevelConsole=debug\n' \
        >/root/run/systemd/journald.conf.d/20-provisor.conf
fi

mount --move /dev /root/dev
mount --move /sys /root/sys
mount --move /proc /root/proc
exec /bin/busybox switch_root /root /sbin/init
