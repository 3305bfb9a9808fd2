//! What real peers send, and what they get: requests and habits of pppd and of concentrators in the field.

use super::line::{
    ALL, Answer, CHAP, DNS, End, IPCP, IPV6CP, LCP, Line, OWN, PAP, SECRET, SUBSCRIBER, after_lcp, answers,
    concentrator, demand, exchange, grant, host, of_host, packet, request, started, verdict,
};
use crate::pap;
use crate::session::{Action, Closed, Demanded, Family, Ipv4, Ipv6, Method, NetworkFailure, Phase, Verdict};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A host without authentication whose LCP is open, and its requests.
fn open_host() -> (End, Vec<Answer>) {
    let mut end = after_lcp(of_host(host(&[])), b"\x01\x04\x05\xd4\x05\x06\x11\x22\x33\x44");
    let requests = answers(&mut end);
    (end, requests)
}

#[test]
fn a_pppd_client_that_wants_another_method_and_its_own_options() {
    let (mut end, identifier, options) = started(concentrator(&ALL));
    assert_eq!(options[4..9], *b"\x03\x05\xc2\x23\x81");
    // ACCM, PFC and ACFC, as on a serial line.
    let serial = b"\x01\x04\x05\xd4\x02\x06\0\0\0\0\x05\x06\x01\x02\x03\x04\x07\x02\x08\x02";
    let said = exchange(&mut end, LCP, 1, 1, serial);
    assert_eq!(said, [(LCP, 4, 1, b"\x02\x06\0\0\0\0\x07\x02\x08\x02".to_vec())]);
    exchange(&mut end, LCP, 1, 2, b"\x01\x04\x05\xd4\x05\x06\x01\x02\x03\x04");
    // EAP is requested, which nobody speaks here: the next method is tried; then one that both speak.
    let (identifier, options) = request(&exchange(&mut end, LCP, 3, identifier, b"\x03\x04\xc2\x27"), LCP);
    assert_eq!(options[4..9], *b"\x03\x05\xc2\x23\x05");
    let (identifier, options) = request(&exchange(&mut end, LCP, 3, identifier, b"\x03\x04\xc0\x23"), LCP);
    assert_eq!(options[4..8], *b"\x03\x04\xc0\x23");
    exchange(&mut end, LCP, 2, identifier, &options);
    exchange(&mut end, PAP, 1, 7, &pap::request(b"user@isp", SECRET));
    let claim = end.claims().pop().expect("a claim");
    assert_eq!((claim.user(), claim.method()), (&b"user@isp"[..], Some(Method::Pap)));
    assert!(claim.proof(b"other").is_none());
    assert!(!format!("{claim:?}").contains("horse"));
    end.authenticated(verdict(&claim));
    let requests = answers(&mut end).into_iter().map(|sent| (sent.0, sent.1)).collect::<Vec<_>>();
    assert_eq!(requests, [(PAP, 2), (IPCP, 1), (IPV6CP, 1)]);
    // pppd asks for its own address, Microsoft's name servers too, and no address at all.
    let nak = |said: Vec<Answer>| said.into_iter().map(|said| (said.1, said.3)).collect::<Vec<_>>();
    let said = exchange(&mut end, IPCP, 1, 1, b"\x03\x06\xc0\xa8\x00\x02\x82\x06\0\0\0\0");
    assert_eq!(nak(said), [(4, b"\x82\x06\0\0\0\0".to_vec())]);
    let said = exchange(&mut end, IPCP, 1, 2, b"\x03\x06\xc0\xa8\x00\x02\x81\x06\0\0\0\0");
    assert_eq!(nak(said), [(3, b"\x03\x06\xc6\x33\x64\x07\x81\x06\xc0\x00\x02\x35".to_vec())]);
    let said = exchange(&mut end, IPCP, 1, 3, b"\x83\x06\0\0\0\0");
    assert_eq!(nak(said), [(4, b"\x83\x06\0\0\0\0".to_vec())], "only one name server was granted");
    let said = exchange(&mut end, IPCP, 1, 4, b"");
    assert_eq!(nak(said), [(3, b"\x03\x06\xc6\x33\x64\x07".to_vec())]);
    // The old IP-Addresses option.
    let said = exchange(&mut end, IPCP, 1, 5, b"\x01\x0a\x0a\0\0\x01\x0a\0\0\x02");
    assert_eq!(nak(said)[0].0, 4);
    // An interface identifier of its own choice, but not zero, not this end's, and not none.
    for bad in [&b"\x01\x0a\0\0\0\0\0\0\0\0"[..], b"\x01\x0a\0\0\0\0\0\0\0\x01", b"", b"\x01\x04\0\0"] {
        let said = exchange(&mut end, IPV6CP, 1, 1, bad);
        assert_eq!(nak(said), [(3, b"\x01\x0a\0\0\0\0\0\0\0\x02".to_vec())]);
    }
    let said = exchange(&mut end, IPV6CP, 1, 1, b"\x01\x0a\x02\x11\x22\x33\x44\x55\x66\x77\x02\x04\x00\x4f");
    assert_eq!(nak(said)[0].0, 4, "compression of IPv6 headers");
}

/// Concentrators that name no magic number, name zero first, or reject the host's, and that demand what has no use on PPPoE.
#[test]
fn magic_numbers_that_are_missing_and_options_without_use() {
    const USELESS: &[u8] = b"\x02\x06\0\x0a\0\0\x07\x02\x08\x02\x0d\x03\x06\x11\x04\x05\xdc\x12\x02\x13\x09\x03\x02\xac\0\0\0\x01";
    let cases: [(&[u8], [u8; 4], bool); 3] = [
        (b"\x01\x04\x05\xdc\x05\x06\x01\x02\x03\x04", [1, 2, 3, 4], false),
        (b"", [0; 4], false),
        (b"", [0; 4], true),
    ];
    for (demanded, magic, is_rejected) in cases {
        let (mut end, mut identifier, mut options) = started(of_host(host(&[])));
        let mut own = options[6..].to_vec();
        let said = exchange(&mut end, LCP, 1, 1, &[USELESS, demanded].concat());
        assert_eq!(said, [(LCP, 4, 1, USELESS.to_vec())], "these and nothing else");
        if is_rejected {
            (identifier, options) = request(&exchange(&mut end, LCP, 4, identifier, &options[4..]), LCP);
            own = vec![0; 4];
        }
        // Zero is none (RFC 1661 section 6.4), and another is proposed.
        let said = exchange(&mut end, LCP, 1, 2, b"\x05\x06\0\0\0\0");
        assert!(said[0].1 == 3 && said[0].3[2..] != [0; 4], "{said:?}");
        exchange(&mut end, LCP, 2, identifier, &options);
        let said = exchange(&mut end, LCP, 1, 3, demanded);
        assert_eq!((said[0].1, &said[0].3[..]), (2, demanded));
        for data in [&b"data behind the magic number"[..], &[0x5a; 1000]] {
            let echo = exchange(&mut end, LCP, 9, 7, &[&magic[..], data].concat());
            assert_eq!(echo, [(LCP, 10, 7, [&own[..], data].concat())]);
        }
    }
}

#[test]
fn name_servers_that_are_nakked_instead_of_rejected() {
    for zero in [true, false] {
        let (mut end, mut requests) = open_host();
        for round in 1..6_u8 {
            let (identifier, options) = request(&requests, IPCP);
            if !options.windows(2).any(|pair| pair == [0x81, 6]) {
                break;
            }
            assert!(round < 5, "requested again and again");
            let server = if zero { [0; 4] } else { [192, 0, 2, round] };
            requests = exchange(&mut end, IPCP, 3, identifier, &[b"\x81\x06", &server[..]].concat());
        }
    }
}

#[test]
fn an_mru_that_is_nakked() {
    let (mut end, identifier, _) = started(of_host(host(&[])));
    let (identifier, options) = request(&exchange(&mut end, LCP, 3, identifier, b"\x01\x04\x05\xdc"), LCP);
    assert_eq!(options[..4], *b"\x01\x04\x05\xd4", "1500 cannot be received");
    let (identifier, options) = request(&exchange(&mut end, LCP, 3, identifier, b"\x01\x04\x05\xdc"), LCP);
    assert_eq!(options[..2], *b"\x05\x06", "and is not argued about");
    exchange(&mut end, LCP, 2, identifier, &options);
    // A peer without MRU and magic number; it can be sent 1492.
    exchange(&mut end, LCP, 1, 1, b"");
    assert_eq!((end.phase(), end.session.peer_mru()), (Phase::Network, 1492));

    let (mut end, identifier, _) = started(of_host(host(&[])));
    let (identifier, options) = request(&exchange(&mut end, LCP, 3, identifier, b"\x01\x04\x05\xae"), LCP);
    assert_eq!(options[..4], *b"\x01\x04\x05\xae", "1454 is as good");
    let (_, options) = request(&exchange(&mut end, LCP, 4, identifier, b"\x01\x04\x05\xae"), LCP);
    assert_eq!(options[..2], *b"\x05\x06");
    // Baby jumbo frames by discovery.
    let mut end = End::with_mru(of_host(host(&[])), 1500, 1);
    end.start();
    assert_eq!(request(&answers(&mut end), LCP).1[..4], *b"\x01\x04\x05\xdc");
}

#[test]
fn answers_that_are_not_to_the_last_request_are_dropped() {
    let (mut end, identifier, options) = started(of_host(host(&[])));
    let mut other = options.clone();
    other[9] ^= 1;
    for (code, identifier, data) in [
        (2, identifier.wrapping_add(1), &options[..]),
        (2, identifier, &other),
        (2, identifier, &options[..4]),
        (2, identifier, b""),
        (3, identifier.wrapping_sub(1), b"\x01\x04\x05\xae"),
        (4, identifier, &other),
        (4, identifier, b"\x07\x02"),
        (4, identifier, b""),
        // Out of order.
        (4, identifier, &[&options[4..], &options[..4]].concat()),
    ] {
        assert_eq!(exchange(&mut end, LCP, code, identifier, data), [], "{code} {data:?}");
    }
    exchange(&mut end, LCP, 1, 1, b"");
    assert_eq!(end.phase(), Phase::Lcp);
    exchange(&mut end, LCP, 2, identifier, &options);
    assert_eq!(end.phase(), Phase::Network);
    // A doubled Ack.
    exchange(&mut end, LCP, 2, identifier, &options);
    assert_eq!(end.phase(), Phase::Network);
}

#[test]
fn a_request_is_repeated_under_its_identifier_and_changed_under_a_new_one() {
    let (mut end, identifier, options) = started(of_host(host(&[])));
    end.pass(Duration::from_secs(3));
    let changed = exchange(&mut end, LCP, 3, identifier, b"\x05\x06\x01\x02\x03\x04");
    assert_eq!(request(&changed[..1], LCP), (identifier, options.clone()));
    let changed = request(&changed, LCP);
    assert!(changed.0 != identifier && changed.1 != options);
    exchange(&mut end, LCP, 2, changed.0, &changed.1);
    end.pass(end.now + Duration::from_secs(3));
    assert_ne!(request(&answers(&mut end), LCP).0, changed.0, "a request that was answered is spent");
}

#[test]
fn addresses_that_no_host_has_are_refused() {
    for bad in [[127, 0, 0, 1], [224, 0, 0, 5], [255, 255, 255, 255], [0, 0, 0, 9]] {
        let (mut end, requests) = open_host();
        let option = [b"\x03\x06", &bad[..]].concat();
        assert_eq!(exchange(&mut end, IPCP, 1, 1, &option), [(IPCP, 4, 1, option.clone())]);
        assert!(end.notices()[0].contains(&Ipv4Addr::from(bad).to_string()), "{:?}", end.notices());
        let (identifier, _) = request(&requests, IPCP);
        exchange(&mut end, IPCP, 3, identifier, &option);
        assert!(end.session.ipv4().is_none());
        assert!(end.session.awaits(Family::Ipv6));
        exchange(&mut end, LCP, 8, 1, b"\x80\x57");
        assert!(!end.session.awaits(Family::Ipv6), "nobody waits for what the peer does not speak");
        end.pass(Duration::from_secs(60));
        let failures = (Some(NetworkFailure::NoAddress), Some(NetworkFailure::Rejected));
        assert_eq!(end.closed(), Some(&Closed::NoNetwork { ipv4: failures.0, ipv6: failures.1 }));
    }
    // An Ack of "whatever is given" gives nothing.
    let (mut end, requests) = open_host();
    let (identifier, options) = request(&requests, IPCP);
    exchange(&mut end, IPCP, 1, 1, b"");
    exchange(&mut end, IPCP, 2, identifier, &options);
    assert!(end.session.ipv4().is_none());
}

/// What is for the one end would stay at the other.
#[test]
fn the_peers_own_address_is_refused() {
    let own = b"\x03\x06\x0a\x00\x00\x01";
    for names_itself_first in [true, false] {
        let (mut end, requests) = open_host();
        let (identifier, _) = request(&requests, IPCP);
        if names_itself_first {
            exchange(&mut end, IPCP, 1, 1, own);
        }
        let (identifier, options) = request(&exchange(&mut end, IPCP, 3, identifier, own), IPCP);
        exchange(&mut end, IPCP, 2, identifier, &options);
        if !names_itself_first {
            exchange(&mut end, IPCP, 1, 1, own);
        }
        assert!(end.session.ipv4().is_none());
        assert!(end.session.awaits(Family::Ipv6));
        let notices = end.notices();
        assert!(notices.iter().any(|notice| notice.contains("the address that is its own")), "{notices:?}");
    }
}

#[test]
fn what_a_link_says_about_itself() {
    let (mut end, _) = open_host();
    exchange(&mut end, LCP, 12, 1, b"\x11\x22\x33\x44BRAS \x1b[1m7");
    exchange(&mut end, LCP, 13, 1, b"\x11\x22\x33\x44\x00\x00\x0e\x10maintenance");
    exchange(&mut end, LCP, 11, 1, b"\x11\x22\x33\x44nothing");
    assert_eq!(
        end.notices(),
        [
            "The peer calls itself \"BRAS \\u{1b}[1m7\".",
            "The peer will end the session in 3600 s (it says \"maintenance\")."
        ]
    );
    exchange(&mut end, LCP, 12, 2, b"\x11\x22\x33\x44again");
    assert_eq!(end.notices().len(), 2);
    assert_eq!(end.phase(), Phase::Network);
}

#[test]
fn who_refuses_to_say_who_it_is_gets_no_session() {
    let (mut end, identifier, _) = started(concentrator(&[Method::ChapMd5]));
    exchange(&mut end, LCP, 1, 1, b"");
    exchange(&mut end, LCP, 4, identifier, b"\x03\x05\xc2\x23\x05");
    end.pass(Duration::from_secs(10));
    assert_eq!(end.closed(), Some(&Closed::MethodRefused));
    // Nor does a concentrator say who it is.
    let (mut end, ..) = started(concentrator(&[Method::ChapMd5]));
    assert_eq!(
        exchange(&mut end, LCP, 1, 1, b"\x03\x04\xc0\x23"),
        [(LCP, 4, 1, b"\x03\x04\xc0\x23".to_vec())]
    );
}

#[test]
fn a_host_without_a_name_does_not_authenticate() {
    let mut config = host(&[Method::Pap]);
    config.user.clear();
    let (mut end, ..) = started(of_host(config));
    assert_eq!(exchange(&mut end, LCP, 1, 1, b"\x03\x04\xc0\x23")[0].1, 4);
    exchange(&mut end, LCP, 5, 2, b"peer refused to authenticate");
    let demanded = Demanded { protocol: PAP, algorithm: None };
    assert_eq!(end.closed(), Some(&Closed::MethodNotAllowed { demanded, allowed: Vec::new() }));
}

#[test]
fn silence_of_either_end_in_authentication_is_reported() {
    let cases = [(Method::Pap, "did not answer name and password"), (Method::ChapMd5, "sent no challenge")];
    for (method, words) in cases {
        let mut end = after_lcp(of_host(host(&[method])), &demand(method));
        end.pass(Duration::from_secs(40));
        let closed = end.closed().expect("over").to_string();
        assert!(closed.contains(words), "{closed}");
    }
    let mut end = after_lcp(concentrator(&[Method::ChapMd5]), b"");
    let challenge = answers(&mut end).pop().unwrap();
    assert_eq!((challenge.0, challenge.1), (CHAP, 1));
    end.receive(&packet(CHAP, 2, challenge.2, b"\x10................user"));
    assert_eq!(end.claims().len(), 1);
    end.pass(Duration::from_secs(40));
    assert!(end.closed().expect("over").to_string().contains("no verdict"));
}

#[test]
fn nothing_granted_is_said() {
    let mut end = after_lcp(concentrator(&[]), b"");
    let claim = end.claims().pop().expect("an empty claim");
    assert_eq!((claim.user(), claim.method()), (&b""[..], None));
    let proof = claim.proof(b"").expect("nothing to prove");
    let mut grant = grant();
    (grant.ipv4, grant.ipv6) = (None, None);
    end.authenticated(Verdict::Accepted { grant, proof, message: Vec::new() });
    end.pass(Duration::from_secs(10));
    assert_eq!(end.closed(), Some(&Closed::NoNetwork { ipv4: None, ipv6: None }));
    assert!(matches!(end.actions.last(), Some(Action::Closed(_))));
}

#[test]
fn interface_identifiers_that_collide_are_replaced() {
    let mut config = host(&[]);
    config.ipv6 = Some(7);
    let mut end = after_lcp(of_host(config), b"");
    let (identifier, options) = request(&answers(&mut end), IPV6CP);
    assert_eq!(options, b"\x01\x0a\0\0\0\0\0\0\0\x07");
    let said = exchange(&mut end, IPV6CP, 1, 1, &options);
    assert_eq!(said[0].1, 3);
    assert_ne!(said[0].3, options);
    let (identifier, options) =
        request(&exchange(&mut end, IPV6CP, 3, identifier, b"\x01\x0a\0\0\0\0\0\0\0\x08"), IPV6CP);
    assert_eq!(options, b"\x01\x0a\0\0\0\0\0\0\0\x08");
    exchange(&mut end, IPV6CP, 1, 2, b"\x01\x0a\0\0\0\0\0\0\0\x07");
    exchange(&mut end, IPV6CP, 2, identifier, &options);
    assert_eq!(end.session.ipv6(), Some(Ipv6 { local: 8, peer: 7 }));
}

#[test]
fn a_good_line_comes_up_with_every_method_and_stays() {
    for methods in [&[][..], &[Method::Pap], &[Method::ChapMd5], &[Method::MsChapV2], &ALL] {
        let mut line = Line::new(of_host(host(&ALL)), concentrator(methods));
        line.start();
        // Without authentication the host's first IPCP packet comes too early.
        line.pass(Duration::from_secs(4));
        assert!(line.is_up(), "{methods:?}: {:?}", line.ends[0].actions);
        let [host, concentrator] = line.ends.each_ref().map(|end| &end.session);
        let ipv4 = Ipv4 { local: SUBSCRIBER, peer: Some(OWN), dns: [Some(DNS), None] };
        assert_eq!(host.ipv4(), Some(ipv4));
        assert_eq!(concentrator.ipv4(), Some(Ipv4 { local: OWN, peer: Some(SUBSCRIBER), dns: [None; 2] }));
        let Some(Ipv6 { local, peer: 1 }) = host.ipv6() else { panic!("{:?}", host.ipv6()) };
        assert_eq!(concentrator.ipv6(), Some(Ipv6 { local: 1, peer: local }));
        let phase = |action: &Action| match action {
            Action::Phase(phase) => Some(*phase),
            _ => None,
        };
        let phases: Vec<_> = line.ends[1].actions.iter().filter_map(phase).collect();
        assert_eq!(phases, [Phase::Auth, Phase::Network, Phase::Open]);
        // An hour of silence but for echoes.
        line.pass(Duration::from_secs(3_600));
        assert!(line.is_up() && line.ends.iter().all(|end| end.session.round_trip().is_some()));
    }
}

#[test]
fn closing_is_heard_at_the_other_end() {
    for closer in 0..2 {
        let mut line = Line::up(&ALL);
        line.ends[closer].close();
        assert_eq!(line.ends[closer].phase(), Phase::Closed);
        line.talk();
        line.pass(Duration::from_secs(10));
        assert_eq!(line.ends[closer].closed(), Some(&Closed::Requested));
        let other = line.ends[1 - closer].closed();
        assert_eq!(other, Some(&Closed::PeerEnded { message: Vec::new(), phase: Phase::Open }));
        for end in &line.ends {
            let downs = end.actions.iter().filter(|action| matches!(action, Action::Down(_))).count();
            assert_eq!(downs, 2);
            assert!(matches!(end.actions.last(), Some(Action::Closed(_))), "nothing follows");
            assert_eq!(end.session.deadline(), None);
        }
    }
}

#[test]
fn a_dead_peer_is_noticed() {
    let mut line = Line::up(&ALL);
    let end = &mut line.ends[0];
    end.pass(end.now + Duration::from_secs(37));
    assert_eq!(end.closed(), Some(&Closed::PeerSilent { echoes: 3 }));
    let mut end = End::new(of_host(host(&ALL)), 5);
    end.start();
    end.pass(Duration::from_secs(31));
    assert_eq!(end.closed(), Some(&Closed::NoAnswer { requests: 10, heard: false }));
    assert_eq!(end.sent().len(), 10);
}

#[test]
fn a_line_that_returns_to_itself_is_reported_as_looped() {
    for config in [of_host(host(&ALL)), concentrator(&[Method::Pap]), concentrator(&[])] {
        let mut end = End::new(config, 7);
        end.start();
        for _ in 0..1_000 {
            end.sent().iter().for_each(|packet| end.receive(packet));
        }
        end.pass(Duration::from_secs(100));
        let closed = end.closed().expect("over");
        assert!(matches!(closed, Closed::Looped | Closed::MethodRefused), "{closed}");
    }
}

#[test]
fn a_host_asks_for_its_own_address_and_takes_the_given_one() {
    let host = crate::session::Host { ipv4: Some(Ipv4Addr::new(203, 0, 113, 9)), ipv6: None, ..host(&ALL) };
    let mut line = Line::new(of_host(host), concentrator(&ALL));
    line.start();
    assert_eq!(line.ends[0].session.ipv4().map(|ipv4| ipv4.local), Some(SUBSCRIBER));
    line.pass(Duration::from_secs(60));
    assert_eq!(line.ends[1].phase(), Phase::Open);
    assert_eq!(line.ends[1].session.ipv6(), None, "rejected, and the session lives");
}
