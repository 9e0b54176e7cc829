#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of new mount, PID, network, UTS, IPC and control group namespaces: a file system of its own over the
# machine's, then systemd, which starts nothing but its journal.
#   boot.sh DIR SITE SOURCE    DIR: an empty directory; SITE, SOURCE: seen as /opt/testctl-agent/site and .../src
set -eu
cd /
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" testctl-boot "$1/root"
root=$1/root
mkdir -p "$root/opt/testctl-agent/site" "$root/opt/testctl-agent/src"
mount --bind "$2" "$root/opt/testctl-agent/site"
mount --bind "$3" "$root/opt/testctl-agent/src"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t bpf bpf "$root/sys/fs/bpf"
mount -t tracefs tracefs "$root/sys/kernel/tracing"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/full" c 1 7
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/etc/systemd/system"
for unit in "$root"/usr/lib/systemd/system/sysinit.target.wants/*; do
	ln -s /dev/null "$root/etc/systemd/system/$(basename "$unit")"
done
rm -f "$root/etc/systemd/system/systemd-journald.service"
printf '[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n' >"$root/etc/systemd/system/boot.target"
cd "$root"
pivot_root . mnt
umount -l /mnt
exec env -i container=testctl PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
	/lib/systemd/systemd --unit=boot.target --log-target=journal
