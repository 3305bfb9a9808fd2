//! One end of a negotiation: what it asks for, and how far both have come (RFC 1661 section 4, of which an end that begins by
//! itself needs the states from Req-Sent to Opened).

use super::ppp::{self, Control, Options};
use std::time::{Duration, Instant};

/// Between two requests (RFC 1661 section 4.6).
const RESTART: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct Negotiation {
    pub protocol: u16,
    /// What this end asks for.
    pub options: Options,
    identifier: u8,
    /// The other end agreed to that, this one to what the other asks for.
    pub acked: bool,
    pub agreed: bool,
    /// Identifier of the other end's request that was agreed to last.
    agreed_to: u8,
    /// When the request is sent again.
    next: Option<Instant>,
    every: Duration,
    /// A Terminate-Request is out.
    pub is_ending: bool,
}

impl Negotiation {
    pub fn new(protocol: u16) -> Negotiation {
        Negotiation {
            protocol,
            options: Vec::new(),
            identifier: 0,
            acked: false,
            agreed: false,
            agreed_to: 0,
            next: None,
            every: RESTART,
            is_ending: false,
        }
    }

    pub const fn is_up(&self) -> bool {
        self.acked && self.agreed
    }

    /// This end agrees to a request.
    pub const fn agree(&mut self, identifier: u8) {
        (self.agreed, self.agreed_to) = (true, identifier);
    }

    /// Whether a request is one that was agreed to and sent again, since the Ack took longer than its sender waits. It gets
    /// another Ack; by the letter of RFC 1661 section 4.3 everything would begin anew.
    pub const fn is_late(&self, identifier: u8) -> bool {
        self.is_up() && self.agreed_to == identifier
    }

    pub const fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Nothing was ever said.
    pub fn forget(&mut self) {
        (self.acked, self.agreed, self.is_ending, self.next) = (false, false, false, None);
    }

    /// Begins, or begins anew.
    pub fn begin(&mut self, options: Options, now: Instant) -> Vec<u8> {
        self.forget();
        (self.options, self.every) = (options, RESTART);
        self.ask(now)
    }

    /// The same, of what the other end may not listen to yet.
    pub fn begin_often(&mut self, options: Options, now: Instant) -> Vec<u8> {
        let request = self.begin(options, now);
        self.every = Duration::from_millis(700);
        request
    }

    /// A request under a new identifier.
    pub fn ask(&mut self, now: Instant) -> Vec<u8> {
        self.identifier = self.identifier.wrapping_add(1);
        self.again(now)
    }

    fn again(&mut self, now: Instant) -> Vec<u8> {
        self.next = Some(now + self.every);
        ppp::control(self.protocol, ppp::CONFIGURE_REQUEST, self.identifier, &ppp::put(&self.options))
    }

    /// Ends it.
    pub fn terminate(&mut self, now: Instant) -> Vec<u8> {
        self.forget();
        self.is_ending = true;
        self.identifier = self.identifier.wrapping_add(1);
        self.terminate_again(now)
    }

    fn terminate_again(&mut self, now: Instant) -> Vec<u8> {
        self.next = Some(now + RESTART);
        ppp::control(self.protocol, ppp::TERMINATE_REQUEST, self.identifier, b"bye")
    }

    pub fn tick(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.next.filter(|next| *next <= now)?;
        Some(if self.is_ending { self.terminate_again(now) } else { self.again(now) })
    }

    /// The other end's answer to the request; options that it names otherwise or does not want. `None`: it is late, and
    /// says nothing.
    pub fn answered(&mut self, packet: &Control<'_>) -> Result<Option<Options>, String> {
        let options = ppp::options(packet.data).ok_or("options that do not fit")?;
        if packet.identifier != self.identifier || self.acked || self.is_ending {
            return Ok(None);
        }
        match packet.code {
            ppp::CONFIGURE_ACK if options == self.options => {
                (self.acked, self.next) = (true, None);
                Ok(None)
            }
            ppp::CONFIGURE_ACK => Err("an Ack of what was not asked for".to_owned()),
            // RFC 1661 section 5.4: rejected options stand there as they were sent, in their order.
            ppp::CONFIGURE_REJECT => {
                let mut asked = self.options.iter();
                let are_there = options.iter().all(|option| asked.any(|asked| asked == option));
                if are_there && !options.is_empty() {
                    Ok(Some(options))
                } else {
                    Err("a Reject of what was not asked for".to_owned())
                }
            }
            _ => Ok(Some(options)),
        }
    }
}
