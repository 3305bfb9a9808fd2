//! Who subscribers are, and what they used, by RADIUS.
//!
//! # Contract
//!
//! * A thread of its own speaks with the servers: one that does not answer holds up nobody but who waits for its answer.
//! * A record of accounting that no server takes waits ([`records`]), and is sent when one answers again, with the time at which it was
//!   made and the same `Acct-Session-Id`.
//! * At the end it is waited for until the records are taken, or nobody answers any more.
//! * Servers may end sessions and change what was granted to them (RFC 5176), where that is configured.

mod availability;
mod dynamic;
mod records;
mod sockets;
mod words;

use crate::error::Error;
use crate::event::Event;
use crate::serving::Control;
use ::radius::access::{self, Nas};
use ::radius::accounting::{self, Whole};
use ::radius::dynamic_authorization::{ErrorCause, Request as Dynamic};
use ::radius::exchange::{Done, NoAnswer, Patience, Request, Unusable};
use ::radius::{Packet, Secret};
pub use availability::{Answer, Availabilities, Availability};
use dynamic::Listener;
pub use dynamic::{Clients, Ignored};
use pppoe::concentrator::accounting::{Event as Recorded, Record};
use pppoe::concentrator::{BitRates, NotGranted, Question, Reply};
use records::{Records, Ticket};
use service::event_loop::any_ready;
use sockets::Sockets;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};
use words::Line;

/// Records that are on their way at once.
const WINDOW: usize = 256;
/// Until records that nobody took are tried again.
const AGAIN: Duration = Duration::from_secs(10);
/// Until what a takeover holds up is tried again: answers that came meanwhile; the port and the file that the former process has.
const HELD: Duration = Duration::from_millis(200);
/// Between two reports on answers of one server that count for nothing.
const QUIET: Duration = Duration::from_secs(60);

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub address: SocketAddr,
    pub secret: Secret,
}

/// Whom to ask, and who gets records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    pub nas: Nas,
    /// Who says who a subscriber is, in order of preference.
    pub access: Vec<Server>,
    /// Who gets records, in order of preference; empty: nobody.
    pub accounting: Vec<Server>,
    pub patience: Patience,
    /// The file of records that nobody has taken yet; `None`: they are in memory alone.
    pub records: Option<PathBuf>,
    /// Who may end sessions and change what was granted to them.
    pub clients: Option<Clients>,
    /// BitRates by the names by which servers may say them; empty: such names are none of its business.
    pub rates: NamedRates,
}

impl Servers {
    /// Whether the file of records and the address of requests can be had, as far as it can be seen without taking either.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(path) = &self.records {
            Records::check(path).map_err(|error| Error::Options(format!("records: {error}")))?;
        }
        if let Some(clients) = &self.clients
            && let Err(error) = UdpSocket::bind(clients.listen)
            // Whoever serves now may have the port.
            && error.kind() == io::ErrorKind::AddrNotAvailable
        {
            let address = clients.listen.ip();
            return Err(Error::Options(format!(
                "dynamic-authorization.listen: {address} is no address of this machine"
            )));
        }
        Ok(())
    }
}

/// What happens with the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RadiusEvent {
    /// Answers of a server count for nothing: why the first did.
    Unusable { server: SocketAddr, why: Unusable },
    /// An answer has attributes whose values cannot be read.
    Unread { user: Vec<u8>, attributes: Vec<u8> },
    /// It names rates that there are not, which hold for nobody.
    NoRates { user: Vec<u8>, names: Vec<Vec<u8>> },
    /// Its records of accounting have no room for the Class that a server gave: they are sent without it.
    WithoutClass { user: Vec<u8> },
    /// No server takes records; they wait.
    Waiting { in_file: bool },
    /// One takes them again.
    Taken,
    /// The file does not take records, or cannot be read: why.
    Unwritten { why: String },
    /// Records are lost: there were too many, or the end came.
    Lost { records: u64 },
    /// A server requested something: of how many sessions it was done.
    Requested { server: SocketAddr, request: Box<Dynamic>, sessions: usize },
    /// A server requested what cannot be: why.
    Refused { server: SocketAddr, why: ErrorCause },
    /// A datagram to where requests come to has no answer: why the first of its kind has none.
    Ignored { from: SocketAddr, why: Ignored },
}

/// BitRates by name.
pub type NamedRates = HashMap<Vec<u8>, BitRates>;

enum Message {
    Ask(Box<Question>),
    Account(Box<Record>, SystemTime),
    Finish { is_over: bool },
}

/// The thread that speaks with the servers.
#[derive(Debug)]
pub(crate) struct Radius {
    messages: Sender<Message>,
    wake: UnixStream,
    thread: JoinHandle<()>,
}

impl Radius {
    /// Begins. `is_first`: no session from before goes on, which the servers learn. Errors: a thread or a pair of sockets is not to be had.
    pub(crate) fn start(servers: Servers, control: Arc<Control>, is_first: bool) -> io::Result<Radius> {
        let (messages, received) = channel();
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let mut worker = Worker::new(servers, control, received, woken, is_first)?;
        if is_first {
            worker.whole(Whole::On);
        }
        let thread = thread::Builder::new().name("radius".to_owned()).spawn(move || worker.run())?;
        Ok(Radius { messages, wake, thread })
    }

    fn send(&self, message: Message) {
        // The thread lives until it is to finish, and nothing is sent after that.
        let _ = self.messages.send(message);
    }

    /// Queries who a subscriber is, after the next [`wake`](Radius::wake).
    pub(crate) fn ask(&self, question: Box<Question>) {
        self.send(Message::Ask(question));
    }

    /// Has a record sent, after the next [`wake`](Radius::wake).
    pub(crate) fn account(&self, record: Box<Record>) {
        self.send(Message::Account(record, SystemTime::now()));
    }

    /// Has the thread do what it was handed: once for many, since a change between threads takes as long as a request.
    pub(crate) fn wake(&self) {
        // A wakeup that is pending is enough.
        let _ = (&self.wake).write(&[0]);
    }

    /// Waits until all records are taken, or no server answers any more. `is_over`: no other process goes on with the sessions.
    pub(crate) fn finish(self, is_over: bool) {
        self.send(Message::Finish { is_over });
        self.wake();
        let _ = self.thread.join();
    }
}

struct Worker {
    control: Arc<Control>,
    nas: Nas,
    messages: Receiver<Message>,
    woken: UnixStream,
    began: Instant,
    access: Sockets<Box<Question>>,
    accounting: Sockets<Ticket>,
    listener: Option<Listener>,
    rates: NamedRates,
    /// Records that wait.
    records: Records,
    /// When the port and the file are tried again that another process has.
    try_again: Duration,
    /// When those are tried again.
    again: Option<Duration>,
    /// Whether nobody takes records, as was reported.
    is_silent: bool,
    /// Answers for the machine: new ones, and those that came while another process took the sessions over.
    answers: Vec<(Box<Question>, Reply)>,
    finishing: bool,
    /// When answers of a server that count for nothing were reported.
    reported: HashMap<SocketAddr, Instant>,
    /// When a request that has no answer was reported.
    ignored: Option<Instant>,
    /// Names the process in the records of the concentrator itself.
    id: String,
}

impl Worker {
    fn new(
        servers: Servers,
        control: Arc<Control>,
        messages: Receiver<Message>,
        woken: UnixStream,
        is_first: bool,
    ) -> io::Result<Worker> {
        let mut drawn = [0; 8];
        link::pppoe::kernel::random(&mut drawn);
        // A process whose sessions are taken over has the port until it ends.
        let listener = servers.clients.map(|clients| Listener::open(clients, !is_first)).transpose()?;
        let records = Records::open(servers.records, !is_first)?;
        Ok(Worker {
            control,
            nas: servers.nas,
            messages,
            woken,
            began: Instant::now(),
            access: Sockets::new(servers.access, servers.patience),
            accounting: Sockets::new(servers.accounting, servers.patience),
            listener,
            rates: servers.rates,
            records,
            try_again: HELD,
            again: None,
            is_silent: false,
            answers: Vec::new(),
            finishing: false,
            reported: HashMap::new(),
            ignored: None,
            id: words::session_id(u64::from_be_bytes(drawn)),
        })
    }

    fn run(mut self) {
        loop {
            self.take_messages();
            let now = self.began.elapsed();
            self.access.tick(now);
            self.accounting.tick(now);
            self.deliver(now);
            self.give_answers();
            if self.awaits_former() && self.try_again <= now {
                self.try_again = now + HELD;
                self.listener.iter_mut().for_each(Listener::try_port);
                let tried = self.records.try_file();
                self.report_failed(tried);
            }
            self.take_requests(now);
            if self.again.is_none_or(|again| again <= now) {
                self.send_waiting(now);
            }
            self.access.flush();
            self.accounting.flush();
            if self.finishing && self.accounting.is_idle() && (self.records.is_empty() || self.is_silent) {
                break;
            }
            self.wait(now);
        }
        let lost = self.records.lost();
        if lost > 0 {
            self.report(RadiusEvent::Lost { records: lost });
        }
    }

    fn take_messages(&mut self) {
        let _ = self.woken.read(&mut [0; 64]);
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Ask(question) => self.ask(question),
                Message::Account(record, time) => self.account(&record, time),
                Message::Finish { is_over } => {
                    if is_over {
                        self.whole(Whole::Off);
                    }
                    self.finishing = true;
                    // Once more, whatever was before.
                    self.again = None;
                }
            }
        }
    }

    fn ask(&mut self, question: Box<Question>) {
        let Some(evidence) = words::evidence(&question.claim) else { return };
        let line = Line::new(&self.control.parent, &question.identity);
        let request = access::request(&self.nas, &line.session(question.claim.user()), evidence);
        match request {
            Ok(request) => self.access.request(self.began.elapsed(), question, request),
            Err(no_room) => self.answers.push((question, Reply::None(no_room.to_string()))),
        }
    }

    /// Gives the machine the answers, all at once. While another process takes the sessions over nothing changes them.
    fn give_answers(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let answers = &mut self.answers;
        let are_given = self.control.step_unless_offered(|machine, step| {
            answers.drain(..).for_each(|(question, answer)| machine.answer(step, &question, answer));
        });
        if are_given {
            self.control.wake();
        }
    }

    fn account(&mut self, record: &Record, time: SystemTime) {
        if self.accounting.is_nobody() {
            return;
        }
        let line = Line::new(&self.control.parent, &record.identity);
        let session = line.session(record.identity.user());
        let full = words::record(record, time);
        let request = accounting::request(&self.nas, &session, &full).or_else(|_| {
            if record.event == Recorded::Start {
                self.report(RadiusEvent::WithoutClass { user: record.identity.user().to_vec() });
            }
            accounting::request(&self.nas, &session, &accounting::Record { class: &[], ..full })
        });
        match request {
            Ok(request) => self.put(request),
            Err(_) => self.records.lose(),
        }
    }

    /// A record of the concentrator itself.
    fn whole(&mut self, whole: Whole) {
        if self.accounting.is_nobody() {
            return;
        }
        if let Ok(request) = accounting::of_whole(&self.nas, &self.id, whole, SystemTime::now()) {
            self.put(request);
        }
    }

    /// Whether another process still has the port, or the file.
    fn awaits_former(&self) -> bool {
        self.records.awaits_file()
            || self.listener.as_ref().is_some_and(|listener| listener.socket().is_none())
    }

    fn put(&mut self, request: Request) {
        let put = self.records.push(request);
        self.report_failed(put);
    }

    fn report_failed<T: Default>(&self, result: io::Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.report(RadiusEvent::Unwritten { why: error.to_string() });
            T::default()
        })
    }

    /// Sends records that wait, as many as may be on their way.
    fn send_waiting(&mut self, now: Duration) {
        // One finds out whether somebody takes them again.
        let most = if self.is_silent { 1 } else { WINDOW };
        while self.accounting.len() < most {
            let popped = self.records.pop();
            let Some((ticket, request)) = self.report_failed(popped) else { return };
            self.accounting.request(now, ticket, request);
        }
    }

    fn deliver(&mut self, now: Duration) {
        for Done { token: question, answer, .. } in self.access.done() {
            let answer = match answer {
                Ok(bytes) => self.decision(&question, &bytes),
                Err(why) => Reply::None(why.to_string()),
            };
            self.answers.push((question, answer));
        }
        let mut untaken = Vec::new();
        for Done { token: ticket, request, answer } in self.accounting.done() {
            match answer {
                Ok(_) => {
                    let taken = self.records.taken(ticket);
                    self.report_failed(taken);
                    if std::mem::take(&mut self.is_silent) {
                        self.report(RadiusEvent::Taken);
                    }
                    self.again = None;
                }
                Err(NoAnswer::NoRoom(_)) => {
                    let dropped = self.records.taken(ticket);
                    self.report_failed(dropped);
                    self.records.lose();
                }
                Err(NoAnswer::Silent | NoAnswer::Busy) => {
                    untaken.push((ticket, request));
                    self.again = Some(now + AGAIN);
                }
            }
        }
        if !untaken.is_empty() {
            self.records.put_back(untaken);
            if !std::mem::replace(&mut self.is_silent, true) {
                self.report(RadiusEvent::Waiting { in_file: self.records.has_file() });
            }
        }
        let unusable = self.access.unusable().into_iter().chain(self.accounting.unusable());
        for (server, why) in unusable.collect::<Vec<_>>() {
            // One that comes twice, or too late, is no fault of anybody.
            let is_new = self.reported.get(&server).is_none_or(|reported| reported.elapsed() > QUIET);
            if is_new && !matches!(why, Unusable::Unexpected(_)) {
                self.reported.insert(server, Instant::now());
                self.report(RadiusEvent::Unusable { server, why });
            }
        }
    }

    /// Does what servers request.
    fn take_requests(&mut self, now: Duration) {
        let Worker { control, listener: Some(listener), nas, rates, .. } = self else { return };
        listener.receive(now, nas, |server, request| {
            let outcome = match request {
                Ok(request) => act(control, server, request, rates)?,
                Err(why) => Err(why),
            };
            if let Err(why) = outcome {
                control.report(Event::Radius(RadiusEvent::Refused { server, why }));
            }
            Some(outcome)
        });
        let ignored = listener.ignored();
        if let Some((from, why)) = ignored.into_iter().next()
            && self.ignored.is_none_or(|reported| reported.elapsed() > QUIET)
        {
            self.ignored = Some(Instant::now());
            self.report(RadiusEvent::Ignored { from, why });
        }
    }

    fn decision(&self, question: &Question, bytes: &[u8]) -> Reply {
        let decision = match Packet::parse(bytes) {
            Ok(packet) => access::decision(&packet),
            Err(malformed) => return Reply::None(malformed.to_string()),
        };
        let (answer, unread, names) = words::answer(decision, &self.rates);
        let user = || question.claim.user().to_vec();
        if !names.is_empty() {
            self.report(RadiusEvent::NoRates { user: user(), names });
        }
        if !unread.is_empty() {
            self.report(RadiusEvent::Unread { user: user(), attributes: unread });
        }
        answer
    }

    fn report(&self, event: RadiusEvent) {
        self.control.report(Event::Radius(event));
    }

    /// Waits for a message, a datagram, or a timer.
    fn wait(&mut self, now: Duration) {
        let deadlines = [
            (!self.answers.is_empty()).then(|| now + HELD),
            self.awaits_former().then_some(self.try_again),
            self.access.deadline(),
            self.accounting.deadline(),
            self.again.filter(|_| !self.records.is_empty()),
        ];
        let wait = deadlines.into_iter().flatten().min().map(|at| at.saturating_sub(now));
        let requests = self.listener.as_ref().and_then(Listener::socket);
        let sockets = self.access.sockets().chain(self.accounting.sockets()).chain(requests);
        let is_ready = any_ready(sockets.chain([self.woken.as_fd()]), wait).unwrap_or_default();
        let now = self.began.elapsed();
        if is_ready {
            self.access.receive(now);
            self.accounting.receive(now);
        }
    }
}

/// Does what a server requests; `None`: another process takes the sessions over.
fn act(
    control: &Control,
    server: SocketAddr,
    request: Dynamic,
    rates: &NamedRates,
) -> Option<Result<(), ErrorCause>> {
    let change = match request.change.as_ref().map(|change| words::change(change, rates)).transpose() {
        Ok(change) => change,
        Err(refused) => return Some(Err(refused)),
    };
    let mut done = Ok(0);
    let may = control.step_unless_offered(|machine, step| {
        done = words::with_filter(&control.parent, &request.sessions, |filter| match &change {
            None => Ok(machine.disconnect(step, filter)),
            Some(change) => machine.change(step, filter, change),
        });
    });
    if !may {
        return None;
    }
    control.wake();
    Some(match done {
        Err(NotGranted) => Err(ErrorCause::Prohibited),
        Ok(0) => Err(ErrorCause::NoSession),
        Ok(sessions) => {
            let request = Box::new(request);
            control.report(Event::Radius(RadiusEvent::Requested { server, request, sessions }));
            Ok(())
        }
    })
}
