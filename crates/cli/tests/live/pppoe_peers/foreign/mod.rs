//! `rxlane pppoe connect` against a concentrator that takes everybody.

mod concentrator;
mod manner;

use crate::pppoe_live::line::{Line, WAN};
use crate::pppoe_live::process::wait;
use concentrator::Concentrator;
use manner::{CLIENT, ECHO, IDENTIFIER, Magic, Manner, NAME_SERVERS, OWN, PROTOCOLS};

/// A session comes up, carries packets of every length, and ends on both sides.
fn comes_up(line: &Line, manner: Manner, arguments: &[&str]) -> concentrator::Seen {
    let shown = format!("{manner:?} {arguments:?}");
    let has_ipv6 = manner.has_ipv6;
    let concentrator = Concentrator::begin(&line.far, WAN, manner);
    // Both are waited for otherwise.
    let ipv6 = has_ipv6.to_string();
    let client = line.connect("alice", &[arguments, &["--ipv6", &ipv6]].concat());
    let status = line.status("ppp0");
    assert_eq!(status["local"], CLIENT.to_string(), "{shown} {status:#}");
    assert_eq!(status["peer"], OWN.to_string(), "{shown} {status:#}");
    assert_eq!((&status["mtu"], &status["ac_name"]), (&1492.into(), &"permissive".into()), "{shown}");
    for octets in [60, 1492] {
        line.ping(&line.near, &OWN.to_string(), octets);
    }
    if has_ipv6 {
        let other = format!("fe80::{IDENTIFIER:x}%ppp0");
        line.ping(&line.near, &other, 1492);
    }
    assert_eq!(line.status("ppp0")["counted"]["drops"], serde_json::json!({}), "{shown}");
    let (code, said) = client.interrupted();
    assert!(code == 0 && said.ends_with("ppp0 is disconnected.\n"), "{shown} {said}");
    wait("the end is told", || concentrator.seen().padt > 0);
    let seen = concentrator.end();
    assert_eq!(seen.complaints, Vec::<String>::new(), "{shown}");
    assert_eq!((seen.sessions, seen.terminated, seen.padt), (1, 1, 1), "{shown} {seen:?}");
    assert_eq!(seen.longest, 1492, "{shown}");
    seen
}

#[test]
fn whoever_takes_everybody_is_connected_to() {
    let Some(line) = Line::new() else { return };
    let manners = [
        Manner::PLAIN,
        Manner { mru: Some(1492), magic: Magic::Own, has_ipv6: true, ..Manner::PLAIN },
        Manner { mru: Some(1500), magic: Magic::Zero, has_trailers: true, ..Manner::PLAIN },
        Manner { magic: Magic::Rejected, has_other_tags: true, ..Manner::PLAIN },
    ];
    for manner in manners {
        let seen = comes_up(&line, manner, &["--vlan", "7"]);
        assert_eq!(seen.pap, None, "a password that nobody asked for");
    }
}

#[test]
fn pap_alone_is_enough_where_it_is_allowed_and_told_where_not() {
    let Some(line) = Line::new() else { return };
    let manner = Manner { demands_pap: true, magic: Magic::Own, ..Manner::PLAIN };
    let expected = Some(("alice".to_owned(), "wonderland".to_owned()));
    for arguments in [&[][..], &["--auth", "pap"], &["--auth", "chap,pap", "--dns"]] {
        assert_eq!(comes_up(&line, manner.clone(), arguments).pap, expected);
    }
    let concentrator = Concentrator::begin(&line.far, WAN, manner);
    let said = line.connect_in_vain("alice", &["--auth", "chap"]);
    assert!(said.contains("demands PAP") && said.contains("allowed: CHAP-MD5"), "{said}");
    let seen = concentrator.end();
    assert_eq!((seen.pap, seen.complaints), (None, Vec::new()), "the password was sent");
}

#[test]
fn name_servers_are_taken_from_a_nak() {
    let Some(line) = Line::new() else { return };
    let _concentrator = Concentrator::begin(&line.far, WAN, Manner::PLAIN);
    let client = line.connect("alice", &["--dns"]);
    let servers = NAME_SERVERS.map(|server| server.to_string());
    assert_eq!(line.status("ppp0")["dns"], serde_json::json!(servers));
    assert_eq!(client.interrupted().0, 0);
}

#[test]
fn what_pppoe_has_no_use_for_is_rejected_and_nothing_else() {
    let Some(line) = Line::new() else { return };
    for demands_pap in [true, false] {
        let manner = Manner { demands_pap, magic: Magic::Own, asks_for_more: true, ..Manner::PLAIN };
        let useless = manner.useless();
        let seen = comes_up(&line, manner, &[]);
        assert_eq!(seen.lcp_rejected, useless);
        assert_eq!(seen.ipcp_rejected, [(2, vec![0x00, 0x2d, 0x0f, 0x00])]);
    }
}

#[test]
fn what_nobody_knows_does_no_harm() {
    let Some(line) = Line::new() else { return };
    for magic in [Magic::Own, Magic::None, Magic::Rejected] {
        let manner = Manner { magic, is_odd: true, has_ipv6: true, ..Manner::PLAIN };
        let seen = comes_up(&line, manner, &[]);
        assert_eq!(seen.echoed, [ECHO.to_vec(), vec![0x5a; 1000]], "{magic:?}");
        let rejected = [&PROTOCOLS[..], &[0x0031]].concat();
        assert_eq!(seen.protocols_rejected, rejected, "{magic:?}");
    }
}

#[test]
fn its_words_are_told() {
    let Some(line) = Line::new() else { return };
    let concentrator = Concentrator::begin(&line.far, WAN, Manner { is_odd: true, ..Manner::PLAIN });
    let client = line.start_to_connect("alice", &["--reconnect", "false"]);
    client.hear(": open", 1);
    client.hear("The peer calls itself \"Permissive 1.0\".", 1);
    client.hear("The peer will end the session in 3600 s (it says \"an hour\").", 1);
    concentrator.hang_up();
    let (code, said) = client.ended();
    assert!(code == 1 && said.contains("PADT") && said.contains("closed for the night"), "{said}");
    let seen = concentrator.end();
    assert_eq!((seen.complaints, seen.terminated, seen.padt), (Vec::new(), 0, 0), "{said}");
    assert!(!line.has("ppp0"));
}

#[test]
fn a_service_of_several_is_had() {
    let Some(line) = Line::new() else { return };
    let manner = Manner { services: &["voice", "internet", "tv"], has_other_tags: true, ..Manner::PLAIN };
    let seen = comes_up(&line, manner.clone(), &["--service", "internet"]);
    assert_eq!(seen.service.as_deref(), Some(&b"internet"[..]));
    let seen = comes_up(&line, manner, &[]);
    assert_eq!(seen.service.as_deref(), Some(&b""[..]));
}

#[test]
fn the_protocol_that_it_does_not_speak_is_done_without() {
    let Some(line) = Line::new() else { return };
    let concentrator = Concentrator::begin(&line.far, WAN, Manner::PLAIN);
    let client = line.connect("alice", &[]);
    client.hear("IPv6 is not there: the peer does not speak it", 1);
    assert!(line.status("ppp0")["local6"].is_null());
    assert_eq!(client.interrupted().0, 0);
    let said = line.connect_in_vain("alice", &["--ipv4", "false"]);
    assert!(said.contains("no network protocol came up (IPv6: the peer does not speak it)"), "{said}");
    assert_eq!(concentrator.end().complaints, Vec::<String>::new());
}
