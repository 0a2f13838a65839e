#!/bin/bash
# The first process of a test host with systemd, started in namespaces of its own: lays a private
# layer over the machine's root file system, says "ready" on descriptor 3, waits for a line on stdin
# (the cable is plugged in), then boots the layer, again after each reboot. A host that is off waits
# for a line in its fifo "power". Ends when it is killed, which ends the whole host.
#
#   systemd_init.sh FOLDER NAME CGROUP unified|hybrid [FOLDER TO KEEP VISIBLE]...
set -eu
folder=$1
name=$2
own=$1/$2
cgroup=$3
# Without it the host's trees are as the machine's.
[ "$4" = hybrid ] || export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
shift 4

mkdir -p "$cgroup"
echo $$ >"$cgroup/cgroup.procs" # systemd-nspawn makes the host's groups inside its own
hostname "$name"

# What the host shall see at its own path; /run goes below.
mkdir "$own/disk"
mount -t tmpfs hvdrun-testbed "$own/disk"
binds=()
for path in "$@"; do
  kept=$own/disk/keep/${#binds[@]}
  mkdir -p "$kept"
  mount --bind "$path" "$kept"
  binds+=("--bind=$kept:$path")
done
mount -t tmpfs hvdrun-testbed /run -o mode=755 # systemd-nspawn keeps its own things there

mkdir "$own"/disk/{upper,work,root}
root=$own/disk/root
mount -t overlay hvdrun-testbed -o "lowerdir=/,upperdir=$own/disk/upper,workdir=$own/disk/work" "$root"

# Of the machine's services and generators the host has none but sshd and what systemd itself needs.
cd "$root/etc/systemd"
rm -rf system user system-generators "$root/usr/sbin/policy-rc.d"
mkdir -p system/multi-user.target.wants user system-generators
ln -s /lib/systemd/system/ssh.service system/multi-user.target.wants/
ln -s /lib/systemd/system/multi-user.target system/default.target
for path in "$root"/lib/systemd/system-generators/*; do
  ln -s /dev/null "system-generators/${path##*/}"
done
for unit in ldconfig.service systemd-hwdb-update.service systemd-journal-catalog-update.service \
  systemd-sysusers.service systemd-update-done.service systemd-update-utmp.service \
  systemd-update-utmp-runlevel.service systemd-tmpfiles-clean.timer getty.target; do
  ln -s /dev/null "system/$unit"
done
# Nothing sweeps folders at boot: some are the testbed's, shared with other hosts.
mkdir -p ../tmpfiles.d
for path in tmp home x11; do ln -sf /dev/null "../tmpfiles.d/$path.conf"; done

echo "$name" >"$root/etc/hostname"
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
for path in .bashrc .profile .bash_profile .ssh .cache/hvdrun; do rm -rf "$root/root/$path"; done
for path in /etc/hosts /etc/ssh/sshd_config; do binds+=("--bind-ro=$own/${path##*/}:$path"); done
binds+=("--bind-ro=$folder/ssh_config:/etc/ssh/ssh_config")
touch "$root/etc/ssh/testbed_keys"
binds+=("--bind-ro=$folder/key.pub:/etc/ssh/testbed_keys")
mkfifo "$own/power"
cd /
ip link set lo up

echo ready >&3
read -r _
ip -batch "$own/network"
exec 3>&- 0</dev/null
set +e

REBOOT=133 # what systemd-nspawn --keep-unit ends with then
while :; do
  systemd-nspawn -D "$root" --boot \
    --network-namespace-path=/proc/self/ns/net --register=no --keep-unit --machine="$name" \
    --settings=no --resolv-conf=off --timezone=off --link-journal=no --console=read-only \
    --setenv=HVDRUN_TESTBED="$folder" --tmpfs=/var/tmp:mode=1777 "${binds[@]}" >>"$own/boot.log" 2>&1
  code=$?
  [ $code = $REBOOT ] && continue
  echo $code >"$own/off"
  read -r _ <"$own/power"
  rm "$own/off"
done
