//! A kernel that renames no interface that is up, as all before Linux 6.2: a takeover sets its interface down for a moment.

use super::concentrator::{Concentrator, FIRST, GATEWAY};
use super::provider::USER;
use super::{Home, guest_of, ping, ping_from};
use crate::pool::Pool;
use rxlane_lab::Series;

static GUESTS: Pool = Pool::of(1);

#[test]
#[ignore = "make nightly"]
fn a_takeover_keeps_name_addresses_and_routes() {
    const WORDS: &str = "--prefix 2001:db8:100::/48 --vlan any --echo-interval 1 --echo-failures 15";
    let Some(guest) = guest_of(&GUESTS, Series::V5_10) else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    guest.sh("ip link add up0 type veth peer name far0 && ip link set up0 up").expect("an interface");
    guest.sh("ip link set up0 name up1").expect_err("it is up");
    guest.sh("ip link del up0").expect("under its name");
    let mut isp = Concentrator::serve(&guest, &rxlane, WORDS);
    let home = Home::connect(&guest, &rxlane, "--echo-interval 1 --echo-failures 15");
    home.await_said(": open");
    let first = isp.session(USER);
    for _ in 0..2 {
        isp.hand_over(WORDS);
        let session = isp.session(USER);
        assert_eq!((&session["id"], &session["session_id"]), (&first["id"], &first["session_id"]));
        assert_eq!(isp.status()["interface"], "pppoe0", "{}", isp.said());
        assert!(!isp.said().contains("note: "), "{}", isp.said());
        let state = guest
            .sh("ip -n isp -br link; ip -n isp addr show dev pppoe0; ip -n isp route; ip -n isp -6 route")
            .expect("the state");
        println!("{state}");
        assert!(!state.contains("rxlane-"), "{state}");
        for line in [
            "inet 198.51.100.1/32 ",
            "inet6 fe80::1/64 ",
            // The network of the pool, as a whole.
            "198.51.100.8/29 dev pppoe0 ",
            "2001:db8:100::/48 dev pppoe0 ",
        ] {
            assert_eq!(state.matches(line).count(), 1, "{line}: {state}");
        }
        ping(&guest, 1464, GATEWAY);
        ping_from(&guest, "isp", 1464, FIRST);
        ping(&guest, 1444, "fe80::1%ppp0");
    }
    assert!(!home.said().contains("closed"), "{}", home.said());
    assert_eq!(home.end(), Some(0));
    isp.await_no_session();
    isp.end();
}
