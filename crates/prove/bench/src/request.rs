//! Load that one host asks of another: a line of JSON each way over TCP, one request a connection.
//!
//! Whoever measures asks, since it changes settings between two measurements and knows when it is ready. The other end
//! ([`serve`]) sends to nobody but who asks, and listens to nobody but the hosts that were named to it. Nothing is
//! authenticated beyond the address, and nothing is kept from one request to the next.

use crate::udp::{self, MOST_FLOWS, Sending, UdpError};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The form of request and answer.
const FORM: &str = "bench-load/1";
/// Bytes of a line.
const LONGEST: usize = 1024;
/// How often it is looked whether it should end.
const LOOK: Duration = Duration::from_millis(50);
/// How long a line may take once somebody has connected, and an answer longer than the load itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it is tried to connect: a link that was reset comes up in some seconds.
const CONNECTING: Duration = Duration::from_secs(15);
/// The longest load, seconds.
const LONGEST_LOAD: f64 = 3600.0;
/// Datagrams a second: more than any line carries.
const MOST_RATE: f64 = 1e10;
const MOST_THREADS: u16 = 256;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    form: String,
    /// Port of whoever asks, to which the datagrams go.
    pub port: u16,
    /// Bytes of payload.
    pub payload: usize,
    pub flows: u16,
    pub threads: u16,
    pub seconds: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub sent: u64,
    pub seconds: f64,
}

impl Answer {
    /// Whether something was sent, in a time that was requested, and at a rate that a machine may have.
    fn is_possible(&self) -> bool {
        let rate = self.sent as f64 / self.seconds;
        self.sent > 0 && self.seconds > 0.0 && self.seconds <= 2.0 * LONGEST_LOAD && rate <= MOST_RATE
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reply {
    Done(Answer),
    Refused(String),
}

#[derive(Clone, Debug)]
pub struct Served {
    pub from: SocketAddr,
    /// What for; `None`: it was no request.
    pub request: Option<Request>,
    pub result: Result<Answer, String>,
}

#[derive(Debug, Error)]
pub enum AskError {
    #[error(
        "{at} does not answer ({cause}); there has to run: rxlane bench send {} --remote",
        own.map_or_else(|| "ADDRESS-OF-THIS-HOST".to_owned(), |own| own.to_string())
    )]
    Nobody { at: SocketAddr, own: Option<IpAddr>, cause: io::Error },
    #[error("{at}: {why}")]
    Refused { at: SocketAddr, why: String },
    #[error("interrupted")]
    Interrupted,
}

impl Request {
    pub fn new(port: u16, payload: usize, flows: u16, threads: u16, length: Duration) -> Request {
        Request { form: FORM.to_owned(), port, payload, flows, threads, seconds: length.as_secs_f64() }
    }

    /// What is sent for it from one address to another.
    fn sending(&self, from: IpAddr, to: IpAddr) -> Result<Sending, String> {
        if self.form != FORM {
            return Err(format!("the form {:?} is none of this version, which takes {FORM}", self.form));
        }
        if !(0.001..=LONGEST_LOAD).contains(&self.seconds) {
            return Err(format!("{} seconds are not 0.001 to {LONGEST_LOAD}", self.seconds));
        }
        if self.port == 0 {
            return Err("there is no port 0".to_owned());
        }
        if self.threads > MOST_THREADS || usize::from(self.flows) > MOST_FLOWS {
            return Err(format!("{} threads and {} flows are too many", self.threads, self.flows));
        }
        Ok(Sending {
            targets: vec![SocketAddr::new(to, self.port)],
            source: Some(from),
            ports: self.flows,
            threads: self.threads,
            cpus: crate::pin::allowed(),
            payload: self.payload,
            length: Some(Duration::from_secs_f64(self.seconds)),
            ..Sending::default()
        })
    }
}

/// Sends what `from` ask for, one request after the other, until `stop` is set; `report` hears of each, and of others that were
/// not answered.
pub fn serve(
    address: SocketAddr,
    from: &[IpAddr],
    stop: &AtomicBool,
    report: &mut dyn FnMut(&Served) -> ControlFlow<()>,
) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    while !stop.load(Ordering::Relaxed) {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            // Of one that is closed again already, or for want of a descriptor: the next may come through.
            Err(_) => {
                thread::sleep(LOOK);
                continue;
            }
        };
        let served = if from.contains(&peer.ip().to_canonical()) {
            serve_one(stream, peer, stop)
        } else {
            let result = Err("not answered: it is none of the hosts that were named".to_owned());
            Some(Served { from: peer, request: None, result })
        };
        if served.is_some_and(|served| report(&served).is_break()) {
            break;
        }
    }
    Ok(())
}

/// `None`: somebody looked whether anybody is there, and requested nothing.
fn serve_one(mut stream: TcpStream, peer: SocketAddr, stop: &AtomicBool) -> Option<Served> {
    let (request, result) = match line(&mut stream, PATIENCE, stop) {
        Ok(text) if text.is_empty() => return None,
        Ok(text) => match serde_json::from_str::<Request>(&text) {
            Ok(request) => {
                let result = send(&request, &stream, peer, stop);
                (Some(request), result)
            }
            Err(error) => (None, Err(format!("that is no request of rxlane bench pps: {error}"))),
        },
        Err(error) => (None, Err(error.to_string())),
    };
    let reply = match &result {
        Ok(answer) => Reply::Done(*answer),
        Err(why) => Reply::Refused(why.clone()),
    };
    // The requester may have hung up meanwhile.
    let _ = write(&mut stream, &reply);
    Some(Served { from: peer, request, result })
}

fn send(
    request: &Request,
    stream: &TcpStream,
    peer: SocketAddr,
    stop: &AtomicBool,
) -> Result<Answer, String> {
    let own = stream.local_addr().map_err(|error| error.to_string())?.ip().to_canonical();
    let sending = request.sending(own, peer.ip().to_canonical())?;
    let mut more = 0;
    let sent = udp::send(&sending, None, stop, &mut |_| match has_hung_up(stream, &mut more) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    let sent = sent.map_err(|error: UdpError| error.to_string())?;
    if sent.counts.packets == 0 {
        return Err("no datagram could be sent".to_owned());
    }
    Ok(Answer { sent: sent.counts.packets, seconds: sent.time.as_secs_f64() })
}

/// Whether the requester has hung up: nobody needs the load any more. Bytes behind the request would hide the end of the stream:
/// they are taken and dropped, and whoever sends more than a line of them (`more` so far) asks for nothing sensible.
fn has_hung_up(stream: &TcpStream, more: &mut usize) -> bool {
    let mut look = || {
        let mut stream = stream;
        let mut piece = [0; 256];
        while *more <= LONGEST {
            match stream.read(&mut piece) {
                Ok(0) => return true,
                Ok(count) => *more += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        }
        true
    };
    let has_hung_up = stream.set_nonblocking(true).is_ok() && look();
    has_hung_up || stream.set_nonblocking(false).is_err()
}

/// Connects to who sends on request, and gives this host's address on the way.
pub fn reach(at: SocketAddr, stop: &AtomicBool) -> Result<IpAddr, AskError> {
    let stream = connect(at, stop)?;
    let own = stream.local_addr().map_err(|cause| AskError::Nobody { at, own: None, cause })?;
    Ok(own.ip().to_canonical())
}

/// Asks for load, and waits until it was sent. Error: nobody listens there, it was refused, or `stop` was set.
pub fn ask(at: SocketAddr, request: &Request, stop: &AtomicBool) -> Result<Answer, AskError> {
    let mut stream = connect(at, stop)?;
    let own = stream.local_addr().ok().map(|own| own.ip().to_canonical());
    let nobody = |cause| AskError::Nobody { at, own, cause };
    write(&mut stream, request).map_err(nobody)?;
    let length = Duration::from_secs_f64(request.seconds.clamp(0.0, LONGEST_LOAD));
    let text = match line(&mut stream, length + PATIENCE, stop) {
        Ok(text) if text.is_empty() => return Err(nobody(io::Error::other("it hangs up"))),
        Ok(text) => text,
        Err(_) if stop.load(Ordering::Relaxed) => return Err(AskError::Interrupted),
        Err(cause) => return Err(nobody(cause)),
    };
    match serde_json::from_str(&text) {
        Ok(Reply::Done(answer)) if answer.is_possible() => Ok(answer),
        Ok(Reply::Done(Answer { sent: 0, .. })) => {
            Err(AskError::Refused { at, why: "nothing was sent".to_owned() })
        }
        Ok(Reply::Done(Answer { sent, seconds })) => {
            let why = format!("its answer is none: {sent} datagrams in {seconds:e} s");
            Err(AskError::Refused { at, why })
        }
        Ok(Reply::Refused(why)) => Err(AskError::Refused { at, why }),
        Err(error) => Err(AskError::Refused { at, why: format!("its answer is none: {error}") }),
    }
}

fn connect(at: SocketAddr, stop: &AtomicBool) -> Result<TcpStream, AskError> {
    let start = Instant::now();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(AskError::Interrupted);
        }
        match TcpStream::connect_timeout(&at, Duration::from_secs(1)) {
            Ok(stream) => return Ok(stream),
            // Somebody is there and says no: waiting does not help.
            Err(cause) if cause.kind() == ErrorKind::ConnectionRefused || start.elapsed() > CONNECTING => {
                return Err(AskError::Nobody { at, own: udp::address_to(&at), cause });
            }
            Err(_) => thread::sleep(LOOK),
        }
    }
}

fn write(stream: &mut TcpStream, value: &impl Serialize) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    stream.write_all(&text)
}

/// The next line, which comes within `patience`; empty at the end. What comes with it and behind it is dropped: one line is all
/// that either end says.
fn line(stream: &mut TcpStream, patience: Duration, stop: &AtomicBool) -> io::Result<String> {
    // A stream that was accepted from a listener that does not block may not block either.
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK))?;
    let start = Instant::now();
    let (mut bytes, mut piece) = (Vec::new(), [0; 256]);
    // Looked at after each piece: whoever sends byte by byte is no quicker with it.
    while !bytes.contains(&b'\n') {
        if stop.load(Ordering::Relaxed) {
            return Err(ErrorKind::Interrupted.into());
        }
        if start.elapsed() > patience {
            return Err(io::Error::new(ErrorKind::TimedOut, "no line came in time"));
        }
        if bytes.len() >= LONGEST {
            let text = format!("a line of more than {LONGEST} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => bytes.extend(piece.iter().take(count)),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |newline| newline + 1);
    bytes.truncate(end);
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{Receiving, receive};
    use std::net::Ipv4Addr;
    use testkit::netns::{Namespace, probe};
    use testkit::{require, wait_until};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn at(port: u16) -> SocketAddr {
        SocketAddr::new(HERE, port)
    }

    /// Serves `from` in a namespace of its own while `work` is done, and gives what became of the requests.
    fn served(from: &[IpAddr], work: impl FnOnce() + Send) -> Option<Vec<Served>> {
        require("netns", probe())?;
        let namespace = Namespace::new().expect("a namespace");
        let (stop, mut all) = (AtomicBool::new(false), Vec::new());
        namespace.inside(|| {
            thread::scope(|scope| {
                let server = scope.spawn(|| {
                    serve(at(7000), from, &stop, &mut |served: &Served| {
                        all.push(served.clone());
                        ControlFlow::Continue(())
                    })
                });
                wait_until("it to listen", || TcpStream::connect(at(7000)).is_ok());
                work();
                stop.store(true, Ordering::Relaxed);
                server.join().expect("no panic").expect("the port");
            });
        });
        Some(all)
    }

    #[test]
    fn what_is_requested_is_sent_to_who_asks() {
        let never = AtomicBool::new(false);
        let all = served(&[HERE], || {
            let receiving = Receiving {
                address: at(7001),
                buffer: Some(64 << 20),
                length: Some(testkit::PATIENCE),
                once: true,
                ..Receiving::default()
            };
            let listening = receiving.listen().expect("a sink");
            let request = Request::new(7001, 32, 4, 2, Duration::from_millis(100));
            thread::scope(|scope| {
                // It ends when all flows have.
                let sink = scope.spawn(|| {
                    receive(&receiving, listening, None, &never, &mut |_| ControlFlow::Continue(()))
                });
                let answer = ask(at(7000), &request, &never).expect("an answer");
                let received = sink.join().expect("no panic").expect("received");
                assert_eq!(received.counts.flows, 4, "{received:?}");
                assert_eq!(received.counts.packets + received.counts.missing, answer.sent, "{received:?}");
                assert!(answer.seconds >= 0.1, "{answer:?}");
            });
            assert_eq!(reach(at(7000), &never).expect("there"), HERE);
        });
        let Some(all) = all else { return };
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].result.is_ok() && all[0].request.as_ref().is_some_and(|request| request.threads == 2));
    }

    #[test]
    fn a_load_ends_when_the_requester_hangs_up_and_byte_by_byte_is_no_line() {
        let all = served(&[HERE], || {
            let sink = std::net::UdpSocket::bind(at(7001)).expect("a sink");
            let mut stream = TcpStream::connect(at(7000)).expect("there");
            write(&mut stream, &Request::new(7001, 32, 1, 1, Duration::from_secs(60))).expect("written");
            sink.recv(&mut [0; 32]).expect("the load");
            drop(stream);
            // It is served when the load before has ended, and its line does not come in time.
            let mut stream = TcpStream::connect(at(7000)).expect("there");
            stream.set_read_timeout(Some(LOOK)).expect("a time");
            let mut said = String::new();
            wait_until("what is said to bytes without an end", || {
                let _ = stream.write_all(b"x");
                let _ = stream.read_to_string(&mut said);
                !said.is_empty()
            });
            assert!(said.contains("no line came in time"), "{said}");
        });
        let Some(all) = all else { return };
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].result.is_ok() && all[1].result.is_err(), "{all:?}");
    }

    /// Both ends of a connection.
    fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(at(0)).expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("there");
        (client, listener.accept().expect("accepted").0)
    }

    #[test]
    fn bytes_in_the_packet_of_a_line_are_dropped() {
        let (mut client, mut server) = connected();
        client.write_all(b"{}\n\xffmore").expect("written");
        let never = AtomicBool::new(false);
        assert_eq!(line(&mut server, PATIENCE, &never).expect("a line"), "{}\n");
    }

    #[test]
    fn bytes_behind_the_request_hide_no_end() {
        let (mut client, server) = connected();
        let mut more = 0;
        client.write_all(b"x").expect("written");
        server.peek(&mut [0]).expect("it has come");
        assert!(!has_hung_up(&server, &mut more) && more == 1);
        drop(client);
        // Its end is on its way.
        wait_until("its end", || has_hung_up(&server, &mut more));
        let (mut client, server) = connected();
        let _ = client.write_all(&[0; 4 * LONGEST]);
        let mut more = 0;
        wait_until("too many bytes", || has_hung_up(&server, &mut more));
        assert!(more > LONGEST);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        let never = AtomicBool::new(false);
        let all = served(&[HERE], || {
            let good = Request::new(7001, 32, 4, 2, Duration::from_millis(10));
            for (request, expected) in [
                (Request { seconds: -1.0, ..good.clone() }, "-1 seconds"),
                (Request { threads: 300, ..good.clone() }, "too many"),
                (Request { port: 0, ..good.clone() }, "no port 0"),
                (Request { flows: 1, ..good.clone() }, "fewer than 2 threads"),
                (Request { form: "x".to_owned(), ..good.clone() }, "none of this version"),
            ] {
                let error = ask(at(7000), &request, &never).expect_err("refused").to_string();
                assert!(error.starts_with("127.0.0.1:7000: ") && error.contains(expected), "{error}");
            }
            for wrong in ["GET / HTTP/1.1\r\n", "{}\n", &"x".repeat(5000)] {
                let mut stream = TcpStream::connect(at(7000)).expect("there");
                // The other end may have had enough before all is written.
                let _ = stream.write_all(wrong.as_bytes());
                let mut said = String::new();
                let _ = stream.read_to_string(&mut said);
                assert!(said.is_empty() || said.contains("refused"), "{wrong:?}: {said}");
            }
        });
        let Some(all) = all else { return };
        assert_eq!(all.len(), 8, "{all:?}");
        assert!(all.iter().all(|served| served.result.is_err()), "{all:?}");
    }

    #[test]
    fn an_answer_that_nobody_can_have_measured_is_none() {
        let is_possible = |sent, seconds| Answer { sent, seconds }.is_possible();
        assert!(is_possible(1000, 1.0) && is_possible(1, 3600.0));
        for (sent, seconds) in [
            (0, 1.0),
            (1000, 0.0),
            (1000, -1.0),
            (u64::MAX, 1e-300),
            (u64::MAX, 3600.0),
            (1000, 1e300),
            (1000, f64::NAN),
        ] {
            assert!(!is_possible(sent, seconds), "{sent} in {seconds}");
        }
    }

    #[test]
    fn others_are_not_listened_to_and_who_is_not_there_is_named() {
        let never = AtomicBool::new(false);
        let all = served(&["192.0.2.1".parse().expect("an address")], || {
            let request = Request::new(7001, 32, 4, 2, Duration::from_millis(10));
            let error = ask(at(7000), &request, &never).expect_err("no answer");
            assert!(matches!(error, AskError::Nobody { .. }), "{error}");
            let error = reach(at(7002), &never).expect_err("nobody").to_string();
            assert!(
                error.starts_with("127.0.0.1:7002 does not answer")
                    && error.ends_with("rxlane bench send 127.0.0.1 --remote"),
                "{error}"
            );
        });
        let is_refused = |served: &Served| served.request.is_none() && served.result.is_err();
        assert!(all.is_none_or(|all| !all.is_empty() && all.iter().all(is_refused)));
    }
}
