use super::*;
use crate::discovery::complaint::Kind;
use crate::tests::Seeded;

const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const NOW: Time = Duration::from_secs(500);

fn ac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1, number])
}

/// A host, and what it sent last.
struct Bench {
    host: Host,
    now: Time,
    actions: Vec<Action>,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Config)) -> Bench {
        Bench::seeded(1, change)
    }

    fn seeded(seed: u64, change: impl FnOnce(&mut Config)) -> Bench {
        let mut config = Config::default();
        change(&mut config);
        let mut bench = Bench { host: Host::new(Arc::new(config), OWN), now: NOW, actions: Vec::new() };
        bench.host.start(NOW, &mut Seeded::new(seed), &mut bench.actions);
        bench
    }

    fn done(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// The only packet sent since the last time.
    fn sent(&mut self) -> (MacAddress, Vec<u8>) {
        match &self.done()[..] {
            [Action::Send { destination, payload }] => (*destination, payload.clone()),
            other => panic!("{other:?}"),
        }
    }

    /// The concentrator of this number sends this.
    fn answer(&mut self, from: u8, packet: Builder) {
        self.come(from, &packet.finish().expect("it fits"));
    }

    fn come(&mut self, from: u8, payload: &[u8]) -> Option<Terminated> {
        self.between(ac(from), OWN, payload)
    }

    fn between(&mut self, source: MacAddress, destination: MacAddress, payload: &[u8]) -> Option<Terminated> {
        self.host.receive(self.now, Packet { source, destination, payload }, &mut self.actions)
    }

    /// Waits until the machine wants to be called.
    fn wait(&mut self) -> Duration {
        let deadline = self.host.deadline().expect("a deadline");
        let waited = deadline - self.now;
        self.now = deadline;
        self.host.tick(self.now, &mut self.actions);
        waited
    }

    /// With its PADI.
    fn initiating(change: impl FnOnce(&mut Config)) -> (Bench, Vec<u8>) {
        let mut bench = Bench::new(change);
        let (destination, padi) = bench.sent();
        assert_eq!(destination, MacAddress::BROADCAST);
        (bench, padi)
    }

    /// As far as a PADR to the concentrator 1.
    fn requesting(change: impl FnOnce(&mut Config)) -> (Bench, Vec<u8>) {
        let (mut bench, padi) = Bench::initiating(change);
        bench.answer(1, pado(&padi, b"ac1"));
        if bench.actions.is_empty() {
            bench.wait();
        }
        let (destination, padr) = bench.sent();
        assert_eq!(destination, ac(1));
        (bench, padr)
    }

    /// With the session 7 of the concentrator 1.
    fn found() -> (Bench, Vec<u8>) {
        let (mut bench, padr) = Bench::requesting(|_| {});
        bench.answer(1, pads(&padr, 7));
        assert!(matches!(&bench.done()[..], [Action::Found(found)] if found.session == 7));
        (bench, padr)
    }

    /// Which offer is taken when the window has passed, the others, and the PADR for it.
    fn chosen(&mut self) -> (Offer, Vec<Offer>, Vec<u8>) {
        self.wait();
        match &self.done()[..] {
            [Action::Chosen { offer, others }, Action::Send { destination, payload }] => {
                assert_eq!(*destination, offer.concentrator);
                (offer.clone(), others.clone(), payload.clone())
            }
            done => panic!("{done:?}"),
        }
    }

    /// How it ends when nobody says anything any more.
    fn end(&mut self) -> String {
        while self.host.deadline().is_some() {
            self.wait();
        }
        self.failure().to_string()
    }

    fn failure(&mut self) -> Failure {
        match self.done().pop() {
            Some(Action::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }
}

/// The Host-Uniq of a packet that a host sent.
fn uniq(sent: &[u8]) -> Option<&[u8]> {
    Message::parse(sent).expect("a packet").host_uniq()
}

fn echoing(code: Code, session: u16, request: &[u8]) -> Builder {
    let request = Message::parse(request).expect("a packet");
    Builder::new(code, session)
        .tag(TagType::SERVICE_NAME, request.service_name())
        .tag_if(TagType::HOST_UNIQ, request.host_uniq())
}

fn pado(padi: &[u8], name: &[u8]) -> Builder {
    echoing(Code::PADO, 0, padi).tag(TagType::AC_NAME, name)
}

fn pads(padr: &[u8], session: u16) -> Builder {
    echoing(Code::PADS, session, padr)
}

#[test]
fn a_session_is_found_and_everything_goes_back_as_it_came() {
    let (mut bench, padi) = Bench::initiating(|config| config.service = b"internet".to_vec());
    let sent = Message::parse(&padi).expect("a PADI");
    assert_eq!((sent.code(), sent.session(), sent.service_name()), (Code::PADI, 0, &b"internet"[..]));
    assert_eq!((sent.host_uniq().map(<[u8]>::len), sent.max_payload()), (Some(16), None));
    let cookie: Vec<u8> = (0..=255).collect();
    let offer =
        pado(&padi, b"ac1").tag(TagType::AC_COOKIE, &cookie).tag(TagType::RELAY_SESSION_ID, b"\0relay");
    bench.answer(1, offer);
    assert_eq!(bench.wait(), Duration::from_millis(250));
    let (destination, padr) = bench.sent();
    let request = Message::parse(&padr).expect("a PADR");
    assert_eq!((destination, request.code(), request.session()), (ac(1), Code::PADR, 0));
    assert_eq!((request.cookie(), request.relay_session_id()), (Some(&cookie[..]), Some(&b"\0relay"[..])));
    assert_eq!((request.service_name(), request.host_uniq()), (&b"internet"[..], sent.host_uniq()));
    bench.answer(1, pads(&padr, 0x1234));
    let Some(Action::Found(found)) = bench.done().pop() else { panic!() };
    assert_eq!((found.session, found.offer.concentrator, found.max_payload), (0x1234, ac(1), 1492));
    assert!(!found.fell_back());
    assert_eq!(bench.host.deadline(), None);
    bench.host.terminate(Some("requested"), &mut bench.actions);
    let (destination, end) = bench.sent();
    assert_eq!((destination, &end[..4]), (ac(1), &b"\x11\xa7\x12\x34"[..]));
    bench.host.terminate(None, &mut bench.actions);
    assert_eq!(bench.done(), [], "once is enough");
}

#[test]
fn waiting_doubles_until_it_is_given_up() {
    let (mut bench, first) = Bench::initiating(|_| {});
    for seconds in [1, 2, 4, 8, 16] {
        assert_eq!(bench.wait(), Duration::from_secs(seconds));
        assert_eq!(bench.sent().1, first, "the same PADI");
    }
    assert_eq!(bench.wait(), Duration::from_secs(16));
    let failure = bench.failure();
    assert!(matches!(failure, Failure::NoOffer { sent: 6, waited, .. } if waited.as_secs() == 47));
    let said = failure.to_string();
    for part in ["nobody answered 6 PADI in 47 s:", "cable", "VLAN tag", "pppoe discover"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(bench.host.deadline(), None);
    assert_eq!(Timers::DEFAULT.search(), Duration::from_secs(47));
    // What was tried is not advised, and commands have the name of the interface.
    for (interface, vlans, part) in [
        ("wan0", Vlans::NONE, "(`rxlane pppoe discover wan0 --vlan 7`; many do)"),
        ("a;reboot", Vlans::NONE, "`rxlane pppoe discover 'a;reboot' --vlan 7`"),
        ("wan0", crate::tests::vlans(7), "another VLAN tag than q:7, or none"),
    ] {
        let mut bench = Bench::new(|config| (config.interface, config.vlans) = (interface.to_owned(), vlans));
        let text = bench.end();
        assert!(text.contains(part) && text.contains("--vlan 7") == (vlans == Vlans::NONE), "{text}");
    }
    let (mut bench, padr) = Bench::requesting(|_| {});
    for seconds in [1, 2, 4, 8] {
        assert_eq!(bench.wait(), Duration::from_secs(seconds));
        assert_eq!(bench.sent(), (ac(1), padr.clone()));
    }
    bench.wait();
    let said = bench.failure().to_string();
    assert!(
        said.contains("\"ac1\" (02:00:00:00:01:01) made an offer and answered none of 5 PADR in 31 s"),
        "{said}"
    );
}

/// Attack 12: another concentrator's offers to other hosts, invented ones, and a flood of them.
#[test]
fn a_rogue_concentrator_has_to_hear_the_padi_and_fills_no_memory() {
    let (mut bench, padi) = Bench::initiating(|_| {});
    let [second, third] = [2, 3].map(|seed| Bench::seeded(seed, |_| {}).sent().1);
    assert_ne!(uniq(&second), uniq(&third));
    let good = pado(&padi, b"rogue").finish().expect("it fits");
    // Invented: with another Host-Uniq, with none, to all, from a group.
    let other = echoing(Code::PADO, 0, &second).finish().expect("it fits");
    let none = Builder::new(Code::PADO, 0).tag(TagType::AC_NAME, b"rogue").finish().expect("it fits");
    bench.come(9, &other);
    bench.come(9, &none);
    bench.between(ac(9), MacAddress::BROADCAST, &good);
    bench.between(MacAddress([3, 0, 0, 0, 0, 1]), OWN, &good);
    bench.come(9, &good[..20]);
    let ignored = bench.host.ignored().clone();
    assert_eq!((ignored.foreign, ignored.addresses, ignored.malformed), (2, 2, 1));
    assert_eq!(bench.host.deadline(), Some(NOW + Duration::from_secs(1)), "no offer yet");
    for number in 0..200 {
        bench.come(number, &good);
        bench.come(number, &good);
    }
    assert_eq!(bench.host.ignored().surplus, 2 * (200 - MOST_OFFERS as u32));
    let (offer, others, _) = bench.chosen();
    assert_eq!((offer.concentrator, others.len()), (ac(0), MOST_OFFERS - 1));
}

/// Attack 12: a pinned concentrator is taken however many others answer first.
#[test]
fn a_pinned_concentrator_is_the_only_one() {
    for pin in [Pin::Mac(ac(250)), Pin::Name(b"ac250".to_vec())] {
        let (mut bench, padi) = Bench::initiating(|config| config.pin = Some(pin));
        for number in 0..100 {
            bench.answer(number, pado(&padi, b"rogue"));
        }
        assert_eq!(bench.done(), []);
        bench.answer(250, pado(&padi, b"ac250"));
        assert_eq!(bench.sent().0, ac(250), "at once");
    }
    let (mut bench, padi) = Bench::initiating(|config| config.pin = Some(Pin::Name(b"ac250".to_vec())));
    bench.answer(1, pado(&padi, b"ac\n1"));
    let said = bench.end();
    assert!(
        said.starts_with("1 concentrator answered 3 PADI in 7 s, and none is what is requested: \"ac\\u{a}1\" (02:00:00:00:01:01) is not \"ac250\""),
        "{said}"
    );
    assert!(said.ends_with("Name one that is there by `--ac`, or leave it out"), "{said}");
    // Those who do not serve the service keep silent, perhaps also the preferred one.
    let mut bench = Bench::new(|config| {
        (config.pin, config.service) = (Some(Pin::Name(b"ac250".to_vec())), b"internet".to_vec());
    });
    let padi = bench.sent().1;
    let offer =
        echoing(Code::PADO, 0, &padi).tag(TagType::AC_NAME, b"ac1").tag(TagType::SERVICE_NAME, b"internet");
    bench.answer(1, offer);
    let said = bench.end();
    assert!(said.ends_with("since it does not serve \"internet\": leave out `--service`"), "{said}");
}

#[test]
fn of_two_on_a_segment_the_first_that_agrees_to_the_payload_is_taken() {
    let (mut bench, padi) = Bench::initiating(|config| config.max_payload = 1500);
    assert_eq!(Message::parse(&padi).expect("a PADI").max_payload(), Some(1500));
    bench.answer(1, pado(&padi, b"small"));
    bench.answer(2, pado(&padi, b"large").max_payload(Some(1500)));
    let (offer, others, padr) = bench.chosen();
    assert_eq!((&offer.ac_name[..], &others[0].ac_name[..]), (&b"large"[..], &b"small"[..]));
    assert_eq!(Message::parse(&padr).expect("a PADR").max_payload(), Some(1500));
}

#[test]
fn a_service_is_taken_where_it_is_served() {
    let for_voice = |config: &mut Config| config.service = b"voice".to_vec();
    let (mut bench, padi) = Bench::initiating(for_voice);
    let offer = |service: &[u8]| {
        let packet =
            Builder::new(Code::PADO, 0).tag(TagType::AC_NAME, b"ac").tag(TagType::SERVICE_NAME, service);
        packet.tag_if(TagType::HOST_UNIQ, uniq(&padi))
    };
    bench.answer(1, offer(b"internet"));
    assert_eq!(bench.host.deadline(), Some(NOW + Duration::from_secs(1)), "no offer yet");
    bench.answer(2, offer(b"voice"));
    bench.wait();
    assert_eq!(bench.sent().0, ac(2));
    // Who offers only another one is reported.
    let mut bench = Bench::new(for_voice);
    bench.sent();
    bench.answer(1, offer(b"internet"));
    let said = bench.end();
    assert!(
        said.contains("\"ac\" (02:00:00:00:01:01) does not serve \"voice\" (its services: \"internet\")"),
        "{said}"
    );
    assert!(said.ends_with("Ask for a service that is there by `--service`, or leave it out"), "{said}");
    // Who serves only others keeps silent.
    let mut bench = Bench::new(for_voice);
    let said = bench.end();
    assert!(said.contains("that does not serve \"voice\" keeps silent"), "{said}");
}

/// The preferred one has heard three PADI when others have answered them; one that comes late is waited for no longer than it
/// takes the PADI that is out.
#[test]
fn answers_that_do_not_fit_end_an_attempt_sooner() {
    for (answered, sent, seconds) in [(1, 3, 7), (2, 3, 7), (3, 3, 7), (5, 5, 31)] {
        let (mut bench, padi) = Bench::initiating(|config| config.pin = Some(Pin::Mac(ac(250))));
        for _ in 1..answered {
            bench.wait();
            bench.sent();
        }
        let refusal = pado(&padi, b"ac1").tag(Kind::AcSystem.tag(), b"full");
        bench.answer(1, refusal);
        bench.answer(2, pado(&padi, b"ac2"));
        while bench.host.deadline().is_some() {
            bench.wait();
        }
        assert_eq!(bench.now - NOW, Duration::from_secs(seconds), "answered the PADI {answered}");
        let failure = bench.failure();
        assert!(failure.is_lasting() && matches!(failure, Failure::NoneFits { sent: n, .. } if n == sent));
        let said = failure.to_string();
        let first = "says AC-System-Error \"full\" and is not 02:00:00:00:01:fa; \"ac2\" ";
        assert!(said.contains(first), "{said}");
    }
    // The preferred one comes last.
    let (mut bench, padi) = Bench::initiating(|config| config.pin = Some(Pin::Mac(ac(250))));
    bench.answer(1, pado(&padi, b"ac1"));
    bench.wait();
    bench.wait();
    bench.done();
    bench.now += Duration::from_millis(3_999);
    bench.answer(250, pado(&padi, b"ac250"));
    assert_eq!(bench.sent().0, ac(250));
}

#[test]
fn a_newer_offer_of_the_same_concentrator_replaces_its_cookie() {
    let (mut bench, padi) = Bench::initiating(|_| {});
    for cookie in [b"old", b"new"] {
        bench.answer(1, pado(&padi, b"ac1").tag(TagType::AC_COOKIE, cookie));
    }
    bench.wait();
    assert_eq!(Message::parse(&bench.sent().1).expect("a PADR").cookie(), Some(&b"new"[..]));
}

#[test]
fn max_payload_is_what_both_ends_named_and_never_more() {
    for (own, answered, agreed, fell_back) in [
        (1500, Some(1500), 1500, false),
        (1500, Some(1496), 1496, true),
        (1500, Some(9000), 1500, false),
        (1500, Some(1000), 1492, true),
        (1500, None, 1492, true),
        (1492, Some(1500), 1492, false),
        (1400, None, 1400, false),
    ] {
        let (mut bench, padr) = Bench::requesting(|config| config.max_payload = own);
        let requested = Message::parse(&padr).expect("a PADR").max_payload();
        assert_eq!(requested, Some(own).filter(|bytes| *bytes > 1492));
        bench.answer(1, pads(&padr, 7).max_payload(answered));
        let Some(Action::Found(found)) = bench.done().pop() else { panic!() };
        assert_eq!((found.max_payload, found.fell_back()), (agreed, fell_back), "{own} {answered:?}");
    }
}

#[test]
fn a_refusal_is_reported_in_its_words_with_what_to_do() {
    for (kind, advice) in [
        (Kind::ServiceName, "leave the service name out"),
        (Kind::AcSystem, "a later try may succeed"),
        (Kind::Generic, "ask the operator"),
    ] {
        let (mut bench, padr) = Bench::requesting(|_| {});
        // A number along with the error does not make a session of it.
        let packet = pads(&padr, 7).tag(kind.tag(), b"line 7: GENERIC\nERROR");
        bench.answer(1, packet);
        let said = bench.failure().to_string();
        let expected = format!(
            "the concentrator \"ac1\" (02:00:00:00:01:01) refused the session: {} \"line 7: GENERIC\\u{{a}}ERROR\"; ",
            kind.name()
        );
        assert!(said.starts_with(&expected) && said.contains(advice), "{said}");
    }
    let (mut bench, padr) = Bench::requesting(|_| {});
    bench.answer(1, pads(&padr, 0).tag(TagType::AC_SYSTEM_ERROR, b""));
    let said = bench.failure().to_string();
    assert!(said.contains("AC-System-Error without a text"), "{said}");
}

#[test]
fn an_offer_with_an_error_is_none_and_is_reported() {
    let (mut bench, padi) = Bench::initiating(|_| {});
    bench.answer(1, pado(&padi, b"ac1").tag(TagType::GENERIC_ERROR, b"closed"));
    let said = bench.end();
    assert!(said.contains("\"ac1\" (02:00:00:00:01:01) says Generic-Error \"closed\""), "{said}");
}

#[test]
fn numbers_that_no_session_has_are_refused() {
    for session in [0, 0xffff] {
        let (mut bench, padr) = Bench::requesting(|_| {});
        bench.answer(1, pads(&padr, session));
        let failure = bench.failure();
        assert!(matches!(&failure, Failure::NoSession { session: found, .. } if *found == session));
        assert!(failure.to_string().contains(&format!("number {session},")), "{failure}");
    }
}

#[test]
fn a_confirmation_comes_from_who_got_the_request() {
    let (mut bench, padr) = Bench::requesting(|_| {});
    let good = pads(&padr, 7).finish().expect("it fits");
    let other = Builder::new(Code::PADS, 7).tag(TagType::HOST_UNIQ, b"other").finish().expect("it fits");
    bench.come(2, &good);
    bench.come(1, &other);
    bench.between(ac(1), MacAddress::BROADCAST, &good);
    assert_eq!((bench.done(), bench.host.ignored().foreign, bench.host.ignored().addresses), (vec![], 2, 1));
    bench.come(1, &good);
    assert!(matches!(&bench.done()[..], [Action::Found(_)]));
}

/// Attack 10: a PADT counts from the session's concentrator, with its number, to this host alone.
#[test]
fn a_spoofed_termination_is_ignored() {
    let (mut bench, _) = Bench::found();
    let good = padt(7, Some("maintenance\u{1b}"));
    assert_eq!(bench.come(2, &good), None);
    assert_eq!(bench.come(1, &padt(8, None)), None);
    assert_eq!(bench.between(ac(1), MacAddress::BROADCAST, &good), None);
    assert_eq!(bench.between(ac(1), ac(2), &good), None);
    let ended = bench.come(1, &good).expect("its end");
    assert_eq!(ended.complaint.expect("a text").to_string(), "Generic-Error \"maintenance\\u{1b}\"");
    assert_eq!(bench.come(1, &good), None, "once");
    assert_eq!(bench.done(), []);
}

#[test]
fn a_second_session_that_nobody_requested_is_given_back() {
    let (mut bench, padr) = Bench::found();
    bench.answer(1, pads(&padr, 7));
    assert_eq!(bench.done(), [], "the same PADS again");
    bench.answer(1, pads(&padr, 8));
    let (destination, payload) = bench.sent();
    assert_eq!((destination, &payload[..4]), (ac(1), &b"\x11\xa7\0\x08"[..]));
    bench.answer(2, pads(&padr, 9));
    assert_eq!(bench.done(), [], "of another concentrator");
}

/// Attack 1: a cookie that leaves no room for the rest of the request.
#[test]
fn what_does_not_fit_is_said() {
    let mut bench = Bench::new(|config| config.service = vec![b's'; 1470]);
    assert!(bench.failure().to_string().contains("a padi of 1500 bytes"));
    let (mut bench, padi) = Bench::initiating(|_| {});
    let long = Builder::new(Code::PADO, 0).tag_if(TagType::HOST_UNIQ, uniq(&padi));
    bench.answer(1, long.tag(TagType::AC_COOKIE, &[1; 1470]));
    bench.wait();
    assert!(bench.failure().to_string().contains("the concentrator's cookie is"));
    assert_eq!(bench.host.deadline(), None);
}

#[test]
fn a_service_has_to_fit_a_padi() {
    for (max_payload, most) in [(1492, 1454), (1500, 1448)] {
        let of = |bytes| Config { service: vec![b's'; bytes], max_payload, ..Config::default() };
        assert_eq!(of(most).check(), Ok(()));
        assert_eq!(of(most).padi(&[0; UNIQ]).finish().map(|padi| padi.len()), Ok(LONGEST_PADI));
        let (length, error) = (most + 1, of(most + 1).check().unwrap_err().to_string());
        let expected = format!("the name of the service has {length} bytes, and a PADI has room for {most} ");
        assert!(error.starts_with(&expected), "{error}");
    }
}
