//! What can happen to a link, and what stops one from coming up.

use super::ends::{Ends, LINK, PARENT, Side};
use super::talk;
use crate::process::Process;
use crate::run::{BINARY, Ended};
use std::io::Write;
use std::net::UdpSocket;
use testkit::wait_until;

#[test]
fn a_killed_process_leaves_no_interface_and_its_socket_is_recognised() {
    for ends in Ends::of_each_data_path(1516) {
        for next in ["status", "down", "up"] {
            let up = ends.up(Side::Near, "ad:100,q:200", &[]);
            assert!(ends.show(Side::Near).is_object());
            // Nobody waits for its end before the next command.
            up.signal("KILL");
            match next {
                "up" => {
                    let again = ends.up(Side::Near, "ad:100,q:200", &[]);
                    assert_eq!(ends.status(Side::Near)["encapsulation"], "ad:100,q:200");
                    again.interrupted().ends(0);
                }
                question => {
                    ends.rxlane(Side::Near, &[question, LINK]).ends(1).says("was killed");
                    assert!(question == "status" || !ends.has(Side::Near, LINK));
                    ends.rxlane(Side::Near, &[question, LINK]).says("there is no link");
                }
            }
            up.ended().ends(-1);
            ends.assert_nothing_left();
        }
        // Without a name, too.
        let up = ends.up(Side::Near, "q:35", &[]);
        up.signal("KILL");
        up.ended();
        ends.rxlane(Side::Near, &["status"]).ends(1).says("was killed");
        ends.assert_nothing_left();
    }
}

#[test]
fn the_link_survives_its_parent_going_down_and_up() {
    for ends in Ends::of_each_data_path(1516) {
        for link in ["q:35", "ad:100,q:200,pppoe:7@PEER"] {
            // It is down at first.
            ends.ip(Side::Near, &["link", "set", PARENT, "down"]);
            let near = ends.up(Side::Near, link, &[]);
            let far = ends.up(Side::Far, link, &[]);
            for times in 1..=3 {
                if times > 1 {
                    ends.ip(Side::Near, &["link", "set", PARENT, "down"]);
                    near.hear("wan0 is down: sub0 has no carrier", times - 1);
                }
                assert!(ends.show(Side::Near)["flags"].to_string().contains("NO-CARRIER"));
                assert_eq!(ends.status(Side::Near)["parent_works"], false);
                ends.ip(Side::Near, &["link", "set", PARENT, "up"]);
                near.hear("wan0 is up again", times);
                talk::wait_until_it_answers(&ends, "10.9.0.2");
            }
            talk::both_ways(&ends, 1492);
            assert_eq!(ends.status(Side::Near)["parent_works"], true);
            near.interrupted().ends(0);
            far.interrupted();
        }
        ends.assert_nothing_left();
    }
}

#[test]
fn a_parent_that_flaps_under_load_repeats_nothing() {
    for ends in Ends::of_each_data_path(1516) {
        let link = "q:35,pppoe:7@PEER";
        let near = ends.up(Side::Near, link, &[]);
        let far = ends.up(Side::Far, link, &[]);
        talk::while_flooded(&ends, "10.9.0.2", || {
            for times in 1..=8 {
                ends.ip(Side::Near, &["link", "set", PARENT, "down"]);
                near.hear("wan0 is down: sub0 has no carrier", times);
                ends.ip(Side::Near, &["link", "set", PARENT, "up"]);
                near.hear("wan0 is up again", times);
            }
        });
        talk::wait_until_it_answers(&ends, "10.9.0.2");
        let frames = || ends.status(Side::Far)["received"]["frames"].as_u64().expect("a number");
        // What waited in queues arrives first: until an echo costs its two frames, and one or two of the kernel, alone.
        let mut before = frames();
        wait_until("what waited in queues has arrived", || {
            talk::echo(&ends, Side::Far, "10.9.0.2", &[100]);
            frames() - std::mem::replace(&mut before, frames()) < 4
        });
        let before = frames();
        talk::echo(&ends, Side::Far, "10.9.0.2", &[100; 10]);
        let after = frames();
        // Ten datagrams, and what the kernel says of itself.
        assert!((10..40).contains(&(after - before)), "{before} {after}");
        // Whatever arrived was a frame as it was sent.
        for reason in ["short", "pppoe-length", "ip-length", "ip-version"] {
            assert_eq!(ends.drops(Side::Far, reason), 0, "{reason}");
        }
        near.interrupted();
        far.interrupted();
    }
}

#[test]
fn a_renamed_link_keeps_the_name_that_it_is_queried_by() {
    let Some(ends) = Ends::new(1516) else { return };
    let first = ends.up(Side::Near, "q:35", &[]);
    for arguments in [["link", "set", LINK, "down"].as_slice(), &["link", "set", LINK, "name", "other0"]] {
        ends.ip(Side::Near, arguments);
    }
    ends.up_refused(Side::Near, "q:36", &[]).ends(1).says("renamed since");
    assert!(!ends.has(Side::Near, LINK));
    let status = ends.status(Side::Near);
    assert_eq!(status["encapsulation"], "q:35");
    assert_eq!((status["name"].as_str(), status["present_name"].as_str()), (Some(LINK), Some("other0")));
    assert_eq!(status["interface_up"], false);
    ends.rxlane(Side::Near, &["status", "--interval", "0"])
        .says("sub0: down over wan0")
        .says("other0 now")
        .says("`ip link set other0 up`");
    ends.ip(Side::Near, &["link", "set", "other0", "up"]);
    ends.rxlane(Side::Near, &["status", LINK, "--interval", "0"]).says("sub0: up over wan0").omits("note");
    ends.rxlane(Side::Near, &["down", LINK]).ends(0);
    assert!(!ends.has(Side::Near, "other0"));
    first.ended().ends(0);
}

#[test]
fn a_stopped_process_is_named_and_nothing_changes() {
    let Some(ends) = Ends::new(1516) else { return };
    let stopped = ends.up(Side::Near, "q:35", &[]);
    let other = ["--name", "sub1", "--encap", "q:36"];
    let other = ends.up_with(Side::Near, &other);
    stopped.signal("STOP");
    let words = format!("the process {} of the link sub0 is stopped", stopped.process());
    for question in [["status", LINK], ["down", LINK], ["status", "--interval=0"]] {
        let output = ends.rxlane(Side::Near, &question);
        output.ends(1).says(&words).says("kill -CONT");
        // Who is not stopped is listed all the same.
        assert_eq!(output.text().contains("sub1: up"), question[1] != LINK, "{}", output.text());
    }
    stopped.signal("CONT");
    assert_eq!(ends.status(Side::Near)["pid"], stopped.process());
    ends.rxlane(Side::Near, &["down", LINK]).ends(0);
    assert_eq!((stopped.ended().code(), other.interrupted().code()), (0, 0));
    ends.assert_nothing_left();
}

#[test]
fn too_few_files_are_named_with_a_number_that_is_enough() {
    let Some(ends) = Ends::new(1516) else { return };
    let up = ends.up_command(Side::Near, "q:35", &["--workers", "2"]);
    let limited = |limit: u64| {
        let mut command = ends.namespace(Side::Near).command("sh");
        // `ip netns exec NAME` is left out.
        let arguments: Vec<_> = up.get_args().skip(3).collect();
        command.args(["-c", &format!("ulimit -n {limit} && exec \"$@\""), "sh"]).args(arguments);
        Process::start(&mut command)
    };
    let mut enough = 0;
    // Whichever file is the one too many.
    for limit in 10.. {
        let mut up = limited(limit);
        if up.says_before_its_end("is up over") {
            assert!((15..=enough).contains(&limit), "{limit} {enough}");
            up.interrupted().ends(0);
            break;
        }
        let said = up.ended().is(&limit, 3, "").text();
        assert!(said.contains(&format!("{limit} files open (RLIMIT_NOFILE)")), "{limit}: {said}");
        let number = said.split_once("`ulimit -n ").and_then(|(_, rest)| rest.split_once('`'));
        enough = number.expect("a way out").0.parse().expect("a number");
        ends.assert_nothing_left();
    }
}

#[test]
fn down_with_nowhere_to_report_it_is_done_all_the_same() {
    let Some(ends) = Ends::new(1516) else { return };
    let up = ends.up(Side::Near, "q:35", &[]);
    let folder = ends.folder().join("state").display().to_string();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut down = ends.namespace(Side::Near).command(BINARY);
    down.args(["link", "down", LINK, "--state", &folder]).stdout(full).stderr(std::process::Stdio::piped());
    let down = down.spawn().and_then(|child| child.wait_with_output()).expect("it runs");
    // As every command says it.
    down.ends(3).says("standard output: No space left");
    up.ended().ends(0);
    ends.assert_nothing_left();
}

#[test]
fn a_deleted_interface_or_parent_ends_the_link() {
    for ends in Ends::of_each_data_path(1516) {
        for link in ["q:35", "pppoe:7@PEER"] {
            let near = ends.up(Side::Near, link, &[]);
            ends.ip(Side::Near, &["link", "del", LINK]);
            near.ended().ends(1).says("somebody deleted sub0");
            ends.assert_nothing_left();
        }
        let near = ends.up(Side::Near, "q:35", &[]);
        let far = ends.up(Side::Far, "pppoe:7@PEER", &[]);
        ends.ip(Side::Near, &["link", "del", PARENT]);
        for up in [near, far] {
            up.ended().ends(1).says("wan0 was removed");
        }
        ends.assert_nothing_left();
    }
}

#[test]
fn packets_beyond_the_parents_mtu_are_counted_and_reported() {
    for ends in Ends::of_each_data_path(1516) {
        let near = ends.up(Side::Near, "ad:100,q:200", &[]);
        let _far = ends.up(Side::Far, "ad:100,q:200", &[]);
        talk::echo(&ends, Side::Far, "10.9.0.2", &[1472]);
        ends.ip(Side::Near, &["link", "set", PARENT, "mtu", "1400"]);
        near.hear("the MTU of wan0 is 1400 now", 1);
        near.hear("packets of sub0 need 1508", 1);
        ends.namespace(Side::Near).inside(|| {
            let socket = UdpSocket::bind("10.9.0.1:0").expect("bound");
            for _ in 0..5 {
                socket.send_to(&[0; 1472], "10.9.0.2:9").expect("sent");
            }
        });
        // What is short still passes, and comes behind them.
        talk::echo(&ends, Side::Far, "10.9.0.2", &[1000]);
        assert_eq!(ends.drops(Side::Near, "parent-mtu"), 5);
        ends.ip(Side::Near, &["link", "set", PARENT, "mtu", "1516"]);
        near.hear("the MTU of wan0 is 1516 now", 1);
        talk::echo(&ends, Side::Far, "10.9.0.2", &[1472]);
        assert_eq!(ends.drops(Side::Near, "parent-mtu"), 5);
    }
}

#[test]
fn of_two_with_one_name_one_comes_up() {
    let Some(ends) = Ends::new(1516) else { return };
    let first = ends.up(Side::Near, "q:35", &[]);
    for link in ["q:35", "pppoe:7@PEER"] {
        ends.up_refused(Side::Near, link, &[]).ends(1).says("an interface sub0 already");
    }
    // The first is as it was, and answers.
    assert_eq!(ends.status(Side::Near)["encapsulation"], "q:35");
    first.interrupted().ends(0);
    let both = [0, 1].map(|_| Process::start(&mut ends.up_command(Side::Near, "q:35", &[])));
    let mut lost = 0;
    let mut won = Vec::new();
    for mut up in both {
        if up.says_before_its_end("is up over") {
            won.push(up);
        } else {
            up.ended().ends(1);
            lost += 1;
        }
    }
    assert_eq!((won.len(), lost), (1, 1));
    assert_eq!(ends.status(Side::Near)["name"], LINK);
}

#[test]
fn what_is_wrong_is_said_with_a_way_out_and_nothing_is_left() {
    let Some(ends) = Ends::new(1516) else { return };
    let refused = |link: &str, more: &[&str], expected: i32, words: &str| {
        ends.up_refused(Side::Near, link, more).ends(expected).says(words);
        ends.assert_nothing_left();
    };
    refused("none", &[], 2, "no encapsulation");
    refused("q:35,mpls:16", &[], 2, "MPLS");
    refused("pppoe", &[], 2, "pppoe:SESSION@MAC");
    refused("pppoe:7", &[], 2, "pppoe:SESSION@MAC");
    refused("q:4095", &[], 2, "0 to 4094");
    refused("q:35", &["--mtu", "1600"], 1, "ip link set wan0 mtu 1600");
    refused("q:35", &["--mtu", "1000"], 2, "1280 is the least for IPv6");
    refused("q:35", &["--peer", "10.9.0.2", "--peer", "10.9.0.3"], 2, "--peer 10.9.0.3");
    refused("q:35", &["--peer", "224.0.0.1"], 2, "which no interface can have");
    refused("q:35", &["--address", "0.0.0.0/0"], 2, "which no interface can have");
    refused("q:35", &["--address", "fd00::1/48"], 2, "fd00::1 is there twice");
    let with = |arguments: &[&str]| ends.rxlane(Side::Near, &[&["up"], arguments].concat());
    with(&["--parent", "none0", "--name", LINK, "--vlan", "35"]).ends(2).says("no interface none0");
    with(&["--parent", "lo", "--name", LINK, "--vlan", "35"]).ends(2).says("Ethernet");
    with(&["--parent", PARENT, "--name", "a/b", "--vlan", "35"]).ends(2).says("no name");
    // IPv6 that is off.
    ends.namespace(Side::Near).inside(|| {
        let path = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
        std::fs::File::create(path).and_then(|mut file| file.write_all(b"1")).expect("a setting");
    });
    refused("q:35", &[], 3, "sysctl net.ipv6.conf");
}
