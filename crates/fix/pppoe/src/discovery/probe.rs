//! Only looks who is there: PADI, and no PADR. For `rxlane pppoe discover`.
//!
//! Several PADI go out, each with a Host-Uniq of its own, so that every answer is timed against the PADI that it answers.
//! Every second one leaves PPP-Max-Payload out, lest somebody who cannot stand that tag be taken for silent.
//! Everybody who answers is kept, up to `MOST_ANSWERS`, and what else is seen of PPPoE around is remembered, since it says
//! where to look when nobody answers.

use super::Packet;
use super::host::Ignored;
use super::message::{Builder, Message, TooLong};
use super::offer::Offer;
use crate::{Random, Time, draw};
use std::time::Duration;
use wire::Vlans;
use wire::ethernet::MacAddress;
use wire::pppoe::{Code, TagType};

/// Most concentrators that are kept.
pub(crate) const MOST_ANSWERS: usize = 64;
/// Most stacks of tags that are kept of frames elsewhere.
const MOST_PLACES: usize = 16;
/// Most types of tags that are kept of an answer.
const MOST_TAGS: usize = 32;

/// What is requested.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Service-Name; empty for any.
    pub service: Vec<u8>,
    /// PPP-Max-Payload, bytes, in every second PADI from the first on; `None`: in none.
    pub max_payload: Option<u16>,
}

/// Who answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The last answer, with the largest PPP-Max-Payload of all answers.
    pub offer: Offer,
    /// Types and lengths of tags, in order, of the answer that had most.
    pub tags: Vec<(TagType, u16)>,
    /// Round trip of each answer in the order of arrival: of the PADI, in the concentrator, of the PADO.
    pub latencies: Vec<Duration>,
}

/// The machine.
#[derive(Debug)]
pub struct Probe {
    question: Question,
    own: MacAddress,
    /// Bytes that begin every Host-Uniq; the number of the PADI follows.
    uniq: [u8; 12],
    sent: Vec<Time>,
    answers: Vec<Answer>,
    ignored: Ignored,
    elsewhere: Vec<Vlans>,
}

impl Probe {
    /// `own`: MAC address of the interface.
    pub fn new(question: Question, own: MacAddress, random: &mut dyn Random) -> Probe {
        let (sent, answers, elsewhere) = (Vec::new(), Vec::new(), Vec::new());
        Probe { question, own, uniq: draw(random), sent, answers, ignored: Ignored::default(), elsewhere }
    }

    /// The next PADI, to be broadcast at this moment.
    ///
    /// # Errors
    ///
    /// The service name is too long.
    pub fn padi(&mut self, now: Time) -> Result<Vec<u8>, TooLong> {
        let number = self.sent.len() as u32;
        self.sent.push(now);
        Builder::new(Code::PADI, 0)
            .tag(TagType::SERVICE_NAME, &self.question.service)
            .tag(TagType::HOST_UNIQ, &[&self.uniq[..], &number.to_be_bytes()].concat())
            .max_payload(self.question.max_payload.filter(|_| number.is_multiple_of(2)))
            .finish()
    }

    /// Takes a packet of EtherType 0x8863 that came with the tags of the probe.
    pub fn receive(&mut self, now: Time, packet: Packet<'_>) {
        let message = match Message::parse(packet.payload) {
            Ok(message) => message,
            Err(error) => return self.ignored.malformed(error),
        };
        if message.code() != Code::PADO {
            self.ignored.unexpected += 1;
        } else if packet.destination != self.own || packet.source.is_multicast() {
            self.ignored.addresses += 1;
        } else {
            match self.latency(now, &message) {
                Some(latency) => self.answered(packet.source, &message, latency),
                None => self.ignored.foreign += 1,
            }
        }
    }

    /// Takes note of a discovery packet that came with other tags.
    pub fn seen_elsewhere(&mut self, vlans: Vlans) {
        if self.elsewhere.len() < MOST_PLACES && !self.elsewhere.contains(&vlans) {
            self.elsewhere.push(vlans);
        }
    }

    fn latency(&self, now: Time, message: &Message<'_>) -> Option<Duration> {
        let (uniq, number) = message.host_uniq()?.split_first_chunk::<12>()?;
        let number = u32::from_be_bytes(number.try_into().ok()?);
        let sent = self.sent.get(usize::try_from(number).ok()?).filter(|_| *uniq == self.uniq)?;
        Some(now.saturating_sub(*sent))
    }

    fn answered(&mut self, source: MacAddress, message: &Message<'_>, latency: Duration) {
        let mut offer = Offer::new(source, message);
        let tags: Vec<_> =
            message.tags().take(MOST_TAGS).map(|tag| (tag.kind, tag.value.len() as u16)).collect();
        let is_full = self.answers.len() >= MOST_ANSWERS;
        let known = self.answers.iter_mut().find(|answer| answer.offer.concentrator == source);
        match known {
            // One a PADI; who sends more is not measured by it.
            Some(answer) if answer.latencies.len() >= self.sent.len() => self.ignored.surplus += 1,
            Some(answer) => {
                answer.latencies.push(latency);
                offer.max_payload = offer.max_payload.max(answer.offer.max_payload);
                answer.offer = offer;
                if tags.len() > answer.tags.len() {
                    answer.tags = tags;
                }
            }
            None if is_full => self.ignored.surplus += 1,
            None => self.answers.push(Answer { offer, tags, latencies: vec![latency] }),
        }
    }

    /// PADI so far.
    pub fn sent(&self) -> usize {
        self.sent.len()
    }

    /// Who answered, in the order of the first answers.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// What came and did not count.
    pub fn ignored(&self) -> &Ignored {
        &self.ignored
    }

    /// Tags under which discovery packets were seen that are not those of the probe.
    pub fn elsewhere(&self) -> &[Vlans] {
        &self.elsewhere
    }
}

#[cfg(test)]
mod tests {
    use super::super::concentrator::{Answer as Said, Arrival, Concentrator, Config};
    use super::super::place::Place;
    use super::*;

    const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    fn mac(number: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 1, number])
    }

    fn probe() -> Probe {
        let question = Question { service: Vec::new(), max_payload: Some(1500) };
        Probe::new(question, HOST, &mut |bytes: &mut [u8]| bytes.fill(9))
    }

    fn offer(padi: &[u8], number: u8, max_payload: u16) -> Vec<u8> {
        let random = &mut |bytes: &mut [u8]| bytes.fill(number);
        let mut config = Config::new(format!("ac{number}").as_bytes());
        config.services = vec![b"internet".to_vec()];
        config.max_payload = max_payload;
        let mut concentrator = Concentrator::new(config, Time::ZERO, random);
        let packet = Packet { source: HOST, destination: MacAddress::BROADCAST, payload: padi };
        let arrival = Arrival { place: Place::default(), own: mac(number), max_payload: u16::MAX, packet };
        match concentrator.receive(Time::ZERO, &arrival, random) {
            Said::Offer(payload) => payload,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_answer_is_timed_against_its_own_padi() {
        let mut probe = probe();
        let at = Duration::from_millis;
        let first = probe.padi(at(0)).expect("short");
        let second = probe.padi(at(1000)).expect("short");
        let mut come = |now, from, payload: &[u8]| {
            probe.receive(at(now), Packet { source: mac(from), destination: HOST, payload });
        };
        come(3, 1, &offer(&first, 1, 1508));
        // What the second PADI does not ask for it is not known.
        come(1004, 1, &offer(&second, 1, 1508));
        come(1005, 2, &offer(&second, 2, 1492));
        // The answer to the first is late.
        come(1100, 2, &offer(&first, 2, 1492));
        // A third answer of the same one to two PADI.
        come(1200, 2, &offer(&first, 2, 1492));
        let [one, two] = probe.answers() else { panic!("{:?}", probe.answers()) };
        assert_eq!((&one.latencies[..], one.offer.max_payload), (&[at(3), at(4)][..], Some(1500)));
        assert_eq!((&two.latencies[..], two.offer.max_payload), (&[at(5), at(1100)][..], None));
        assert_eq!(one.offer.services, [b"".to_vec(), b"internet".to_vec()]);
        assert_eq!(one.tags[0], (TagType::AC_NAME, 3));
        assert_eq!(probe.ignored().surplus, 1);
    }

    /// Attack 12: who floods with offers is kept within bounds, and answers to other hosts do not count.
    #[test]
    fn a_flood_of_offers_has_a_bound() {
        let mut probe = probe();
        let padi = probe.padi(Time::ZERO).expect("short");
        let payload = offer(&padi, 1, 1492);
        for number in 0..=255 {
            probe.receive(Time::ZERO, Packet { source: mac(number), destination: HOST, payload: &payload });
            probe.receive(Time::ZERO, Packet { source: mac(0), destination: HOST, payload: &payload });
        }
        assert_eq!(probe.answers().len(), MOST_ANSWERS);
        assert!(probe.answers().iter().all(|answer| answer.latencies.len() == 1));
        let other =
            Probe::new(Question::default(), HOST, &mut |bytes: &mut [u8]| bytes.fill(8)).padi(Time::ZERO);
        let payload = offer(&other.expect("short"), 1, 1492);
        probe.receive(Time::ZERO, Packet { source: mac(7), destination: HOST, payload: &payload });
        probe.receive(Time::ZERO, Packet { source: mac(7), destination: mac(8), payload: &payload });
        assert_eq!((probe.ignored().foreign, probe.ignored().addresses), (1, 1));
    }

    #[test]
    fn what_is_seen_elsewhere_is_remembered_once() {
        let mut probe = probe();
        probe.seen_elsewhere(Vlans::NONE);
        probe.seen_elsewhere(Vlans::NONE);
        assert_eq!(probe.elsewhere(), [Vlans::NONE]);
    }
}
