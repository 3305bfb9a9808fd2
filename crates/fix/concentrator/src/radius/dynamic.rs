//! Requests of servers (RFC 5176): the socket they come by, and what was answered to each.

use ::radius::access::Nas;
use ::radius::dynamic_authorization::{self as requests, ErrorCause, Request};
use ::radius::packet::{Code, LONGEST, Malformed};
use ::radius::{Forged, Packet, Secret};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime};

/// Requests that are taken before something else has its turn.
const AT_ONCE: usize = 64;
/// Answers that are remembered: of more requests within the time in which each could be sent once more, the rest gets none.
const MOST_REMEMBERED: usize = 1 << 16;

/// Who may request what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// Where requests come to.
    pub listen: SocketAddr,
    /// Addresses and secrets of the servers.
    pub clients: Vec<(IpAddr, Secret)>,
    /// Whether a request has to say when it was made: without that one of any age can be sent once more.
    pub needs_timestamp: bool,
}

/// Why a datagram gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    #[error("it is no client in the file")]
    Stranger,
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("{0:?} is no request to disconnect or to change")]
    Code(Code),
    #[error(transparent)]
    Forged(#[from] Forged),
    #[error(
        "its Event-Timestamp is more than {} minutes from now: it was sent before, or a clock is wrong",
        requests::TIMELY.as_secs() / 60
    )]
    Untimely,
    #[error("{MOST_REMEMBERED} others came within {} minutes, and whether it came before is not known any more", 2 * requests::TIMELY.as_secs() / 60)]
    TooMany,
}

/// A digest of all of a request and the secret, so that no other one has the same.
type Authenticator = Vec<u8>;

/// Takes requests.
#[derive(Debug)]
pub(super) struct Listener {
    config: Clients,
    /// `None`: another process has the port.
    socket: Option<UdpSocket>,
    /// Where answered requests came from, and their answers.
    answered: HashMap<Authenticator, (SocketAddr, Vec<u8>)>,
    /// When that was, the oldest first.
    order: VecDeque<(Duration, Authenticator)>,
    /// Datagrams that got no answer, and why.
    ignored: Vec<(SocketAddr, Ignored)>,
}

impl Listener {
    /// `waits`: the port may be in use by a process that ends soon. Errors: it is not to be had.
    pub(super) fn open(config: Clients, waits: bool) -> io::Result<Listener> {
        let socket = match bound(config.listen) {
            Ok(socket) => Some(socket),
            Err(error) if waits && error.kind() == io::ErrorKind::AddrInUse => None,
            Err(error) => return Err(error),
        };
        let (answered, order, ignored) = (HashMap::new(), VecDeque::new(), Vec::new());
        Ok(Listener { config, socket, answered, order, ignored })
    }

    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Tries to get the port that another process has.
    pub(super) fn try_port(&mut self) {
        if self.socket.is_none() {
            self.socket = bound(self.config.listen).ok();
        }
    }

    /// Datagrams that got no answer, and from where they came.
    pub(super) fn ignored(&mut self) -> Vec<(SocketAddr, Ignored)> {
        std::mem::take(&mut self.ignored)
    }

    /// Takes what came. `act` does it, or says why not; `None`: not now, and there is no answer, so that it is sent again.
    pub(super) fn receive(
        &mut self,
        now: Duration,
        nas: &Nas,
        mut act: impl FnMut(SocketAddr, Result<Request, ErrorCause>) -> Option<Result<(), ErrorCause>>,
    ) {
        let mut datagram = [0; LONGEST + 1];
        for _ in 0..AT_ONCE {
            let Some(Ok((length, from))) = self.socket.as_ref().map(|socket| socket.recv_from(&mut datagram))
            else {
                return;
            };
            let datagram = datagram.get(..length).unwrap_or_default();
            match self.answer(now, nas, from, datagram, &mut act) {
                // An answer that gets lost is that of the same request again.
                Ok(Some(answer)) => drop(self.socket.as_ref().map(|socket| socket.send_to(&answer, from))),
                Ok(None) => {}
                Err(why) => self.ignored.push((from, why)),
            }
        }
    }

    fn answer(
        &mut self,
        now: Duration,
        nas: &Nas,
        from: SocketAddr,
        datagram: &[u8],
        act: &mut impl FnMut(SocketAddr, Result<Request, ErrorCause>) -> Option<Result<(), ErrorCause>>,
    ) -> Result<Option<Vec<u8>>, Ignored> {
        let client = from.ip().to_canonical();
        let (_, secret) =
            self.config.clients.iter().find(|(address, _)| *address == client).ok_or(Ignored::Stranger)?;
        let packet = Packet::parse(datagram)?;
        if ![Code::DISCONNECT_REQUEST, Code::COA_REQUEST].contains(&packet.code()) {
            return Err(Ignored::Code(packet.code()));
        }
        secret.verify_request(&packet)?;
        let timely = requests::is_timely(&packet, SystemTime::now());
        if timely == Some(false) {
            return Err(Ignored::Untimely);
        }
        while let Some((_, old)) = self.order.pop_front_if(|(at, _)| *at + 2 * requests::TIMELY < now) {
            self.answered.remove(&old);
        }
        let authenticator = packet.authenticator().to_vec();
        // The same again is not done again (RFC 5080 section 2.2.2), wherever it comes from.
        if let Some((before, answer)) = self.answered.get(&authenticator) {
            return Ok((*before == from).then(|| answer.clone()));
        }
        if self.answered.len() >= MOST_REMEMBERED {
            return Err(Ignored::TooMany);
        }
        let request = match timely {
            None if self.config.needs_timestamp => Err(ErrorCause::MissingAttribute("Event-Timestamp")),
            _ => requests::request(&packet, nas),
        };
        let Some(outcome) = act(from, request) else { return Ok(None) };
        let Ok(answer) = requests::answer(secret, &packet, outcome) else { return Ok(None) };
        self.order.push_back((now, authenticator.clone()));
        self.answered.insert(authenticator, (from, answer.clone()));
        Ok(Some(answer))
    }
}

fn bound(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
