//! Negotiation of options (RFC 1661 sections 4 and 5) around the automaton: identifiers, restart timer, counters, and what
//! is answered to which option. What the options mean is that of a [`Layer`]: LCP, IPCP, IPV6CP.
//!
//! # Bounds
//!
//! Every packet is answered by at most one packet of its kind, which is no longer than the packet itself but for what a layer
//! appends to a Nak. Options that stand twice in a request are rejected. After `max_failure` Naks without an agreement options
//! are rejected, after as many rejections, or twice as many Naks and Rejects from the peer, negotiation has failed.

use crate::Time;
use crate::automaton::{Action as Operation, Event, State, transition};
use crate::control::{ConfigurationOption, ControlError, Parsed, code, options, put_option};
use crate::session::Notice;
use crate::step::Step;
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

/// What is said to an option of the peer's request.
pub(crate) enum Judgement {
    Ack,
    /// It may be requested with this data.
    Nak(Vec<u8>),
    Reject,
}

/// Why negotiation cannot succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    NoAgreement,
    Looped,
    MethodRefused,
    NoAddress,
    PeersAddress,
}

/// The options of one protocol.
pub(crate) trait Layer {
    fn protocol(&self) -> PppProtocol;

    /// Writes the options of this end's request. What it writes changes only by [`Layer::reset`], [`Layer::naked`] and
    /// [`Layer::rejected`], so that it need not be kept.
    fn request(&self, options: &mut Vec<u8>);

    /// Negotiation begins anew: this end asks for what it wants first.
    fn reset(&mut self, step: &mut Step<'_>);

    /// A request of the peer begins: what it will not name has its default.
    fn begin(&mut self);

    fn judge(&mut self, option: ConfigurationOption<'_>, step: &mut Step<'_>) -> Result<Judgement, Failure>;

    /// Appends to a Nak what the request should have named.
    fn missing(&mut self, _step: &mut Step<'_>, _naks: &mut Vec<u8>) {}

    /// The whole request was agreed to.
    fn agreed(&mut self) -> Result<(), Failure>;

    /// The peer agreed to this end's request.
    fn acked(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// The peer wants an option of this end with other data, or one that it did not name.
    fn naked(&mut self, option: ConfigurationOption<'_>, step: &mut Step<'_>) -> Result<(), Failure>;

    /// The peer does not want an option of this end's request.
    fn rejected(&mut self, kind: u8) -> Result<(), Failure>;
}

/// What the session hears of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// tlu.
    Up,
    /// tld.
    Down,
    /// tlf.
    Finished,
    /// It cannot succeed; the state is as before, and to close it is up to the session.
    Failed(Failure),
}

/// What a packet leads to.
type Reaction = Parsed<Option<Signal>>;

/// Where the negotiation of one protocol is.
#[derive(Clone, Debug)]
pub(crate) struct Negotiation {
    state: State,
    /// Of the last request that was sent.
    identifier: u8,
    /// Whether that request was answered: its identifier is spent, and further answers to it are duplicates.
    answered: bool,
    /// Whether any request was answered since the layer was last up.
    pub(crate) any_answer: bool,
    /// Requests that may still be sent: the restart counter.
    left: u32,
    pub(crate) deadline: Option<Time>,
    naks_sent: u16,
    rejects_sent: u16,
    refusals_received: u16,
}

/// What a received packet gives to those actions that answer it.
#[derive(Clone, Copy, Default)]
struct Answer<'a> {
    code: u8,
    identifier: u8,
    data: &'a [u8],
}

impl Negotiation {
    pub(crate) const fn new() -> Negotiation {
        Negotiation {
            state: State::Initial,
            identifier: 0,
            answered: true,
            any_answer: false,
            left: 0,
            deadline: None,
            naks_sent: 0,
            rejects_sent: 0,
            refusals_received: 0,
        }
    }

    /// One of another process: `Opened`, or `Stopped` for what the peer may begin anew. `identifier`: of the last request.
    pub(crate) const fn resumed(state: State, identifier: u8) -> Negotiation {
        Negotiation { state, identifier, ..Negotiation::new() }
    }

    /// Identifier of the last request.
    pub(crate) const fn identifier(&self) -> u8 {
        self.identifier
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Opened
    }

    /// Up, Down, Open, Close, and rejections that came in packets of LCP.
    pub(crate) fn event(
        &mut self,
        layer: &mut dyn Layer,
        event: Event,
        step: &mut Step<'_>,
    ) -> Option<Signal> {
        self.run(layer, event, Answer::default(), step)
    }

    /// The restart timer, if it has run out.
    pub(crate) fn tick(&mut self, layer: &mut dyn Layer, step: &mut Step<'_>) -> Option<Signal> {
        if self.deadline.is_none_or(|deadline| step.now < deadline) {
            return None;
        }
        self.run(
            layer,
            if self.left > 0 { Event::Timeout } else { Event::TimeoutLast },
            Answer::default(),
            step,
        )
    }

    /// Takes a packet with one of the codes 1 to 7, or one that is unknown.
    pub(crate) fn receive(
        &mut self,
        layer: &mut dyn Layer,
        packet: ControlPacket<'_>,
        step: &mut Step<'_>,
    ) -> Reaction {
        let ControlPacket { code, identifier, data } = packet;
        let answer = Answer { code: code::TERMINATE_ACK, identifier, data: &[] };
        Ok(match code {
            code::CONFIGURE_REQUEST => return self.configure_request(layer, packet, step),
            code::CONFIGURE_ACK | code::CONFIGURE_NAK | code::CONFIGURE_REJECT => {
                return self.answer(layer, packet, step);
            }
            code::TERMINATE_REQUEST => self.run(layer, Event::TerminateRequest, answer, step),
            code::TERMINATE_ACK => self.run(layer, Event::TerminateAck, answer, step),
            code::CODE_REJECT => {
                let Some(rejected) = data.first() else {
                    return Err(ControlError::Data { code, found: 0, least: 1 });
                };
                let fatal = (code::CONFIGURE_REQUEST..=code::CODE_REJECT).contains(rejected);
                let event = if fatal { Event::RejectFatal } else { Event::RejectHarmless };
                self.run(layer, event, answer, step)
            }
            _ => {
                let length = (data.len() + wire::ppp::ControlHeader::LENGTH) as u16;
                let whole = [&[code, identifier], &length.to_be_bytes()[..], data].concat();
                let answer = Answer { code: code::CODE_REJECT, identifier, data: &whole };
                self.run(layer, Event::UnknownCode, answer, step)
            }
        })
    }

    fn configure_request(
        &mut self,
        layer: &mut dyn Layer,
        packet: ControlPacket<'_>,
        step: &mut Step<'_>,
    ) -> Reaction {
        options(packet.data).try_for_each(|option| option.map(drop))?;
        let identifier = packet.identifier;
        let indifferent = Answer { code: code::TERMINATE_ACK, identifier, data: &[] };
        if matches!(
            self.state,
            State::Initial | State::Starting | State::Closed | State::Closing | State::Stopping
        ) {
            return Ok(self.run(layer, Event::RequestBad, indifferent, step));
        }
        if packet.data.len() + wire::ppp::ControlHeader::LENGTH > usize::from(step.limit) {
            step.notice(Notice::TooLong { protocol: layer.protocol() });
            return Ok(None);
        }
        let (code, data) = match self.judge(layer, packet.data, step) {
            Ok(said) => said,
            Err(failure) => return Ok(Some(Signal::Failed(failure))),
        };
        if u32::from(self.rejects_sent) > step.timers().max_failure {
            return Ok(Some(Signal::Failed(Failure::NoAgreement)));
        }
        let event = if code == code::CONFIGURE_ACK {
            (self.naks_sent, self.rejects_sent) = (0, 0);
            if let Err(failure) = layer.agreed() {
                return Ok(Some(Signal::Failed(failure)));
            }
            Event::RequestGood
        } else {
            Event::RequestBad
        };
        Ok(self.run(layer, event, Answer { code, identifier, data: &data }, step))
    }

    /// Code and options of the answer to the peer's request.
    fn judge(
        &mut self,
        layer: &mut dyn Layer,
        data: &[u8],
        step: &mut Step<'_>,
    ) -> Result<(u8, Vec<u8>), Failure> {
        let (mut naks, mut rejects, mut unwanted) = (Vec::new(), Vec::new(), Vec::new());
        let mut seen = [false; 256];
        layer.begin();
        for option in options(data).map_while(Result::ok) {
            let twice =
                seen.get_mut(usize::from(option.kind)).is_none_or(|seen| std::mem::replace(seen, true));
            match if twice { Judgement::Reject } else { layer.judge(option, step)? } {
                Judgement::Ack => {}
                Judgement::Nak(data) => {
                    put_option(option.kind, &data, &mut naks);
                    put_option(option.kind, option.data, &mut unwanted);
                }
                Judgement::Reject => put_option(option.kind, option.data, &mut rejects),
            }
        }
        if !rejects.is_empty() {
            self.rejects_sent = self.rejects_sent.saturating_add(1);
            return Ok((code::CONFIGURE_REJECT, rejects));
        }
        // RFC 1661 section 4.6, Max-Failure: "further Configure-Nak packets for peer requested options are converted to
        // Configure-Reject packets, and locally desired options are no longer appended".
        if u32::from(self.naks_sent) >= step.timers().max_failure {
            if unwanted.is_empty() {
                return Ok((code::CONFIGURE_ACK, data.to_vec()));
            }
            self.rejects_sent = self.rejects_sent.saturating_add(1);
            return Ok((code::CONFIGURE_REJECT, unwanted));
        }
        layer.missing(step, &mut naks);
        if naks.is_empty() {
            return Ok((code::CONFIGURE_ACK, data.to_vec()));
        }
        self.naks_sent = self.naks_sent.saturating_add(1);
        Ok((code::CONFIGURE_NAK, naks))
    }

    /// Configure-Ack, -Nak, -Reject. An answer to another request than the last, a second answer to it, an Ack that is not
    /// exactly what was requested, and a Reject of what was not requested are dropped (RFC 1661 sections 5.2 to 5.4).
    fn answer(&mut self, layer: &mut dyn Layer, packet: ControlPacket<'_>, step: &mut Step<'_>) -> Reaction {
        options(packet.data).try_for_each(|option| option.map(drop))?;
        if packet.identifier != self.identifier || self.answered {
            return Ok(None);
        }
        let mut request = Vec::new();
        layer.request(&mut request);
        let understood = match packet.code {
            code::CONFIGURE_ACK if packet.data == request => layer.acked(),
            code::CONFIGURE_NAK => {
                options(packet.data).map_while(Result::ok).try_for_each(|option| layer.naked(option, step))
            }
            code::CONFIGURE_REJECT if !packet.data.is_empty() && is_part(packet.data, &request) => {
                options(packet.data).map_while(Result::ok).try_for_each(|option| layer.rejected(option.kind))
            }
            _ => return Ok(None),
        };
        (self.answered, self.any_answer) = (true, true);
        if packet.code == code::CONFIGURE_ACK {
            self.refusals_received = 0;
        } else {
            self.refusals_received = self.refusals_received.saturating_add(1);
        }
        let too_often = u32::from(self.refusals_received) > step.timers().max_failure.saturating_mul(2);
        if let Err(failure) = understood.and(if too_often { Err(Failure::NoAgreement) } else { Ok(()) }) {
            return Ok(Some(Signal::Failed(failure)));
        }
        let event = if packet.code == code::CONFIGURE_ACK { Event::Ack } else { Event::NakOrReject };
        let late = Answer { code: code::TERMINATE_ACK, identifier: packet.identifier, data: &[] };
        Ok(self.run(layer, event, late, step))
    }

    /// Moves the automaton.
    fn run(
        &mut self,
        layer: &mut dyn Layer,
        event: Event,
        answer: Answer<'_>,
        step: &mut Step<'_>,
    ) -> Option<Signal> {
        let (operations, next) = transition(self.state, event)?;
        // Reopened by the peer: this end begins anew as well.
        if self.state == State::Stopped && next != State::Stopped {
            layer.reset(step);
        }
        self.state = next;
        let mut signal = None;
        for operation in operations {
            match operation {
                Operation::ThisLayerUp => {
                    (self.naks_sent, self.rejects_sent, self.refusals_received) = (0, 0, 0);
                    signal = Some(Signal::Up);
                }
                Operation::ThisLayerDown => {
                    layer.reset(step);
                    self.any_answer = false;
                    signal = Some(Signal::Down);
                }
                Operation::ThisLayerFinished => signal = Some(Signal::Finished),
                Operation::ThisLayerStarted | Operation::SendEchoReply => {}
                Operation::InitializeRestartCount => {
                    let timers = step.timers();
                    let terminate = operations.contains(&Operation::SendTerminateRequest);
                    self.left = if terminate { timers.max_terminate } else { timers.max_configure };
                }
                Operation::ZeroRestartCount => {
                    self.left = 0;
                    self.deadline = Some(step.restart_at());
                }
                Operation::SendConfigureRequest => self.send_request(layer, step),
                Operation::SendTerminateRequest => {
                    self.identifier = self.identifier.wrapping_add(1);
                    self.answered = true;
                    self.count_down(step);
                    step.send(layer.protocol(), code::TERMINATE_REQUEST, self.identifier, &[]);
                }
                Operation::SendConfigureAck | Operation::SendConfigureNak | Operation::SendTerminateAck => {
                    step.send(layer.protocol(), answer.code, answer.identifier, answer.data);
                }
                Operation::SendCodeReject => {
                    if step.may_answer() {
                        step.send_cut(layer.protocol(), answer.code, answer.identifier, answer.data);
                    }
                }
            }
        }
        if !self.state.has_timer() {
            self.deadline = None;
        }
        signal
    }

    /// Sends a Configure-Request. The identifier is a new one unless the last request is sent again (RFC 1661 section 5.1).
    fn send_request(&mut self, layer: &dyn Layer, step: &mut Step<'_>) {
        if self.answered {
            self.identifier = self.identifier.wrapping_add(1);
            self.answered = false;
        }
        self.count_down(step);
        let mut request = Vec::new();
        layer.request(&mut request);
        step.send(layer.protocol(), code::CONFIGURE_REQUEST, self.identifier, &request);
    }

    fn count_down(&mut self, step: &Step<'_>) {
        self.left = self.left.saturating_sub(1);
        self.deadline = Some(step.restart_at());
    }
}

/// Whether the options of `part` stand in `whole`, unchanged and in the same order.
fn is_part(part: &[u8], whole: &[u8]) -> bool {
    let mut whole = options(whole).map_while(Result::ok);
    options(part).map_while(Result::ok).all(|part| whole.any(|option| option == part))
}

#[cfg(test)]
mod tests;
