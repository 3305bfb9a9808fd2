//! The option negotiation automaton of RFC 1661 section 4.1, as data: state and event in, actions and new state out.
//!
//! Of the two options that the RFC leaves to an implementation neither is used: not the passive one (note p: where requests
//! stay without an answer the session is over) and not the restart one (note r: an Open in a state where it changes nothing
//! changes nothing).

use Action::{
    InitializeRestartCount as Irc, SendCodeReject as Scj, SendConfigureAck as Sca, SendConfigureNak as Scn,
    SendConfigureRequest as Scr, SendEchoReply as Ser, SendTerminateAck as Sta, SendTerminateRequest as Str,
    ThisLayerDown as Tld, ThisLayerFinished as Tlf, ThisLayerStarted as Tls, ThisLayerUp as Tlu,
    ZeroRestartCount as Zrc,
};

/// States (RFC 1661 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The lower layer is down, nobody requested this one.
    Initial,
    /// The lower layer is down, this one is requested.
    Starting,
    /// The lower layer is up, this one is not requested.
    Closed,
    /// Ended by the peer or by its silence; the peer may begin anew.
    Stopped,
    /// This end sent a Terminate-Request; it will be Closed.
    Closing,
    Stopping,
    /// A Configure-Request was sent; neither end has agreed yet.
    RequestSent,
    AckReceived,
    AckSent,
    Opened,
}

impl State {
    /// Whether the restart timer runs in it: "Restart timer is running in Closing, Stopping, Req-Sent, Ack-Rcvd and Ack-Sent".
    pub(crate) const fn has_timer(self) -> bool {
        matches!(
            self,
            State::Closing | State::Stopping | State::RequestSent | State::AckReceived | State::AckSent
        )
    }
}

/// Events (RFC 1661 section 4.3).
#[allow(dead_code, reason = "they are those of the RFC's table")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The lower layer is up.
    Up,
    /// The lower layer is down.
    Down,
    Open,
    /// This layer is not requested any more.
    Close,
    /// TO+: the restart timer ran out, and the counter is not at its end.
    Timeout,
    /// TO-: the same, and it is.
    TimeoutLast,
    /// RCR+: a Configure-Request that can be agreed to.
    RequestGood,
    /// RCR-: one that cannot.
    RequestBad,
    /// RCA.
    Ack,
    /// RCN: Configure-Nak or Configure-Reject.
    NakOrReject,
    /// RTR.
    TerminateRequest,
    /// RTA.
    TerminateAck,
    /// RUC.
    UnknownCode,
    /// RXJ+: a Code-Reject or Protocol-Reject that can be lived with.
    RejectHarmless,
    /// RXJ-: one that cannot.
    RejectFatal,
    /// RXR: Echo-Request, Echo-Reply, Discard-Request.
    Echo,
}

/// Actions (RFC 1661 section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// tlu.
    ThisLayerUp,
    /// tld.
    ThisLayerDown,
    /// tls.
    ThisLayerStarted,
    /// tlf.
    ThisLayerFinished,
    /// irc.
    InitializeRestartCount,
    /// zrc.
    ZeroRestartCount,
    /// scr.
    SendConfigureRequest,
    /// sca.
    SendConfigureAck,
    /// scn: Configure-Nak or Configure-Reject.
    SendConfigureNak,
    /// str.
    SendTerminateRequest,
    /// sta.
    SendTerminateAck,
    /// scj.
    SendCodeReject,
    /// ser.
    SendEchoReply,
}

/// What is done in `state` at `event`, in order, and the state behind it. `None`: the RFC's table has a dash; the event
/// cannot happen there, and nothing is done.
pub(crate) const fn transition(state: State, event: Event) -> Option<(&'static [Action], State)> {
    match event {
        Event::Up | Event::Down | Event::Open | Event::Close => administrative(state, event),
        Event::Timeout | Event::TimeoutLast => timeout(state, event),
        Event::RequestGood | Event::RequestBad | Event::Ack | Event::NakOrReject => configure(state, event),
        _ => other_packet(state, event),
    }
}

const fn administrative(state: State, event: Event) -> Option<(&'static [Action], State)> {
    use State::*;
    Some(match (event, state) {
        (Event::Up, Initial) => (&[], Closed),
        (Event::Up, Starting) => (&[Irc, Scr], RequestSent),
        (Event::Down, Closed | Closing) => (&[], Initial),
        (Event::Down, Stopped) => (&[Tls], Starting),
        (Event::Down, Stopping | RequestSent | AckReceived | AckSent) => (&[], Starting),
        (Event::Down, Opened) => (&[Tld], Starting),
        (Event::Open, Initial) => (&[Tls], Starting),
        (Event::Open, Closed) => (&[Irc, Scr], RequestSent),
        (Event::Open, Closing) => (&[], Stopping),
        (Event::Open, state) => (&[], state),
        (Event::Close, Starting) => (&[Tlf], Initial),
        (Event::Close, Stopped) => (&[], Closed),
        (Event::Close, Stopping) => (&[], Closing),
        (Event::Close, RequestSent | AckReceived | AckSent) => (&[Irc, Str], Closing),
        (Event::Close, Opened) => (&[Tld, Irc, Str], Closing),
        (Event::Close, state) => (&[], state),
        _ => return None,
    })
}

const fn timeout(state: State, event: Event) -> Option<(&'static [Action], State)> {
    use State::*;
    Some(match (event, state) {
        (Event::Timeout, Closing | Stopping) => (&[Str], state),
        (Event::Timeout, RequestSent | AckReceived) => (&[Scr], RequestSent),
        (Event::Timeout, AckSent) => (&[Scr], AckSent),
        (Event::TimeoutLast, Closing) => (&[Tlf], Closed),
        (Event::TimeoutLast, Stopping | RequestSent | AckReceived | AckSent) => (&[Tlf], Stopped),
        _ => return None,
    })
}

const fn configure(state: State, event: Event) -> Option<(&'static [Action], State)> {
    use State::*;
    Some(match (event, state) {
        (_, Initial | Starting) => return None,
        (_, Closed) => (&[Sta], Closed),
        (_, Closing | Stopping) => (&[], state),
        (Event::RequestGood, Stopped) => (&[Irc, Scr, Sca], AckSent),
        (Event::RequestGood, RequestSent | AckSent) => (&[Sca], AckSent),
        (Event::RequestGood, AckReceived) => (&[Sca, Tlu], Opened),
        (Event::RequestGood, Opened) => (&[Tld, Scr, Sca], AckSent),
        (Event::RequestBad, Stopped) => (&[Irc, Scr, Scn], RequestSent),
        (Event::RequestBad, RequestSent | AckSent) => (&[Scn], RequestSent),
        (Event::RequestBad, AckReceived) => (&[Scn], AckReceived),
        (Event::RequestBad, Opened) => (&[Tld, Scr, Scn], RequestSent),
        (_, Stopped) => (&[Sta], Stopped),
        (Event::Ack, RequestSent) => (&[Irc], AckReceived),
        (Event::Ack, AckSent) => (&[Irc, Tlu], Opened),
        (Event::NakOrReject, RequestSent) => (&[Irc, Scr], RequestSent),
        (Event::NakOrReject, AckSent) => (&[Irc, Scr], AckSent),
        // Crossed connection (note x): an answer to a request that was answered before.
        (_, AckReceived) => (&[Scr], RequestSent),
        (_, Opened) => (&[Tld, Scr], RequestSent),
        _ => return None,
    })
}

const fn other_packet(state: State, event: Event) -> Option<(&'static [Action], State)> {
    use State::*;
    Some(match (event, state) {
        (_, Initial | Starting) => return None,
        (Event::TerminateRequest, RequestSent | AckReceived | AckSent) => (&[Sta], RequestSent),
        (Event::TerminateRequest, Opened) => (&[Tld, Zrc, Sta], Stopping),
        (Event::TerminateRequest, state) => (&[Sta], state),
        (Event::TerminateAck, Closing) => (&[Tlf], Closed),
        (Event::TerminateAck, Stopping) => (&[Tlf], Stopped),
        (Event::TerminateAck, AckReceived) => (&[], RequestSent),
        (Event::TerminateAck, Opened) => (&[Tld, Scr], RequestSent),
        (Event::UnknownCode, state) => (&[Scj], state),
        (Event::RejectHarmless, AckReceived) => (&[], RequestSent),
        (Event::RejectFatal, Closed | Closing) => (&[Tlf], Closed),
        (Event::RejectFatal, Opened) => (&[Tld, Irc, Str], Stopping),
        (Event::RejectFatal, _) => (&[Tlf], Stopped),
        (Event::Echo, Opened) => (&[Ser], Opened),
        (_, state) => (&[], state),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const STATES: [State; 10] = {
        use State::*;
        [Initial, Starting, Closed, Stopped, Closing, Stopping, RequestSent, AckReceived, AckSent, Opened]
    };
    #[rustfmt::skip]
    const EVENTS: [Event; 16] = {
        use Event::*;
        [
            Up, Down, Open, Close, Timeout, TimeoutLast, RequestGood, RequestBad, Ack, NakOrReject,
            TerminateRequest, TerminateAck, UnknownCode, RejectHarmless, RejectFatal, Echo,
        ]
    };

    /// The table of RFC 1661 section 4.1, row by row as it is printed there, without the notes.
    pub(crate) const TABLE: &str = "
        Up   | 2 | irc,scr/6 | - | - | - | - | - | - | - | -
        Down | - | - | 0 | tls/1 | 0 | 1 | 1 | 1 | 1 | tld/1
        Open | tls/1 | 1 | irc,scr/6 | 3 | 5 | 5 | 6 | 7 | 8 | 9
        Close| 0 | tlf/0 | 2 | 2 | 4 | 4 | irc,str/4 | irc,str/4 | irc,str/4 | tld,irc,str/4
        TO+  | - | - | - | - | str/4 | str/5 | scr/6 | scr/6 | scr/8 | -
        TO-  | - | - | - | - | tlf/2 | tlf/3 | tlf/3 | tlf/3 | tlf/3 | -
        RCR+ | - | - | sta/2 | irc,scr,sca/8 | 4 | 5 | sca/8 | sca,tlu/9 | sca/8 | tld,scr,sca/8
        RCR- | - | - | sta/2 | irc,scr,scn/6 | 4 | 5 | scn/6 | scn/7 | scn/6 | tld,scr,scn/6
        RCA  | - | - | sta/2 | sta/3 | 4 | 5 | irc/7 | scr/6 | irc,tlu/9 | tld,scr/6
        RCN  | - | - | sta/2 | sta/3 | 4 | 5 | irc,scr/6 | scr/6 | irc,scr/8 | tld,scr/6
        RTR  | - | - | sta/2 | sta/3 | sta/4 | sta/5 | sta/6 | sta/6 | sta/6 | tld,zrc,sta/5
        RTA  | - | - | 2 | 3 | tlf/2 | tlf/3 | 6 | 6 | 8 | tld,scr/6
        RUC  | - | - | scj/2 | scj/3 | scj/4 | scj/5 | scj/6 | scj/7 | scj/8 | scj/9
        RXJ+ | - | - | 2 | 3 | 4 | 5 | 6 | 6 | 8 | 9
        RXJ- | - | - | tlf/2 | tlf/3 | tlf/2 | tlf/3 | tlf/3 | tlf/3 | tlf/3 | tld,irc,str/5
        RXR  | - | - | 2 | 3 | 4 | 5 | 6 | 7 | 8 | ser/9";

    fn word(action: Action) -> &'static str {
        match action {
            Tlu => "tlu",
            Tld => "tld",
            Tls => "tls",
            Tlf => "tlf",
            Irc => "irc",
            Zrc => "zrc",
            Scr => "scr",
            Sca => "sca",
            Scn => "scn",
            Str => "str",
            Sta => "sta",
            Scj => "scj",
            Ser => "ser",
        }
    }

    fn cell(state: State, event: Event) -> String {
        let Some((actions, next)) = transition(state, event) else { return "-".to_owned() };
        let number = STATES.iter().position(|state| *state == next).unwrap();
        let words: Vec<_> = actions.iter().copied().map(word).collect();
        if words.is_empty() { number.to_string() } else { format!("{}/{number}", words.join(",")) }
    }

    #[test]
    fn every_cell_is_that_of_the_rfc() {
        let rows: Vec<&str> = TABLE.lines().filter(|line| !line.trim().is_empty()).collect();
        assert_eq!(rows.len(), EVENTS.len());
        for (row, event) in rows.into_iter().zip(EVENTS) {
            let cells: Vec<&str> = row.split('|').skip(1).map(str::trim).collect();
            assert_eq!(cells.len(), STATES.len(), "{row}");
            for (expected, state) in cells.into_iter().zip(STATES) {
                assert_eq!(cell(state, event), expected, "{event:?} in {state:?}");
            }
        }
    }
}
