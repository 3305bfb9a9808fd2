//! Frames of a connection that is fast which the program leaves to the kernel, and what the kernel does with them.

use super::router::{FAR, PORT, Router, SERVER, at};
use super::sniffer::{Sniffer, TCP, UDP};
use super::traffic::{Crafted, Datagrams};
use crate::stream::Stream;
use testkit::{Missing, require, wait_until};

#[test]
fn what_is_unusual_in_a_known_connection_is_the_kernels() {
    let Some(router) = Router::routed() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    let usual = Crafted::from_client(&router, UDP, datagrams.client(), at(SERVER, PORT));
    let mut line = Sniffer::on(&router.client, FAR);
    let mut outside = Sniffer::on(&router.server, FAR);
    let before = router.fast();
    line.send(&usual.frame());
    wait_until("the usual one is fast", || router.fast() == before + 1);
    let damaged = |place: usize| {
        let mut frame = usual.frame();
        frame[place] ^= 0x55;
        frame
    };
    let tagged = {
        let frame = usual.frame();
        [&frame[..12], &[0x81, 0, 0, 35], &frame[12..]].concat()
    };
    let tcp = |tcp_flags| Crafted { protocol: TCP, tcp_flags, ..usual.clone() }.frame();
    outside.frames();
    let cases = [
        ("fragment", "fragment", Crafted { fragment: 0x2000, ..usual.clone() }.frame()),
        ("last fragment", "fragment", Crafted { fragment: 0x0040, ..usual.clone() }.frame()),
        ("options", "ip-options", Crafted { options: vec![1; 4], ..usual.clone() }.frame()),
        ("TTL 1", "ttl", Crafted { ttl: 1, ..usual.clone() }.frame()),
        ("another MAC address", "not-addressed", Crafted { to_mac: [2; 6], ..usual.clone() }.frame()),
        ("another protocol", "other-protocol", Crafted { protocol: 132, ..usual.clone() }.frame()),
        ("sum of the header", "malformed", damaged(24)),
        ("payload", "checksum", damaged(60)),
        ("length of UDP", "malformed", damaged(39)),
        ("a tag", "no-entry", tagged),
        ("SYN", "tcp-flags", tcp(0x02)),
        ("RST", "tcp-flags", tcp(0x14)),
        ("FIN", "tcp-flags", tcp(0x11)),
        ("no ACK", "tcp-flags", tcp(0x00)),
    ];
    for (case, reason, frame) in cases {
        let (fast, slow) = (router.fast(), router.slow(reason));
        line.send(&frame);
        wait_until(format!("{case} is passed"), || router.slow(reason) > slow);
        assert_eq!(router.fast(), fast, "{case}");
    }
    // With the options on it still arrives, and the end of its TTL is reported.
    let arrived = || outside.frames().iter().any(|frame| frame.get(14) == Some(&0x46));
    wait_until("options arrive", arrived);
    let is_exceeded = |frame: &Vec<u8>| frame.get(23) == Some(&1) && frame.get(34) == Some(&11);
    wait_until("ICMP reports the TTL", || line.frames().iter().any(is_exceeded));
    // It is fast all the while.
    router.becomes_fast(&mut datagrams);
    up.interrupted();
}

#[test]
fn a_connection_with_a_helper_is_never_installed() {
    let Some(router) = Router::translating() else { return };
    let helper = "table ip helped {
        ct helper transfers {
            type \"ftp\" protocol tcp;
        }
    }";
    let path = format!("{}.helper", router.state());
    std::fs::write(&path, helper).expect("a file");
    let set = router.router.run("nft", &["-f", &path]).map_err(|error| Missing(error.to_string()));
    if require("nf-conntrack-ftp", set).is_none() {
        return;
    }
    router.nft(
        "table ip helped {
            chain pre {
                type filter hook prerouting priority 0;
                tcp dport 7777 ct helper set \"transfers\"
            }
        }",
    );
    let up = router.up();
    let mut stream = Stream::to(&router.client, &router.server, at(SERVER, PORT), at(SERVER, PORT));
    stream.carry(1 << 16);
    wait_until("it is refused", || router.status()["refusals"]["helper"].as_u64() > Some(0));
    stream.carry(1 << 16);
    assert_eq!((router.flows(), router.fast()), (0, 0));
    up.interrupted();
}

#[test]
fn what_begins_or_ends_at_the_router_is_never_installed() {
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut own =
        Datagrams::between(&router.client, &router.router, at("10.1.0.1", PORT), at("10.1.0.1", PORT));
    own.exchange();
    wait_until("it is refused", || router.status()["refusals"]["local"].as_u64() > Some(0));
    let mut sent = Datagrams::between(&router.router, &router.server, at(SERVER, PORT), at(SERVER, PORT));
    sent.exchange();
    wait_until("it is refused, too", || router.status()["refusals"]["local"].as_u64() > Some(1));
    own.exchange();
    sent.exchange();
    assert_eq!((router.flows(), router.fast()), (0, 0));
    up.interrupted();
}
