//! Attacks on a PPP session, by the numbers of the project's list.

use super::line::{
    CHAP, End, IPCP, IPV6CP, LCP, Line, PAP, SECRET, SUBSCRIBER, after_lcp, agree, answers, concentrator,
    demand, host, of_host, packet, parts, started, verdict,
};
use crate::session::{Action, Closed, Demanded, Family, Method, NetworkFailure, Phase, Verdict};
use crate::{chap, ms_chap, pap};
use std::time::Duration;

fn sent_of(end: &mut End, protocol: u16) -> Vec<(u8, u8, Vec<u8>)> {
    let sent = answers(end).into_iter().filter(|answer| answer.0 == protocol);
    sent.map(|(_, code, identifier, data)| (code, identifier, data)).collect()
}

/// Attack 2: zero-length and oversized options in LCP, IPCP and IPV6CP.
#[test]
fn options_that_do_not_fit_are_dropped_and_named() {
    let bad: [(&[u8], &str); 5] = [
        (b"\x01\x00\x05\xd4", "has length 0, the least is 2"),
        (b"\x01\x01", "has length 1, the least is 2"),
        (b"\x03\x06\x01\x02", "has length 6, with 4 bytes left"),
        (b"\x01\x04\x05\xd4\x03", "ends behind its type"),
        (b"\x05\xff\x01\x02\x03\x04", "has length 255, with 6 bytes left"),
    ];
    for (options, words) in bad {
        for end in 0..2 {
            for protocol in [LCP, IPCP, IPV6CP] {
                for code in 1..=4 {
                    let mut line = Line::up(&[Method::Pap]);
                    let end = &mut line.ends[end];
                    // Answers are looked at only while one is awaited, so these come as requests when open.
                    end.receive(&packet(protocol, code, 1, options));
                    assert_eq!(end.sent(), [[0_u8; 0]; 0], "no answer");
                    assert_eq!(end.phase(), Phase::Open);
                    let notices = end.notices();
                    assert!(notices.len() == 1 && notices[0].contains(words), "{notices:?}");
                }
            }
        }
        // A packet whose own length lies.
        for length in [0_u16, 3, 9, 0xffff] {
            let mut line = Line::up(&[Method::Pap]);
            let lie = [&LCP.to_be_bytes()[..], &[1, 1], &length.to_be_bytes(), b"\x05\x04"].concat();
            line.ends[0].receive(&lie);
            assert!(line.ends[0].sent().is_empty() && line.ends[0].notices().len() == 1);
        }
    }
}

/// Attack 5: compressed protocol field. It is dropped, and no option that would allow it is agreed to or requested.
#[test]
fn compressed_protocol_fields_are_dropped() {
    let mut line = Line::up(&[Method::Pap]);
    for bytes in
        [&b"\x21\x45\x00\x00\x14"[..], b"\xff\x03\xc0\x21\x09\x01\x00\x08\0\0\0\0", b"\xc0", b"\xc0\x20", b""]
    {
        line.ends[0].receive(bytes);
        assert!(line.ends[0].sent().is_empty(), "{bytes:?}");
    }
    assert_eq!(line.ends[0].notices().len(), 1, "one notice for all");
    assert!(line.is_up());

    let requests =
        line.trace.iter().map(|(_, bytes)| parts(bytes)).filter(|sent| (sent.0, sent.1) == (LCP, 1));
    for (.., options) in requests {
        let unwanted = |pair: &[u8]| [[7, 2], [8, 2], [2, 6]].iter().any(|option| option == pair);
        assert!(!options.windows(2).any(unwanted), "{options:?}");
    }
    let (mut end, ..) = started(of_host(host(&[])));
    let unwanted = b"\x02\x06\0\0\0\0\x07\x02\x08\x02\x04\x04\xc0\x25\x09\x03\x02\x11\x04\x05\xdc";
    end.receive(&packet(LCP, 1, 9, &[b"\x01\x04\x05\xd4", &unwanted[..]].concat()));
    assert_eq!(sent_of(&mut end, LCP), [(4, 9, unwanted.to_vec())]);
}

/// Attack 6: an echo reply is never larger than what the peer receives; nor is a reject.
#[test]
fn echo_replies_keep_to_the_mru_of_the_peer() {
    let mut end = after_lcp(of_host(host(&[])), b"\x01\x04\x01\x00\x05\x06\0\0\0\x09");
    assert_eq!(end.session.peer_mru(), 256);
    end.sent();
    let long = vec![0x55; 1_400];
    end.receive(&packet(LCP, 9, 5, &[&[0, 0, 0, 9], &long[..]].concat()));
    let replies = sent_of(&mut end, LCP);
    assert_eq!((replies.len(), replies[0].0, replies[0].1, replies[0].2.len()), (1, 10, 5, 256 - 4));
    end.receive(&packet(LCP, 99, 6, &long));
    assert_eq!(sent_of(&mut end, LCP)[0].2.len(), 256 - 4);
    end.receive(&packet(0x80fd, 1, 6, &long));
    assert_eq!(sent_of(&mut end, LCP)[0].2.len(), 256 - 4);
    // A reply to a request that has no room for a magic number would have to invent one.
    end.receive(&packet(LCP, 9, 7, &[0; 3]));
    assert!(end.sent().is_empty());
    // An MRU in which nothing fits is not agreed to.
    let (mut end, ..) = started(of_host(host(&[])));
    end.receive(&packet(LCP, 1, 1, b"\x01\x04\x00\x05"));
    assert_eq!(sent_of(&mut end, LCP), [(3, 1, b"\x01\x04\x00\x80".to_vec())]);
}

/// Attack 13: silent downgrade to PAP. A method that is not in the list is never used, at the start and in mid-session, and the
/// host says why.
#[test]
fn methods_that_are_not_allowed_are_never_used() {
    let allowed = [Method::MsChapV2, Method::ChapMd5];
    let (mut end, ..) = started(of_host(host(&allowed)));
    let mut said = Vec::new();
    for identifier in 0..10 {
        end.receive(&packet(LCP, 1, identifier, &demand(Method::Pap)));
        said.extend(sent_of(&mut end, LCP));
        // An eager concentrator does not wait, and the password stays here.
        end.receive(&packet(PAP, pap::ACK, 1, b"\0"));
    }
    assert_eq!(said[0], (3, 0, demand(Method::MsChapV2)));
    assert_eq!(said[1], (3, 1, demand(Method::ChapMd5)));
    assert!(said.iter().all(|(code, _, _)| matches!(code, 3 | 5)), "{said:?}");
    end.pass(Duration::from_secs(60));
    let demanded = Demanded { protocol: PAP, algorithm: None };
    let expected = Closed::MethodNotAllowed { demanded, allowed: allowed.to_vec() };
    assert_eq!(end.closed(), Some(&expected));
    assert!(expected.to_string().contains("demands PAP"), "{expected}");
    assert!(end.notices()[0].contains("demands PAP"));

    let mut line = Line::new(of_host(host(&[Method::ChapMd5])), concentrator(&[Method::ChapMd5]));
    line.start();
    assert!(line.is_up());
    let host_end = &mut line.ends[0];
    host_end.receive(&packet(LCP, 1, 9, &demand(Method::Pap)));
    let sent = host_end.sent();
    assert!(sent.iter().all(|sent| parts(sent).0 != PAP && (parts(sent).0, parts(sent).1) != (LCP, 2)));

    // A concentrator that offers only PAP, where PAP is allowed, is as good as any.
    let mut end = after_lcp(of_host(host(&[Method::ChapMd5, Method::Pap])), &demand(Method::Pap));
    assert_eq!(sent_of(&mut end, PAP), [(pap::REQUEST, 1, pap::request(b"user@isp", SECRET))]);
}

fn challenge(end: &mut End) -> (u8, Vec<u8>) {
    let (code, identifier, data) = sent_of(end, CHAP).pop().expect("a challenge");
    assert_eq!(code, chap::CHALLENGE);
    (identifier, chap::parse_value(code, &data).unwrap().0.to_vec())
}

/// Attack 14: CHAP reflection. Who challenges answers no challenge, least its own; a host answers none that it issued itself.
#[test]
fn challenges_are_not_reflected() {
    for method in [Method::ChapMd5, Method::MsChapV2] {
        let mut end = after_lcp(concentrator(&[method]), b"");
        let (identifier, value) = challenge(&mut end);
        end.receive(&packet(CHAP, chap::CHALLENGE, identifier, &chap::value(&value, b"ac")));
        end.receive(&packet(CHAP, chap::CHALLENGE, 200, &chap::value(&[7; 16], b"ac")));
        assert!(end.sent().is_empty() && end.claims().is_empty());
        assert!(end.notices()[0].contains("challenge that this end had issued"), "{:?}", end.notices());
    }
    let mut end = after_lcp(of_host(host(&[Method::MsChapV2])), b"\x03\x05\xc2\x23\x81");
    end.sent();
    end.receive(&packet(CHAP, chap::CHALLENGE, 1, &chap::value(&[9; 16], b"ac")));
    let response = sent_of(&mut end, CHAP).pop().unwrap();
    let (own, _) = ms_chap::parse_response_value(chap::parse_value(2, &response.2).unwrap().0).unwrap();
    end.receive(&packet(CHAP, chap::CHALLENGE, 2, &chap::value(&own, b"ac")));
    assert!(end.sent().is_empty());
    assert!(end.notices()[0].contains("challenge that this end had issued"));
    // Nor does it answer CHAP where PAP was agreed to, or where nothing was.
    for options in [&b"\x03\x04\xc0\x23"[..], b""] {
        let mut end = after_lcp(of_host(host(&[Method::Pap])), options);
        end.receive(&packet(CHAP, chap::CHALLENGE, 1, &chap::value(&[9; 16], b"ac")));
        assert!(sent_of(&mut end, CHAP).is_empty());
    }
}

/// Attack 15: challenge reuse. Every challenge and identifier is new; the response to an older one proves nothing.
#[test]
fn challenges_are_good_for_one_claim() {
    let mut seen = std::collections::HashSet::new();
    let mut end = after_lcp(concentrator(&[Method::ChapMd5]), b"");
    let (first, old) = challenge(&mut end);
    seen.insert(old.clone());
    let mut last = (first, old.clone());
    for second in 1..=9 {
        end.pass(Duration::from_secs(3 * second));
        let (identifier, value) = challenge(&mut end);
        assert_ne!(identifier, last.0, "the identifier changes");
        assert!(seen.insert(value.clone()), "the challenge is new");
        last = (identifier, value);
    }
    // Under `identifier`, to a challenge.
    let response = |identifier, (of, value): (u8, &[u8])| {
        let proof = chap::md5_response(of, SECRET, value);
        packet(CHAP, chap::RESPONSE, identifier, &chap::value(&proof, b"user@isp"))
    };
    end.receive(&response(first, (first, &old)));
    assert!(end.claims().is_empty(), "the response to an old challenge");
    // Under the identifier of the new one it is a claim that no secret proves.
    end.receive(&response(last.0, (first, &old)));
    let claims = end.claims();
    assert!(claims.len() == 1 && claims[0].proof(SECRET).is_none());
    end.authenticated(Verdict::Refused { message: Vec::new() });
    // One challenge, one claim.
    end.receive(&response(last.0, (last.0, &last.1)));
    assert!(end.claims().is_empty());
    end.pass(Duration::from_secs(100));
    assert_eq!(end.closed(), Some(&Closed::SubscriberRefused { user: b"user@isp".to_vec() }));
}

/// Attack 18: endless Nak or Reject, of requests and in answer to them, in LCP and above. It ends, with a reason.
#[test]
fn endless_refusals_end() {
    // LCP: every request is nak'ed with another magic number or MRU, or rejected, or both ends' patience is tried.
    let refusals: [(u8, &[u8]); 4] =
        [(3, b"\x05\x06\x01\x02\x03\x04"), (3, b"\x01\x04\x02\x00"), (3, b"\x63\x02"), (3, b"")];
    for config in [of_host(host(&[])), concentrator(&[Method::Pap])] {
        for (code, options) in refusals {
            let mut end = End::new(config.clone(), 1);
            end.start();
            let mut requests = 0;
            while end.closed().is_none() && requests < 100 {
                let last = sent_of(&mut end, LCP).into_iter().rfind(|(code, ..)| *code == 1);
                let Some((_, identifier, _)) = last else { break };
                requests += 1;
                end.receive(&packet(LCP, code, identifier, options));
            }
            end.pass(Duration::from_secs(100));
            assert_eq!(end.closed(), Some(&Closed::NoAgreement), "{options:?}");
            assert!(requests <= 12, "{requests} requests");
        }
    }
    // Requests that cannot be agreed to: naks become rejects, and then it is over.
    for options in [&b"\x01\x04\x00\x05"[..], b"\x07\x02"] {
        let (mut end, ..) = started(of_host(host(&[])));
        for identifier in 0..50 {
            end.receive(&packet(LCP, 1, identifier, options));
        }
        let sent = sent_of(&mut end, LCP);
        let count = |expected: u8| sent.iter().filter(|(code, ..)| *code == expected).count();
        assert!(count(3) <= 5 && count(4) <= 6, "{sent:?}");
        assert_eq!(end.phase(), Phase::Closed);
        end.pass(Duration::from_secs(100));
        assert_eq!(end.closed(), Some(&Closed::NoAgreement));
    }
    // Agreeing to everything and never being agreed to.
    let (mut end, ..) = started(of_host(host(&[])));
    for second in 0..200 {
        end.pass(Duration::from_secs(second));
        end.receive(&packet(LCP, 1, second as u8, b"\x07\x02"));
        end.receive(&packet(LCP, 6, 0, b""));
    }
    assert!(end.closed().is_some());
    // Whoever sends something else than answers is somebody all the same.
    let (mut end, ..) = started(of_host(host(&[])));
    for second in 0..100 {
        end.pass(Duration::from_secs(second));
        end.receive(&packet(LCP, 6, 0, b""));
    }
    let closed = end.closed().expect("it ends");
    assert!(matches!(closed, Closed::NoAnswer { heard: true, .. }), "{closed:?}");
    assert!(closed.to_string().contains("though it sends LCP packets"), "{closed}");
    // IPCP: a subscriber that insists on another address loses IPv4, not IPv6.
    let mut line = Line::up(&[Method::Pap]);
    let end = &mut line.ends[1];
    for identifier in 0..50 {
        end.receive(&packet(IPCP, 1, identifier, b"\x03\x06\xcb\x00\x71\x01"));
    }
    assert!(end.actions.contains(&Action::Down(Family::Ipv4)));
    assert!(end.sent().len() < 60);
    assert_eq!((end.phase(), end.session.ipv4()), (Phase::Open, None));
    let notices = end.notices();
    assert!(notices.iter().any(|notice| notice == "IPv4 is not there: no agreement."), "{notices:?}");
}

/// Attack 19: LCP restarted in mid-session. What was up is down at once, and nothing flows before authentication was done anew.
#[test]
fn a_restart_of_lcp_begins_everything_anew() {
    for method in [Method::Pap, Method::ChapMd5, Method::MsChapV2] {
        for restarted in 0..2 {
            let mut line = Line::up(&[method]);
            let end = &mut line.ends[restarted];
            end.receive(&packet(LCP, 1, 200, b"\x01\x04\x05\xd4\x05\x06\x01\x02\x03\x04"));
            assert!(end.actions.contains(&Action::Down(Family::Ipv4)));
            assert!(end.actions.contains(&Action::Down(Family::Ipv6)));
            assert_eq!((end.phase(), end.session.ipv4(), end.session.ipv6()), (Phase::Lcp, None, None));
            if restarted == 1 {
                // A subscriber that goes on as if it had been accepted.
                agree(end, LCP);
                assert_eq!(end.phase(), Phase::Auth);
                end.sent();
                end.receive(&packet(IPCP, 1, 1, &[b"\x03\x06", &SUBSCRIBER.octets()[..]].concat()));
                end.receive(&packet(IPV6CP, 1, 1, b"\x01\x0a\0\0\0\0\0\0\0\x09"));
                assert!(end.sent().is_empty() && end.session.ipv4().is_none());
                end.pass(end.now + Duration::from_secs(40));
                let closed = end.closed().expect("over");
                assert!(closed.to_string().contains("did not say who it is"), "{closed}");
            }
        }
    }
    // A verdict on a claim of before the restart is no verdict on what comes after it.
    let mut end = after_lcp(concentrator(&[Method::Pap]), b"");
    end.sent();
    end.receive(&packet(PAP, pap::REQUEST, 1, &pap::request(b"user@isp", SECRET)));
    let late = end.claims().pop().expect("a claim");
    end.receive(&packet(LCP, 1, 78, b""));
    agree(&mut end, LCP);
    end.receive(&packet(PAP, pap::REQUEST, 1, &pap::request(b"mallory", b"guess")));
    end.authenticated(verdict(&late));
    assert_eq!(end.phase(), Phase::Auth);
    let claim = end.claims().pop().expect("a claim");
    assert!(matches!(verdict(&claim), Verdict::Refused { .. }));

    // Who does nothing else is sent away.
    let mut line = Line::up(&[Method::Pap]);
    let end = &mut line.ends[1];
    for identifier in 0..20 {
        if end.closed().is_some() || end.phase() == Phase::Closed {
            break;
        }
        end.receive(&packet(LCP, 1, identifier, b""));
        agree(end, LCP);
    }
    end.pass(end.now + Duration::from_secs(20));
    assert_eq!(end.closed(), Some(&Closed::Restarts { times: 11 }));
}

/// A peer that begins IPCP anew without end, and comes up each time, is sent away: every cycle costs routes and name servers.
#[test]
fn a_restart_of_ipcp_without_end_ends_the_session() {
    let mut line = Line::up(&[Method::Pap]);
    let end = &mut line.ends[1];
    for identifier in 0..100 {
        // As fast as answers are sent at all.
        end.pass(end.now + Duration::from_secs(1));
        if end.phase() == Phase::Closed {
            break;
        }
        end.receive(&packet(IPCP, 1, identifier, &[b"\x03\x06", &SUBSCRIBER.octets()[..]].concat()));
        agree(end, IPCP);
    }
    assert_eq!(end.phase(), Phase::Closed);
    end.pass(end.now + Duration::from_secs(20));
    assert!(matches!(end.closed(), Some(Closed::NetworkRestarts { times: 21 })), "{:?}", end.closed());
}

/// Both ends that are real come up again after a restart, as when a concentrator does so after a while.
#[test]
fn a_restart_of_lcp_ends_well_between_honest_ends() {
    for restarted in 0..2 {
        let mut line = Line::up(&[Method::ChapMd5]);
        line.ends[restarted].receive(&packet(LCP, 6, 200, b""));
        assert_eq!(line.ends[restarted].phase(), Phase::Lcp);
        line.talk();
        line.pass(Duration::from_secs(10));
        assert!(line.is_up(), "{:?}", line.ends[1].actions);
    }
}

/// Attack 20: repeated authentication gets the same answer, without a second claim, and so many a second.
#[test]
fn repeated_authentication_changes_nothing() {
    let mut end = after_lcp(concentrator(&[Method::Pap]), b"");
    end.sent();
    let request = |identifier| packet(PAP, pap::REQUEST, identifier, &pap::request(b"user@isp", SECRET));
    end.receive(&request(1));
    let claim = end.claims().pop().expect("a claim");
    // Again before the verdict: the verdict answers the last one.
    end.receive(&request(2));
    assert!(end.claims().is_empty());
    end.authenticated(verdict(&claim));
    assert_eq!(sent_of(&mut end, PAP), [(pap::ACK, 2, b"\x07welcome".to_vec())]);
    let other = packet(PAP, pap::REQUEST, 4, &pap::request(b"mallory", b"guess"));
    for again in [request(3), other] {
        end.receive(&again);
        let said = sent_of(&mut end, PAP);
        assert_eq!((said.len(), said[0].0, &said[0].2[..]), (1, pap::ACK, &b"\x07welcome"[..]));
    }
    end.authenticated(verdict(&claim));
    assert!(end.claims().is_empty() && sent_of(&mut end, PAP).is_empty());
    for identifier in 0..=255 {
        end.receive(&request(identifier));
    }
    assert!(end.sent().len() <= 16, "so many a second");

    for method in [Method::ChapMd5, Method::MsChapV2] {
        let mut line = Line::up(&[method]);
        let of = |from: usize, code: u8| {
            let is_it = |sent: &[u8]| (parts(sent).0, parts(sent).1) == (CHAP, code);
            let found = line.trace.iter().rev().find(|(end, sent)| *end == from && is_it(sent));
            found.expect("a packet").1.clone()
        };
        let (response, success) = (of(0, chap::RESPONSE), of(1, chap::SUCCESS));
        for _ in 0..3 {
            line.ends[1].receive(&response);
            assert_eq!(line.ends[1].sent(), std::slice::from_ref(&success));
        }
        // A forged response under the same identifier gets no other answer than the right one did.
        let mut forged = response.clone();
        forged[10] ^= 1;
        line.ends[1].receive(&forged);
        assert!(line.ends[1].claims().is_empty());
        assert!(line.is_up());
        // The host's side: a failure that comes late, and successes without a response, change nothing.
        line.ends[0].receive(&packet(CHAP, chap::FAILURE, parts(&success).2, b"E=691"));
        line.ends[0].receive(&success);
        assert!(line.is_up() && line.ends[0].sent().is_empty());
        let challenge = packet(CHAP, chap::CHALLENGE, 9, &chap::value(&[1; 16], b"ac"));
        (0..200).for_each(|_| line.ends[0].receive(&challenge));
        assert!(line.ends[0].sent().len() <= 16);
    }
}

/// A concentrator that says yes without knowing the password is found out by MS-CHAPv2.
#[test]
fn an_impostor_is_found_out() {
    for success in [&b"S=0000000000000000000000000000000000000000 M=ok"[..], b"M=ok", b""] {
        let mut end = after_lcp(of_host(host(&[Method::MsChapV2])), b"\x03\x05\xc2\x23\x81");
        // Success without a request.
        end.receive(&packet(CHAP, chap::SUCCESS, 1, success));
        assert_eq!(end.phase(), Phase::Auth);
        end.receive(&packet(CHAP, chap::CHALLENGE, 1, &chap::value(&[9; 16], b"ac")));
        end.receive(&packet(CHAP, chap::SUCCESS, 1, success));
        end.pass(Duration::from_secs(20));
        assert_eq!(end.closed(), Some(&Closed::Impostor));
    }
}

/// One network protocol's end does not end the other, unknown ones do no harm, and with none left it is over.
#[test]
fn network_protocols_end_one_by_one() {
    let mut line = Line::up(&[Method::Pap]);
    let end = &mut line.ends[0];
    end.receive(&packet(0x80fd, 1, 1, b"\x12\x06\0\0\0\x40"));
    assert_eq!(sent_of(end, LCP), [(8, 1, b"\x80\xfd\x01\x01\x00\x0a\x12\x06\0\0\0\x40".to_vec())]);
    end.receive(&packet(LCP, 8, 1, b"\x80\x57\x01\x01\x00\x04"));
    assert_eq!(end.actions.iter().filter(|action| matches!(action, Action::Down(_))).count(), 1);
    assert!(end.session.ipv4().is_some() && end.phase() == Phase::Open);
    end.receive(&packet(LCP, 8, 2, b"\x80\x21\x01\x01\x00\x04"));
    end.pass(end.now + Duration::from_secs(60));
    let rejected = Some(NetworkFailure::Rejected);
    assert_eq!(end.closed(), Some(&Closed::NoNetwork { ipv4: rejected, ipv6: rejected }));

    // A flapping one: ended by the peer, begun again by the peer, as often as it likes.
    let mut line = Line::up(&[Method::Pap]);
    let end = &mut line.ends[1];
    for round in 0..20_u8 {
        end.receive(&packet(IPCP, 5, 100 + round, b""));
        assert_eq!((end.session.ipv4(), end.phase()), (None, Phase::Open));
        end.pass(end.now + Duration::from_secs(4));
        end.sent();
        end.receive(&packet(IPCP, 1, round, &[b"\x03\x06", &SUBSCRIBER.octets()[..]].concat()));
        agree(end, IPCP);
        assert!(end.session.ipv4().is_some(), "round {round}");
    }
}
