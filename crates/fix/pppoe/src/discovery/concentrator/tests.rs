use super::*;
use crate::discovery::complaint::Complaint;
use crate::discovery::limits::Rate;
use crate::discovery::message::padt;
use crate::tests::{Seeded, vlans};
use std::time::Duration;

const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xac]);
const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const NOW: Time = Duration::from_secs(77);

fn place(vid: u16) -> Place {
    Place { port: 2, vlans: vlans(vid) }
}

struct Bench {
    /// Bytes of PPP payload for which frames have room.
    max_payload: u16,
    concentrator: Concentrator,
    random: Seeded,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Config)) -> Bench {
        let mut config = Config::new(b"ac1");
        config.services = vec![b"internet".to_vec(), b"voice".to_vec()];
        change(&mut config);
        let mut random = Seeded::new(1);
        Bench { concentrator: Concentrator::new(config, NOW, &mut random), random, max_payload: u16::MAX }
    }

    fn at(&mut self, source: MacAddress, vid: u16, payload: &[u8]) -> Answer {
        let to_all = payload.get(1) == Some(&Code::PADI.0);
        let destination = if to_all { MacAddress::BROADCAST } else { OWN };
        self.to(source, destination, vid, payload)
    }

    fn to(&mut self, source: MacAddress, destination: MacAddress, vid: u16, payload: &[u8]) -> Answer {
        let packet = Packet { source, destination, payload };
        let arrival = Arrival { place: place(vid), own: OWN, max_payload: self.max_payload, packet };
        self.concentrator.receive(NOW, &arrival, &mut self.random)
    }

    fn offer(&mut self, source: MacAddress, vid: u16, payload: &[u8]) -> Vec<u8> {
        match self.at(source, vid, payload) {
            Answer::Offer(payload) => payload,
            other => panic!("{other:?}"),
        }
    }
}

/// A PADI for any service.
fn any_padi() -> Vec<u8> {
    padi(b"").finish().expect("it fits")
}

fn padi(service: &[u8]) -> Builder {
    Builder::new(Code::PADI, 0).tag(TagType::SERVICE_NAME, service).tag(TagType::HOST_UNIQ, b"uniq")
}

fn padr(service: &[u8], pado: &[u8]) -> Vec<u8> {
    let offer = Message::parse(pado).expect("an offer");
    let packet = Builder::new(Code::PADR, 0)
        .tag(TagType::SERVICE_NAME, service)
        .tag(TagType::HOST_UNIQ, b"uniq")
        .tag_if(TagType::AC_COOKIE, offer.cookie())
        .tag_if(TagType::RELAY_SESSION_ID, offer.relay_session_id())
        .max_payload(offer.max_payload());
    packet.finish().expect("it fits")
}

fn request(answer: Answer) -> Request {
    match answer {
        Answer::Request(request) => *request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_offer_and_a_session_echo_what_came() {
    let mut bench = Bench::new(|config| config.max_payload = 1508);
    let line = b"\x00\x00\x0d\xe9\x01\x05eth 1\x02\x02me";
    let initiation = padi(b"voice")
        .tag(TagType::RELAY_SESSION_ID, b"relay-id-012")
        .tag(TagType::VENDOR_SPECIFIC, line)
        .max_payload(Some(1500));
    let pado = bench.offer(HOST, 35, &initiation.finish().expect("it fits"));
    let offer = Message::parse(&pado).expect("an offer");
    assert_eq!((offer.code(), offer.session(), offer.ac_name()), (Code::PADO, 0, Some(&b"ac1"[..])));
    assert_eq!(offer.service_names().collect::<Vec<_>>(), [&b"voice"[..], b"internet"]);
    assert_eq!((offer.host_uniq(), offer.max_payload()), (Some(&b"uniq"[..]), Some(1500)));
    assert_eq!(offer.relay_session_id(), Some(&b"relay-id-012"[..]));
    assert_eq!(offer.line(), None, "what an access node says is not for the host");
    let mut session_request = padr(b"voice", &pado);
    session_request.extend(b"\x01\x05\x00\x0f");
    session_request.extend(line);
    session_request[5] += 4 + line.len() as u8;
    let request = request(bench.at(HOST, 35, &session_request));
    assert_eq!((request.host, request.place, request.is_served), (HOST, place(35), true));
    assert_eq!((&request.service[..], request.max_payload), (&b"voice"[..], 1500));
    let line = request.line.as_ref().expect("a line");
    assert_eq!((&line.circuit[..], &line.remote[..]), (&b"eth 1"[..], &b"me"[..]));
    let pads = request.confirm(0x1234).expect("it fits");
    let pads = Message::parse(&pads).expect("a PADS");
    assert_eq!((pads.code(), pads.session(), pads.service_name()), (Code::PADS, 0x1234, &b"voice"[..]));
    assert_eq!((pads.host_uniq(), pads.max_payload()), (Some(&b"uniq"[..]), Some(1500)));
    assert_eq!((pads.relay_session_id(), pads.cookie()), (Some(&b"relay-id-012"[..]), None));
    let refused = request.refuse(Kind::AcSystem, "all addresses are taken").expect("it fits");
    let refused = Message::parse(&refused).expect("a PADS");
    assert_eq!((refused.session(), refused.host_uniq()), (0, Some(&b"uniq"[..])));
    let complaint = Complaint::of(&refused).expect("an error");
    assert_eq!(complaint.to_string(), "AC-System-Error \"all addresses are taken\"");
    assert_eq!((bench.concentrator.counters().offers, bench.concentrator.counters().requests), (1, 1));
}

#[test]
fn max_payload_is_answered_within_the_own_limit_and_the_room_of_the_line() {
    for (own, max_payload, requested, answered) in [
        (1508, u16::MAX, Some(1500), Some(1500)),
        (1500, u16::MAX, Some(9000), Some(1500)),
        (1492, u16::MAX, Some(1500), None),
        (1508, u16::MAX, Some(1492), None),
        (1508, u16::MAX, Some(0), None),
        (1508, u16::MAX, None, None),
        (1508, 1496, Some(1500), Some(1496)),
        (1508, 1492, Some(1500), None),
        (1508, 1484, Some(1500), None),
        (1508, 1484, None, None),
    ] {
        let mut bench = Bench::new(|config| config.max_payload = own);
        bench.max_payload = max_payload;
        let pado = bench.offer(HOST, 1, &padi(b"").max_payload(requested).finish().expect("it fits"));
        assert_eq!(Message::parse(&pado).expect("an offer").max_payload(), answered);
        // Requested in the PADR only, which RFC 4638 does not have, it is answered all the same.
        let request = request(bench.at(HOST, 1, &padr(b"", &pado)));
        let expected = answered.unwrap_or(1492).min(max_payload);
        assert_eq!(request.max_payload, expected, "{own} {max_payload} {requested:?}");
    }
}

#[test]
fn a_service_that_is_not_served_is_not_offered_and_refused() {
    let mut bench = Bench::new(|config| config.any_service = false);
    let of = |service: &[u8]| padi(service).finish().expect("it fits");
    assert_eq!(bench.at(HOST, 1, &of(b"tv")), Answer::Ignored(Reason::Service));
    let pado = bench.offer(HOST, 1, &of(b""));
    let services: Vec<_> = Message::parse(&pado).expect("an offer").service_names().collect();
    assert_eq!(services, [&b""[..], b"internet", b"voice"]);
    assert!(!request(bench.at(HOST, 1, &padr(b"tv", &pado))).is_served);
    assert!(request(bench.at(HOST, 1, &padr(b"", &pado))).is_served);
    let mut bench = Bench::new(|_| {});
    let pado = bench.offer(HOST, 1, &of(b"tv"));
    assert!(request(bench.at(HOST, 1, &padr(b"tv", &pado))).is_served);
}

/// Attack 7: PADI from invented addresses cost nothing that stays, and no more answers than rates allow.
#[test]
fn a_flood_of_initiations_leaves_nothing_behind() {
    let rates = Rates {
        host: Rate { per_second: 1, burst: 5 },
        vlan: Rate { per_second: 100, burst: 200 },
        port: Rate { per_second: 1000, burst: 2000 },
    };
    let mut bench = Bench::new(|config| config.offers = rates);
    let bytes = any_padi();
    let flood = 50_000_u64;
    for number in 0..flood {
        let [.., a, b, c, d] = number.to_be_bytes();
        bench.at(MacAddress([2, 9, a, b, c, d]), 666, &bytes);
    }
    let counters = bench.concentrator.counters().clone();
    assert_eq!(counters.offers, 200);
    assert_eq!(counters.ignored, [(Reason::VlanRate, flood - 200)].into());
    // A subscriber of another VLAN is served meanwhile.
    let pado = bench.offer(HOST, 35, &bytes);
    assert!(matches!(bench.at(HOST, 35, &padr(b"", &pado)), Answer::Request(_)));
}

/// Attack 7: all that is known of an offer is in its cookie: a machine that has never seen the PADI, and has the same keys,
/// takes the PADR.
#[test]
fn an_offer_is_not_remembered() {
    let mut bench = Bench::new(|_| {});
    let pado = bench.offer(HOST, 35, &any_padi());
    let mut twin = Bench::new(|_| {});
    assert!(matches!(twin.at(HOST, 35, &padr(b"", &pado)), Answer::Request(_)));
    let mut stranger = Bench::new(|_| {});
    stranger.concentrator = Concentrator::new(Config::new(b"ac1"), NOW, &mut Seeded::new(2));
    let ignored = Answer::Ignored(Reason::Forged);
    assert_eq!(stranger.at(HOST, 35, &padr(b"", &pado)), ignored);
}

/// Attack 8: PADR without a cookie, or with an invented one, are not handed on, and are held to rates of their own.
#[test]
fn a_flood_of_requests_reaches_nobody() {
    let mut bench = Bench::new(|_| {});
    let pado = bench.offer(HOST, 35, &any_padi());
    let none = Builder::new(Code::PADR, 0).tag(TagType::SERVICE_NAME, b"").finish().expect("it fits");
    let invented = Builder::new(Code::PADR, 0).tag(TagType::AC_COOKIE, &[0; 29]).finish().expect("it fits");
    for number in 0..40_000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        let source = MacAddress([2, 9, a, b, c, d]);
        let payload = if number.is_multiple_of(2) { &none } else { &invented };
        assert!(matches!(bench.at(source, 666, payload), Answer::Ignored(_)));
    }
    let counters = bench.concentrator.counters().clone();
    assert_eq!(counters.requests, 0);
    assert_eq!(counters.ignored, [(Reason::VlanRate, 16_000), (Reason::Forged, 24_000)].into());
    assert!(matches!(bench.at(HOST, 35, &padr(b"", &pado)), Answer::Request(_)));
}

/// Attack 10: a PADT counts from a single station to this one, as all packets do; only a PADI may be for all.
#[test]
fn packets_are_from_one_station_to_this_one() {
    let mut bench = Bench::new(|_| {});
    let padi = any_padi();
    let pado = bench.offer(HOST, 35, &padi);
    let (padr, end) = (padr(b"", &pado), padt(7, None));
    assert!(matches!(bench.to(HOST, OWN, 35, &padi), Answer::Offer(_)));
    assert_eq!(bench.at(HOST, 35, &end), Answer::Terminate { session: 7 });
    let (all, group) = (MacAddress::BROADCAST, MacAddress([0x33, 0x33, 0, 0, 0, 1]));
    for (source, destination, payload, reason) in [
        (HOST, group, &padi[..], Reason::Destination),
        (HOST, all, &padr, Reason::Destination),
        (HOST, all, &end, Reason::Destination),
        (HOST, HOST, &end, Reason::Destination),
        (all, OWN, &end, Reason::Source),
        (OWN, OWN, &end, Reason::Source),
        (HOST, OWN, &padt(0, None), Reason::Session),
        (HOST, OWN, &padt(0xffff, None), Reason::Session),
        (HOST, OWN, &pado, Reason::Concentrator),
        (HOST, OWN, b"\x11\x09", Reason::Malformed),
    ] {
        let answer = bench.to(source, destination, 35, payload);
        assert_eq!(answer, Answer::Ignored(reason), "{payload:02x?}");
    }
    assert_eq!(bench.concentrator.counters().terminations, 1);
}

/// Attack 1: an echo that leaves no room for the rest of the answer.
#[test]
fn what_cannot_be_echoed_is_not_answered() {
    let mut bench = Bench::new(|_| {});
    let with =
        |bytes: usize| padi(b"").tag(TagType::RELAY_SESSION_ID, &vec![7; bytes]).finish().expect("it fits");
    assert_eq!(bench.at(HOST, 1, &with(1450)), Answer::Ignored(Reason::TooLong));
    assert!(bench.offer(HOST, 1, &with(1380)).len() > 1400);
}

#[test]
fn names_that_leave_no_room_are_found_beforehand() {
    let mut config = Config::new(b"ac1");
    assert_eq!(config.check(), Ok(()));
    config.services = (0..100).map(|number| format!("service number {number}").into_bytes()).collect();
    assert!(config.check().is_err());
}
