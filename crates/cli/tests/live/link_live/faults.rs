//! What can happen to a link, and what stops one from coming up.

use super::ends::{Ends, LINK, PARENT, Side, code, said};
use super::talk;
use std::io::Write;
use std::net::UdpSocket;
use std::process::Command;
use testkit::{program, require};

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
                    assert_eq!(code(&again.interrupted()), 0);
                }
                question => {
                    let dead = ends.rxlane(Side::Near, &[question, LINK]);
                    assert_eq!(code(&dead), 1, "{}", said(&dead));
                    assert!(said(&dead).contains("was killed"), "{}", said(&dead));
                    assert!(question == "status" || !ends.has(Side::Near, LINK));
                    let gone = ends.rxlane(Side::Near, &[question, LINK]);
                    assert!(said(&gone).contains("there is no link"), "{}", said(&gone));
                }
            }
            assert_eq!(code(&up.ended()), -1);
            ends.assert_nothing_left();
        }
        // Without a name, too.
        let up = ends.up(Side::Near, "q:35", &[]);
        up.signal("KILL");
        up.ended();
        let all = ends.rxlane(Side::Near, &["status"]);
        assert!(code(&all) == 1 && said(&all).contains("was killed"), "{}", said(&all));
        ends.assert_nothing_left();
    }
}

#[test]
fn the_link_survives_its_parent_going_down_and_up() {
    for ends in Ends::of_each_data_path(1516) {
        for link in ["q:35", "ad:100,q:200,pppoe:7@PEER"] {
            let mut near = ends.up(Side::Near, link, &[]);
            let far = ends.up(Side::Far, link, &[]);
            talk::echo(&ends, Side::Near, "10.9.0.1", &[100]);
            for _ in 0..3 {
                ends.ip(Side::Near, &["link", "set", PARENT, "down"]);
                near.until("wan0 is down: sub0 has no carrier");
                assert!(ends.show(Side::Near)["flags"].to_string().contains("NO-CARRIER"));
                assert_eq!(ends.status(Side::Near)["parent_works"], false);
                ends.ip(Side::Near, &["link", "set", PARENT, "up"]);
                near.until("wan0 is up again");
                talk::wait_until_it_answers(&ends, "10.9.0.2");
            }
            talk::both_ways(&ends, 1492);
            assert_eq!(ends.status(Side::Near)["parent_works"], true);
            assert_eq!(code(&near.interrupted()), 0);
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
            for _ in 0..8 {
                ends.ip(Side::Near, &["link", "set", PARENT, "down"]);
                std::thread::sleep(std::time::Duration::from_millis(100));
                ends.ip(Side::Near, &["link", "set", PARENT, "up"]);
                std::thread::sleep(std::time::Duration::from_millis(200));
            }
        });
        talk::wait_until_it_answers(&ends, "10.9.0.2");
        let frames = || ends.status(Side::Far)["received"]["frames"].as_u64().expect("a number");
        // What waited in queues arrives first.
        let mut before = frames();
        for _ in 0..50 {
            std::thread::sleep(std::time::Duration::from_millis(200));
            let now = frames();
            if now == before {
                break;
            }
            before = now;
        }
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
fn a_renamed_link_keeps_the_name_that_it_is_asked_by() {
    let Some(ends) = Ends::new(1516) else { return };
    let first = ends.up(Side::Near, "q:35", &[]);
    for arguments in [["link", "set", LINK, "down"].as_slice(), &["link", "set", LINK, "name", "other0"]] {
        ends.ip(Side::Near, arguments);
    }
    let refused = ends.up_refused(Side::Near, "q:36", &[]);
    assert_eq!(code(&refused), 1, "{}", said(&refused));
    assert!(said(&refused).contains("renamed since"), "{}", said(&refused));
    assert!(!ends.has(Side::Near, LINK));
    let status = ends.status(Side::Near);
    assert_eq!(status["encapsulation"], "q:35");
    assert_eq!((status["name"].as_str(), status["present_name"].as_str()), (Some(LINK), Some("other0")));
    assert_eq!(status["interface_up"], false);
    let shown = said(&ends.rxlane(Side::Near, &["status", "--interval", "0"]));
    assert!(shown.contains("sub0: down over wan0") && shown.contains("other0 now"), "{shown}");
    assert!(shown.contains("`ip link set other0 up`"), "{shown}");
    ends.ip(Side::Near, &["link", "set", "other0", "up"]);
    let shown = said(&ends.rxlane(Side::Near, &["status", LINK, "--interval", "0"]));
    assert!(shown.contains("sub0: up over wan0") && !shown.contains("note"), "{shown}");
    let down = ends.rxlane(Side::Near, &["down", LINK]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert!(!ends.has(Side::Near, "other0"));
    assert_eq!(code(&first.ended()), 0);
}

#[test]
fn a_stopped_process_is_named_and_nothing_changes() {
    let Some(ends) = Ends::new(1516) else { return };
    let stopped = ends.up(Side::Near, "q:35", &[]);
    let other = ["--name", "sub1", "--encap", "q:36"];
    let mut other = ends.spawn(ends.plain_up(Side::Near).args(other));
    assert!(other.line().contains("is up over"));
    stopped.signal("STOP");
    let words = format!("the process {} of the link sub0 is stopped", stopped.process());
    for question in [["status", LINK], ["down", LINK], ["status", "--interval=0"]] {
        let output = ends.rxlane(Side::Near, &question);
        assert_eq!(code(&output), 1, "{}", said(&output));
        assert!(said(&output).contains(&words) && said(&output).contains("kill -CONT"), "{}", said(&output));
        // Who is not stopped is shown all the same.
        assert_eq!(said(&output).contains("sub1: up"), question[1] != LINK, "{}", said(&output));
    }
    stopped.signal("CONT");
    assert_eq!(ends.status(Side::Near)["pid"], stopped.process());
    let down = ends.rxlane(Side::Near, &["down", LINK]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert_eq!((code(&stopped.ended()), code(&other.interrupted())), (0, 0));
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
        ends.spawn(&mut command)
    };
    let mut enough = 0;
    // Whichever file is the one too many.
    for limit in 10.. {
        let mut up = limited(limit);
        if up.line().contains("is up over") {
            assert!((15..=enough).contains(&limit), "{limit} {enough}");
            assert_eq!(code(&up.interrupted()), 0);
            break;
        }
        let output = up.ended();
        assert_eq!(code(&output), 3, "{limit}: {}", said(&output));
        let said = said(&output);
        assert!(said.contains(&format!("{limit} files open (RLIMIT_NOFILE)")), "{limit}: {said}");
        let number = said.split_once("`ulimit -n ").and_then(|(_, rest)| rest.split_once('`'));
        enough = number.expect("a way out").0.parse().expect("a number");
        ends.assert_nothing_left();
    }
}

#[test]
fn down_with_nowhere_to_tell_it_is_done_all_the_same() {
    let Some(ends) = Ends::new(1516) else { return };
    let up = ends.up(Side::Near, "q:35", &[]);
    let folder = ends.folder().join("state").display().to_string();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut down = ends.namespace(Side::Near).command(env!("CARGO_BIN_EXE_rxlane"));
    down.args(["link", "down", LINK, "--state", &folder]).stdout(full).stderr(std::process::Stdio::piped());
    let down = down.spawn().and_then(|child| child.wait_with_output()).expect("it runs");
    // As every command says it.
    assert_eq!(code(&down), 3, "{}", said(&down));
    assert!(said(&down).contains("standard output: No space left"), "{}", said(&down));
    assert_eq!(code(&up.ended()), 0);
    ends.assert_nothing_left();
}

#[test]
fn a_parent_that_is_down_comes_up_later() {
    for ends in Ends::of_each_data_path(1516) {
        ends.ip(Side::Near, &["link", "set", PARENT, "down"]);
        let mut near = ends.up(Side::Near, "q:35", &[]);
        let _far = ends.up(Side::Far, "q:35", &[]);
        assert!(ends.show(Side::Near)["flags"].to_string().contains("NO-CARRIER"));
        ends.ip(Side::Near, &["link", "set", PARENT, "up"]);
        near.until("wan0 is up again");
        talk::wait_until_it_answers(&ends, "10.9.0.2");
        talk::stream(&ends, Side::Near, "10.9.0.1");
    }
}

#[test]
fn a_removed_parent_ends_the_link() {
    for ends in Ends::of_each_data_path(1516) {
        let near = ends.up(Side::Near, "q:35", &[]);
        let far = ends.up(Side::Far, "pppoe:7@PEER", &[]);
        ends.ip(Side::Near, &["link", "del", PARENT]);
        for up in [near, far] {
            let ended = up.ended();
            assert_eq!(code(&ended), 1, "{}", said(&ended));
            assert!(said(&ended).contains("wan0 was removed"), "{}", said(&ended));
        }
        ends.assert_nothing_left();
    }
}

#[test]
fn a_deleted_interface_ends_the_link() {
    for ends in Ends::of_each_data_path(1516) {
        for link in ["q:35", "pppoe:7@PEER"] {
            let near = ends.up(Side::Near, link, &[]);
            ends.ip(Side::Near, &["link", "del", LINK]);
            let ended = near.ended();
            assert_eq!(code(&ended), 1, "{}", said(&ended));
            assert!(said(&ended).contains("somebody deleted sub0"), "{}", said(&ended));
            ends.assert_nothing_left();
        }
    }
}

#[test]
fn packets_beyond_the_parents_mtu_are_counted_and_told() {
    for ends in Ends::of_each_data_path(1516) {
        let mut near = ends.up(Side::Near, "ad:100,q:200", &[]);
        let _far = ends.up(Side::Far, "ad:100,q:200", &[]);
        talk::echo(&ends, Side::Far, "10.9.0.2", &[1472]);
        ends.ip(Side::Near, &["link", "set", PARENT, "mtu", "1400"]);
        let told = near.until("the MTU of wan0 is 1400 now");
        assert!(told.contains("packets of sub0 need 1508"), "{told}");
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
        near.until("the MTU of wan0 is 1516 now");
        talk::echo(&ends, Side::Far, "10.9.0.2", &[1472]);
        assert_eq!(ends.drops(Side::Near, "parent-mtu"), 5);
    }
}

#[test]
fn of_two_with_one_name_one_comes_up() {
    let Some(ends) = Ends::new(1516) else { return };
    let first = ends.up(Side::Near, "q:35", &[]);
    for link in ["q:35", "pppoe:7@PEER"] {
        let second = ends.up_refused(Side::Near, link, &[]);
        assert_eq!(code(&second), 1, "{}", said(&second));
        assert!(said(&second).contains("an interface sub0 already"), "{}", said(&second));
    }
    // The first is as it was, and answers.
    assert_eq!(ends.status(Side::Near)["encapsulation"], "q:35");
    assert_eq!(code(&first.interrupted()), 0);
    let both = [0, 1].map(|_| ends.spawn(&mut ends.up_command(Side::Near, "q:35", &[])));
    let mut lost = 0;
    let mut won = Vec::new();
    for mut up in both {
        if up.line().contains("is up over") {
            won.push(up);
        } else {
            assert_eq!(code(&up.ended()), 1);
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
        let output = ends.up_refused(Side::Near, link, more);
        assert_eq!(code(&output), expected, "{}", said(&output));
        assert!(said(&output).contains(words), "{words}: {}", said(&output));
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
    let none = with(&["--parent", "none0", "--name", LINK, "--vlan", "35"]);
    assert!(code(&none) == 2 && said(&none).contains("no interface none0"), "{}", said(&none));
    let lo = with(&["--parent", "lo", "--name", LINK, "--vlan", "35"]);
    assert!(code(&lo) == 2 && said(&lo).contains("Ethernet"), "{}", said(&lo));
    let name = with(&["--parent", PARENT, "--name", "a/b", "--vlan", "35"]);
    assert!(code(&name) == 2 && said(&name).contains("no name"), "{}", said(&name));
    // IPv6 that is off.
    ends.namespace(Side::Near).inside(|| {
        let path = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
        std::fs::File::create(path).and_then(|mut file| file.write_all(b"1")).expect("a setting");
    });
    refused("q:35", &[], 3, "sysctl net.ipv6.conf");
}

#[test]
fn without_privilege_or_driver_it_says_what_it_takes() {
    let Some(ends) = Ends::new(1516) else { return };
    let Some(setpriv) = require("setpriv", program("setpriv")) else { return };
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let up = ends.up_command(Side::Near, "q:35", &[]);
    // `ip netns exec NAME PROGRAM …`: the program comes behind what takes rights or the device away.
    let arguments: Vec<_> = up.get_args().skip(3).collect();
    let run = |before: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", ends.namespace(Side::Near).name()]).args(before).args(&arguments);
        command.output().expect("it runs")
    };
    let setpriv = setpriv.display().to_string();
    let nobody = run(&[&setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    assert_eq!(code(&nobody), 3, "{}", said(&nobody));
    assert!(said(&nobody).contains("CAP_NET_ADMIN"), "{}", said(&nobody));
    let raw = run(&[&setpriv, "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]);
    assert_eq!(code(&raw), 3, "{}", said(&raw));
    assert!(said(&raw).contains("CAP_NET_RAW"), "{}", said(&raw));
    let hidden = "mount -t tmpfs none /dev/net && exec \"$@\"";
    let driver = run(&[&unshare.display().to_string(), "--mount", "sh", "-c", hidden, "sh"]);
    assert_eq!(code(&driver), 3, "{}", said(&driver));
    assert!(said(&driver).contains("modprobe tun"), "{}", said(&driver));
    ends.assert_nothing_left();
}
