#!/bin/sh
# Boots the systemd of this machine in namespaces of its own, on a copy of / that lives in memory:
#   systemd-root.sh DIRECTORY, called by package-root.ts inside unshare --mount --pid --net --uts --ipc --cgroup.
# The files of DIRECTORY/packages are in /mnt there.
set -e
directory=$1
root=$directory/root

mount --make-rprivate /
mkdir -p "$directory/memory"
mount -t tmpfs tmpfs "$directory/memory"
mkdir -p "$directory/memory/upper" "$directory/memory/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$directory/memory/upper,workdir=$directory/memory/work" "$root"

mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mount --bind "$directory/packages" "$root/mnt"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
touch "$directory/console" "$root/dev/console"
mount --bind "$directory/console" "$root/dev/console"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"

# As on this machine: one hierarchy, or that of systemd beside those of version 1.
if [ -e /sys/fs/cgroup/cgroup.procs ]; then
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
	mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
	mkdir "$root/sys/fs/cgroup/systemd" "$root/sys/fs/cgroup/unified"
	mount -t cgroup -o none,name=systemd,xattr cgroup "$root/sys/fs/cgroup/systemd"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
fi

# Nothing of this machine's own services, devices and kernel settings.
: > "$root/etc/fstab"
for unit in systemd-sysctl.service systemd-udevd.service systemd-udev-trigger.service systemd-modules-load.service \
	systemd-timesyncd.service console-getty.service timers.target; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
rm -f "$root/usr/sbin/policy-rc.d"
# The index of all manual pages takes seconds.
rm -f "$root/var/lib/man-db/auto-update"
ip link set lo up

# systemd makes mount namespaces for services, for which its root must be that of the namespace.
mkdir "$root/former"
cd "$root"
pivot_root . former
umount -l /former
exec env -i container=lab PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	/lib/systemd/systemd --system --unit=basic.target --log-target=journal --show-status=0
