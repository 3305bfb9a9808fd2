//! `rxlane link` on veth pairs between two network namespaces: traffic, ends of every kind, and what can go wrong.

mod check;
mod daemon;
pub mod ends;
mod faults;
mod hostile;
mod routed;
mod talk;
mod worker;

use crate::machine::Manager;
use crate::process::Process;
use crate::run::Ended;
use ends::{Ends, Side};
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixListener;
use std::thread;
use testkit::{program, require};

/// Every kind of encapsulation; `PEER` is the other end's MAC address.
const LINKS: [&str; 5] =
    ["q:35", "ad:100,q:200", "0x9100:1,q:2,q:3", "pppoe:7@PEER", "ad:100,q:200,pppoe:7@PEER"];

#[test]
fn both_ends_talk_through_every_encapsulation() {
    let Some(ends) = Ends::new(1516) else { return };
    const SIMPLE: &[&str] = &["--datapath", "simple"];
    const BATCH: &[&str] = &["--datapath", "batch", "--workers", "1"];
    const SEVERAL: &[&str] = &["--datapath", "batch", "--workers", "3"];
    const XDP: &[&str] = &["--datapath", "batch", "--io", "af-xdp"];
    for link in LINKS {
        for (mtu, near, far) in
            [("1500", SIMPLE, SIMPLE), ("1492", SIMPLE, BATCH), ("1500", SEVERAL, BATCH), ("1500", XDP, XDP)]
        {
            let up = |side: Side, path: &[&str]| ends.up(side, link, &[path, &["--mtu", mtu]].concat());
            let (near, far) = (up(Side::Near, near), up(Side::Far, far));
            talk::both_ways(&ends, mtu.parse().expect("a number"));
            for side in [Side::Near, Side::Far] {
                let status = ends.status(side);
                assert_eq!(status["drops"], Value::Array(Vec::new()), "{link}: {status:#}");
                assert!(status["received"]["frames"].as_u64() > Some(100), "{link}: {status:#}");
                assert!(status["sent"]["octets"].as_u64() > Some(100_000), "{link}: {status:#}");
                let is_ppp = link.contains("pppoe");
                assert_eq!(status["interface"], if is_ppp { "tun" } else { "tap" });
                let super_packets = status["super_packets"].as_u64();
                assert_eq!(super_packets > Some(10), status["datapath"] == "batch", "{link}: {status:#}");
            }
            let (near, far) = (near.interrupted(), far.interrupted());
            assert_eq!((near.code(), far.code()), (0, 0), "{}{}", near.text(), far.text());
            near.says("is removed");
        }
        ends.assert_nothing_left();
    }
}

#[test]
fn a_tap_has_the_parents_address_and_a_tun_its_peer() {
    for ends in Ends::of_each_data_path(1516) {
        let up = ends.up(Side::Near, "q:35", &[]);
        let link = ends.show(Side::Near);
        assert_eq!(link["address"].as_str(), Some(ends.mac(Side::Near).as_str()), "{link:#}");
        assert_eq!(link["mtu"], 1500, "{link:#}");
        up.interrupted();
        let peers = ["--peer", "10.9.0.9", "--peer", "fd00::9"];
        let up = ends.up(Side::Near, "pppoe:7@PEER", &peers);
        assert_eq!(ends.show(Side::Near)["mtu"], 1492);
        let addresses = ends.ip(Side::Near, &["-o", "addr", "show", "dev", "sub0"]);
        assert!(addresses.contains("10.9.0.1 peer 10.9.0.9/24"), "{addresses}");
        assert!(addresses.contains("fd00::1 peer fd00::9/64"), "{addresses}");
        let status = ends.status(Side::Near);
        assert_eq!(status["addresses"][0], "10.9.0.1 peer 10.9.0.9/24");
        up.interrupted();
    }
}

#[test]
fn links_of_one_parent_see_nothing_of_each_other() {
    for ends in Ends::of_each_data_path(1516).filter(|ends| !ends.take_a_queue()) {
        let mut up = vec![ends.up(Side::Near, "q:35", &[]), ends.up(Side::Far, "q:35", &[])];
        // More tags behind the same one, the same VID of another TPID, and two sessions in one VLAN.
        let others = ["q:35,q:200", "ad:35", "q:36,pppoe:7@PEER", "q:36,pppoe:8@PEER"];
        for (number, link) in others.iter().enumerate() {
            for (side, address) in [(Side::Near, 1), (Side::Far, 2)] {
                let name = format!("sub{}", number + 1);
                let address = format!("10.9.{}.{address}/24", number + 1);
                let arguments = ["--name", &name, "--encap", &ends.named(side, link), "--address", &address];
                up.push(ends.up_with(side, &arguments));
            }
        }
        for number in 0..=others.len() {
            talk::echo(&ends, Side::Near, &format!("10.9.{number}.1"), &[0, 1000, 1400]);
            talk::stream(&ends, Side::Far, &format!("10.9.{number}.2"));
        }
        // The end that has received the streams, a megabyte each.
        let all = ends.rxlane(Side::Far, &["status", "--json", "--interval", "0"]).json();
        let links = all["links"].as_array().expect("a list");
        assert_eq!(links.len(), others.len() + 1);
        for link in links {
            assert_eq!(link["drops"], Value::Array(Vec::new()), "{link:#}");
            let bytes = link["received"]["octets"].as_u64().expect("a number");
            assert!((1_000_000..1_500_000).contains(&bytes), "{link:#}");
        }
        up.into_iter().for_each(|up| assert_eq!(up.interrupted().code(), 0));
    }
}

#[test]
fn one_link_of_a_parent_can_have_its_queue() {
    let Some(ends) = Ends::new(1516) else { return };
    let first = ends.up(Side::Near, "q:35", &["--io", "af-xdp"]);
    let second = ["--name", "sub1", "--encap", "q:36", "--io", "af-xdp"];
    ends.plain_up(Side::Near)
        .args(second)
        .output()
        .expect("it runs")
        .ends(1)
        .says("another link or program has it")
        .says("--io af-packet");
    assert!(!ends.has(Side::Near, "sub1"));
    // Its frames are its own, whatever the data path and the name.
    let again = ["--name", "sub1", "--encap", "q:35", "--datapath", "simple"];
    ends.plain_up(Side::Near)
        .args(again)
        .output()
        .expect("it runs")
        .ends(1)
        .says("with the encapsulation q:35 already");
    assert!(!ends.has(Side::Near, "sub1"));
    first.interrupted();
    ends.up_refused(Side::Near, "q:35", &["--tpid", "0x9100"]).ends(2);
    ends.up_refused(Side::Near, "q:35", &["--datapath", "simple", "--io", "af-xdp"]).ends(2);
}

#[test]
fn segments_are_lowered_to_what_fits() {
    let Some(_) = require("ss", program("ss")) else { return };
    for ends in Ends::of_each_data_path(1516) {
        for link in ["ad:100,q:200", "q:35,pppoe:7@PEER"] {
            // The far end believes in 1500, the near one has less and says so in no ICMP message.
            let near = ends.up(Side::Near, link, &["--mtu", "1400", "--mss-clamp"]);
            let far = ends.up(Side::Far, link, &["--mtu", "1500"]);
            for (address, most) in [("10.9.0.1", 1360), ("fd00::1", 1340)] {
                let seen = talk::segment_size(&ends, address);
                // The option of timestamps takes 12 bytes of each.
                assert!(seen <= most && seen >= most - 12, "{link} {address}: {seen}");
            }
            let status = ends.status(Side::Near);
            assert!(status["mss_clamped"].as_u64() >= Some(2), "{status:#}");
            near.interrupted();
            far.interrupted();
        }
    }
}

#[test]
fn down_waits_until_the_interface_is_removed_and_status_lists_what_is_there() {
    let Some(ends) = Ends::new(1516) else { return };
    let near = ends.up(Side::Near, "q:35", &[]);
    let _far = ends.up(Side::Far, "q:35", &[]);
    let all = ends.rxlane(Side::Near, &["status", "--json", "--interval", "0"]).json();
    assert_eq!(all["schema"], "rxlane.link/1");
    // The other namespace's link has the same name and folder, and is not among them.
    assert_eq!(all["links"].as_array().map(Vec::len), Some(1), "{all:#}");
    assert_eq!(all["links"][0]["encapsulation"], "q:35");
    let rates = ends.rxlane(Side::Near, &["status", "sub0", "--interval", "0.1"]);
    rates.ends(0).says("bit/s");
    for line in rates.text().lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    ends.rxlane(Side::Near, &["down", "sub0"]).ends(0);
    assert!(!ends.has(Side::Near, "sub0"));
    near.ended().ends(0);
    for question in [["down", "sub0"], ["status", "sub0"]] {
        ends.rxlane(Side::Near, &question).ends(1).says("there is no link sub0");
    }
    ends.rxlane(Side::Near, &["status"]).ends(0);
}

#[test]
fn several_down_at_once_wait_for_the_same_end() {
    let Some(ends) = Ends::new(1516) else { return };
    for _ in 0..3 {
        let up = ends.up(Side::Near, "q:35", &[]);
        let downs = thread::scope(|scope| {
            let down = || scope.spawn(|| ends.rxlane(Side::Near, &["down", "sub0"]));
            [(); 3].map(|()| down()).map(|down| down.join().expect("no panic"))
        });
        assert!(downs.iter().any(|down| down.code() == 0), "{downs:?}");
        for down in &downs {
            let expected = if down.code() == 0 { "sub0 is removed" } else { "there is no link sub0" };
            assert!(down.code() <= 1);
            down.says(expected);
        }
        assert!(!ends.has(Side::Near, "sub0"));
        up.ended().ends(0);
    }
}

/// The process of a link that ends closes connections that it has not answered, before or after the question was written.
#[test]
fn down_of_a_link_that_ends_hears_that_there_is_none() {
    let Some(ends) = Ends::new(1516) else { return };
    let up = ends.up(Side::Near, "q:35", &[]);
    let mut files = fs::read_dir(ends.state()).expect("the state").map(|entry| entry.expect("a file").path());
    let socket = files.find(|path| path.extension().is_some_and(|end| end == "sock"));
    let socket = socket.expect("the socket of the link");
    up.interrupted().ends(0);
    let ending = UnixListener::bind(&socket).expect("bound");
    thread::spawn(move || {
        ending.incoming().take(10).for_each(drop);
        fs::remove_file(&socket).expect("removed");
    });
    ends.rxlane(Side::Near, &["down", "sub0"]).ends(1).says("there is no link sub0");
}

#[test]
fn the_manager_hears_when_it_is_up_and_when_it_ends() {
    let Some(ends) = Ends::new(1516) else { return };
    let manager = Manager::new(ends.folder());
    let mut command = ends.up_command(Side::Near, "q:35", &[]);
    let up = Process::start(command.env("NOTIFY_SOCKET", &manager.path));
    assert_eq!(manager.heard(), "READY=1\nSTATUS=sub0 is up\n");
    let ended = up.interrupted();
    assert_eq!(manager.heard(), "STOPPING=1\n");
    ended.ends(0);
}

#[test]
fn check_reports_what_fits() {
    let Some(ends) = Ends::new(1500) else { return };
    let check = |link: &str, mtu: &str| {
        let link = ends.named(Side::Near, link);
        let arguments = ["check", "--parent", "wan0", "--encap", &link, "--mtu", mtu, "--json"];
        let output = ends.rxlane(Side::Near, &arguments);
        let check = output.json();
        assert_eq!(output.code() == 0, check["answer"] == "yes", "{check:#}");
        check
    };
    let fits = check("q:35", "1500");
    assert_eq!((fits["answer"].as_str(), fits["frame"].as_u64()), (Some("yes"), Some(1522)), "{fits:#}");
    let long = check("ad:100,q:200", "1500");
    assert_eq!((long["answer"].as_str(), long["longest_mtu"].as_u64()), (Some("no"), Some(1492)), "{long:#}");
    assert_eq!(check("ad:100,q:200", "1492")["answer"], "yes");
    // What it says is what happens.
    ends.up_refused(Side::Near, "ad:100,q:200", &["--mtu", "1493"]).ends(1).says("ip link set wan0 mtu 1501");
    let near = ends.up(Side::Near, "ad:100,q:200", &[]);
    let far = ends.up(Side::Far, "ad:100,q:200", &[]);
    assert_eq!(ends.status(Side::Near)["mtu"], 1492);
    talk::both_ways(&ends, 1492);
    near.interrupted();
    far.interrupted();
}
