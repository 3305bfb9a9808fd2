//! `rxlane steer` on a kernel that lacks what newer ones have: it steers with the programs for such kernels, and what is
//! not to be had is refused with a sentence.

use crate::oldest;
use crate::steer::{assert_nothing_left, rxlane, spreads, status, steer, steered};
use rxlane_lab::Output;

const UP: &str = "up wan --cpus 0-3 --seconds 0 --classes pppoe";

/// One sentence on standard error, as a refusal has it.
fn refusal(output: &Output, status: i32) -> String {
    let text = output.errors();
    println!("exit {}: {text}", output.status);
    assert_eq!(output.status, status, "{}{text}", output.text());
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
#[ignore = "make nightly"]
fn the_programs_for_older_kernels_steer() {
    let Some(guest) = oldest() else { return };
    spreads(&guest);
}

#[test]
#[ignore = "make nightly"]
fn an_older_kernel_says_what_it_cannot_do() {
    let (Some(rxlane), Some(guest)) = (rxlane(), oldest()) else { return };
    let said = refusal(&steer(&guest, &rxlane, &format!("{UP} --rebalance")), 3);
    assert!(said.contains("cannot rebalance") && said.contains("Linux 5.19"), "{said}");
    assert_nothing_left(&guest, &rxlane, "wan");
    let done = steered(&guest, &rxlane, UP).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(done.contains("a bucket keeps the CPU it has"), "{done}");
    let status = status(&guest, &rxlane, "wan");
    assert!(status["remarks"].to_string().contains("a bucket keeps the CPU it has"), "{status}");
    steered(&guest, &rxlane, "down wan");
    assert_nothing_left(&guest, &rxlane, "wan");
}

#[test]
#[ignore = "make nightly"]
fn a_limit_of_locked_memory_that_cannot_be_raised_is_named() {
    let (Some(rxlane), Some(guest)) = (rxlane(), oldest()) else { return };
    let limited = format!("prlimit --memlock=65536:65536 {rxlane} steer {UP}");
    let held = format!("setpriv --bounding-set -sys_resource --inh-caps -sys_resource {limited}");
    let said = refusal(&guest.run(&held.split(' ').collect::<Vec<_>>()).expect("it runs"), 3);
    assert!(said.contains("65536 bytes") && said.contains("ulimit -l unlimited"), "{said}");
    assert_nothing_left(&guest, &rxlane, "wan");
    // Whoever may raise it does.
    let done = guest.run(&limited.split(' ').collect::<Vec<_>>()).expect("it runs");
    assert_eq!(done.status, 0, "{}", done.errors());
    steered(&guest, &rxlane, "down wan");
    assert_nothing_left(&guest, &rxlane, "wan");
}

#[test]
#[ignore = "make nightly"]
fn steering_does_not_need_the_types_of_the_kernel() {
    let (Some(rxlane), Some(guest)) = (rxlane(), oldest()) else { return };
    guest.sh("mount -t tmpfs none /sys/kernel/btf && [ ! -e /sys/kernel/btf/vmlinux ]").expect("no BTF");
    let done = steer(&guest, &rxlane, UP);
    let down = steer(&guest, &rxlane, "down wan");
    guest.sh("umount /sys/kernel/btf").expect("BTF again");
    assert_eq!((done.status, down.status), (0, 0), "{}{}", done.errors(), down.errors());
    assert_nothing_left(&guest, &rxlane, "wan");
}

#[test]
#[ignore = "make nightly"]
fn an_mtu_beyond_what_the_driver_takes_is_refused() {
    let (Some(rxlane), Some(guest)) = (rxlane(), oldest()) else { return };
    guest.sh("ip link set wan mtu 9000").expect("an MTU");
    let refused = steer(&guest, &rxlane, UP);
    guest.sh("ip link set wan mtu 1500").expect("an MTU");
    let said = refusal(&refused, 1);
    assert!(said.contains("3046") && said.contains("9000"), "{said}");
    assert_nothing_left(&guest, &rxlane, "wan");
}
