#!/bin/busybox sh
# shellcheck shell=dash disable=SC2043
# What a guest's kernel runs first: the machine's files read-only over 9p, below a layer of the guest's own.
b=/bin/busybox
fail() {
	echo "lab: $*" >/dev/console
	$b poweroff -f
}
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
for module in __MODULES__; do
	$b insmod "/modules/$module.ko" || fail "module $module"
done
for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
	# One CPU has no others.
	[ ! -e "$cpu" ] || echo 1 >"$cpu" || fail "$cpu"
done
for share in host tools kernel; do
	$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro $share /$share || fail "no share $share"
done
$b mount -t tmpfs tmpfs /over
$b mkdir /over/upper /over/work
$b mount -t overlay -o lowerdir=/tools:/kernel:/host,upperdir=/over/upper,workdir=/over/work overlay /new || fail "no overlay"
$b umount /dev
$b mount -t proc proc /new/proc
$b mount -t sysfs sysfs /new/sys
$b mount -t devtmpfs devtmpfs /new/dev
$b mkdir -p /new/dev/pts /new/dev/shm
$b mount -t devpts -o ptmxmode=666 devpts /new/dev/pts
$b mount -t tmpfs tmpfs /new/dev/shm
$b mount -t tmpfs tmpfs /new/run
$b mkdir -p /new/run/netns /new/run/lock
$b ip link set lo up
$b umount /sys
$b umount /proc
# shellcheck disable=SC2194
case __FIRST__ in
systemd)
	# A target of its own: of the machine's units only those run that somebody starts, and what those want. Left out is
	# what walks through the machine's files (minutes over 9p) or talks to the world. udev hears of devices that come, and is
	# not triggered for all that are there: half a minute of CPU for nothing.
	units=/new/run/systemd/system
	$b mkdir -p $units
	for unit in systemd-tmpfiles-setup systemd-tmpfiles-setup-dev systemd-timesyncd systemd-update-utmp systemd-sysusers; do
		$b ln -s /dev/null $units/$unit.service
	done
	$b cat >$units/lab.target <<-END
		[Unit]
		Requires=lab-agent.service
		Wants=systemd-udevd.service
	END
	$b cat >$units/lab-agent.service <<-END
		[Unit]
		DefaultDependencies=no
		[Service]
		ExecStart="__AGENT__" agent
		ExecStopPost=/usr/bin/busybox poweroff -f
	END
	# The machine may be a container; its guest is none.
	$b rm -f /new/.dockerenv
	exec $b switch_root /new /lib/systemd/systemd --unit=lab.target
	;;
*)
	# shellcheck disable=SC2016
	exec $b switch_root /new /usr/bin/busybox sh -c '"$0" agent; busybox poweroff -f' "__AGENT__"
	;;
esac
