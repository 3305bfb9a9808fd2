//! The data path of a concentrator in XDP, on stock kernels and drivers.

use crate::steer::rxlane;
use crate::{newer, older, oldest};
use rxlane_lab::Guest;
use serde_json::Value;

/// Brings it up on two adapters, and gives its exit status and what it says.
fn serve(guest: &Guest, rxlane: &str) -> (i32, String) {
    guest
        .sh("modprobe tun; ethtool -K wan rxvlan off; ethtool -K lan rxvlan off; ip link set lan up; \
             sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.wan.rp_filter=0")
        .expect("the adapters");
    let words = "pppoe serve lan --datapath xdp --uplink wan --anybody --local 10.64.0.1 --pool 10.64.0.2-10.64.0.9 --daemon";
    let output =
        guest.run(&[rxlane].into_iter().chain(words.split(' ')).collect::<Vec<_>>()).expect("it runs");
    (output.status, output.text() + &output.errors())
}

#[test]
#[ignore = "make nightly"]
fn the_programs_run_on_stock_kernels() {
    let Some(rxlane) = rxlane() else { return };
    for guest in [newer, older] {
        let Some(guest) = guest() else { return };
        let (status, said) = serve(&guest, &rxlane);
        assert_eq!(status, 0, "{said}");
        let status = guest.sh(&format!("{rxlane} pppoe status --json")).expect("a status");
        let status: Value = serde_json::from_str(&status).expect("JSON");
        println!("{status:#}");
        assert!(status.to_string().contains("\"mode\":\"native\""), "{status}");
        guest.sh(&format!("{rxlane} pppoe disconnect --concentrator lan")).expect("its end");
    }
}

#[test]
#[ignore = "make nightly"]
fn an_older_kernel_is_refused_with_the_one_that_it_takes() {
    let (Some(rxlane), Some(guest)) = (rxlane(), oldest()) else { return };
    let fastpath = guest.run(&[&rxlane, "fastpath", "up", "wan", "lan"]).expect("it runs");
    for (status, said) in [serve(&guest, &rxlane), (fastpath.status, fastpath.errors())] {
        assert_eq!(status, 3, "{said}");
        assert!(said.contains("forwarding in XDP takes Linux 5.12 or newer"), "{said}");
    }
}
