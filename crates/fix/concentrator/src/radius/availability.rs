//! Whether servers answer, before anybody depends on them.

use super::sockets::Sockets;
use super::{Server, Servers};
use ::radius::exchange::{Patience, Unusable};
use ::radius::packet::Code;
use ::radius::{Packet, status_server};
use service::event_loop::any_ready;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longest time until a query is sent again, and most of them: who waits for a check waits no longer than six seconds.
const PATIENCE: Patience = Patience { timeout: Duration::from_secs(2), tries: 3, dead: Duration::ZERO };

/// What is known of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Availability {
    pub server: SocketAddr,
    pub answer: Answer,
}

/// What a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As one of its kind does.
    Fit,
    /// That it is one of the other kind: accounting on the port of authentication, or the other way round.
    OtherKind,
    /// What counts for nothing: why.
    Unusable(Unusable),
    /// Nothing: it is down, knows neither this machine nor the secret, or no Status-Server.
    Silence,
}

/// What is known of all servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availabilities {
    /// Of those that say who a subscriber is, in their order.
    pub access: Vec<Availability>,
    /// Of those that get records, in their order.
    pub accounting: Vec<Availability>,
}

impl Servers {
    /// Queries every server, all at once, by a Status-Server (RFC 5997).
    pub fn availabilities(&self) -> Availabilities {
        let patience = Patience {
            timeout: self.patience.timeout.min(PATIENCE.timeout),
            tries: self.patience.tries.min(PATIENCE.tries),
            ..PATIENCE
        };
        let began = Instant::now();
        let query = |servers: &[Server], fit: Code| {
            servers.iter().map(|server| Query::new(self, server, fit, patience)).collect::<Vec<_>>()
        };
        let mut queries = query(&self.access, Code::ACCESS_ACCEPT);
        queries.extend(query(&self.accounting, Code::ACCOUNTING_RESPONSE));
        while let Some(at) = queries.iter().filter_map(Query::deadline).min() {
            let sockets = queries.iter().flat_map(|query| query.sockets.sockets());
            // Where nothing can be waited for, every query ends by its timers.
            if any_ready(sockets, Some(at.saturating_sub(began.elapsed()))).is_err() {
                break;
            }
            queries.iter_mut().for_each(|query| query.go_on(began.elapsed()));
        }
        let mut all = queries.into_iter().map(|query| query.found);
        let access = all.by_ref().take(self.access.len()).collect();
        Availabilities { access, accounting: all.collect() }
    }
}

struct Query {
    sockets: Sockets<()>,
    /// The code of the answer of one of its kind (RFC 5997).
    fit: Code,
    found: Availability,
}

impl Query {
    fn new(servers: &Servers, server: &Server, fit: Code, patience: Patience) -> Query {
        let found = Availability { server: server.address, answer: Answer::Silence };
        let mut sockets = Sockets::new(vec![server.clone()], patience);
        // Its name has room: that of the configuration was seen to.
        if let Ok(request) = status_server::request(&servers.nas) {
            sockets.request(Duration::ZERO, (), request);
        }
        sockets.flush();
        Query { sockets, fit, found }
    }

    /// When it is sent again, or given up; `None`: it is over.
    fn deadline(&self) -> Option<Duration> {
        self.sockets.deadline().filter(|_| self.sockets.len() > 0)
    }

    fn go_on(&mut self, now: Duration) {
        self.sockets.receive(now);
        self.sockets.tick(now);
        self.sockets.flush();
        for done in self.sockets.done() {
            if let Ok(packet) = done.answer.as_deref().map(Packet::parse) {
                let is_fit = packet.is_ok_and(|packet| packet.code() == self.fit);
                self.found.answer = if is_fit { Answer::Fit } else { Answer::OtherKind };
            }
        }
        if let (Answer::Silence, Some((_, why))) =
            (self.found.answer, self.sockets.unusable().into_iter().next())
        {
            self.found.answer = Answer::Unusable(why);
        }
    }
}
