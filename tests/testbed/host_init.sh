#!/bin/bash
# The first process of one test host, started in namespaces of its own: makes the host's private
# mounts, says "ready" on descriptor 3, waits for a line on stdin (the cable is plugged in), then
# keeps sshd running and reaps orphans until it is killed, which ends the whole host.
#
#   host_init.sh FOLDER NAME [FOLDER TO KEEP VISIBLE]...
set -eu
folder=$1
name=$2
own=$1/$2
shift 2

hostname "$name"

# What must stay visible under a private mount waits in /run/keep meanwhile.
mount -t tmpfs hvdrun-testbed /run -o mode=755
mkdir -p /run/sshd /run/lock /run/over/up/.cache /run/over/work
keep() { mkdir -p "/run/keep/$1" && mount --rbind "$2" "/run/keep/$1"; }
give_back() { mkdir -p "$2" && mount --move "/run/keep/$1" "$2"; }
index=0
for path in "$@"; do
  keep $index "$path"
  index=$((index + 1))
done
cgroup=
if mountpoint -q /sys/fs/cgroup; then
  keep cgroup /sys/fs/cgroup
  cgroup=yes
fi

for path in /tmp /var/tmp /dev/shm; do mount -t tmpfs hvdrun-testbed $path -o mode=1777; done
# A private layer over /root, in which what would change ssh sessions is not there (0:0 = whiteout).
for path in .bashrc .profile .bash_profile .ssh .cache/hvdrun; do
  mknod "/run/over/up/$path" c 0 0
done
chmod 700 /run/over/up /run/over/up/.cache
mount -t overlay hvdrun-testbed -o lowerdir=/root,upperdir=/run/over/up,workdir=/run/over/work /root
# sysfs shows the network devices of the namespace that mounted it.
mount -t sysfs hvdrun-testbed /sys && [ -n "$cgroup" ] && give_back cgroup /sys/fs/cgroup
index=0
for path in "$@"; do
  give_back $index "$path"
  index=$((index + 1))
done
mount --bind "$own/hosts" /etc/hosts
mount --bind "$folder/ssh_config" /etc/ssh/ssh_config
ip link set lo up

echo ready >&3
read -r _
ip -batch "$own/network"
exec 3>&- 0</dev/null
set +e

if [ "$name" = launcher ]; then
  echo up >"$own/state"
  while :; do sleep 3600; done
fi
while :; do
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HVDRUN_TESTBED="$folder" /usr/sbin/sshd -D -e -f "$own/sshd_config" >>"$own/sshd.log" 2>&1
  sleep 0.05
done
