//! Serves one page over HTTP/1.1 (RFC 9112) to whoever requests it with GET or HEAD, over TCP or a Unix socket.
//!
//! Bounded, whatever clients do: [`CLIENTS`] at a time, of which the oldest makes room for the next, each for [`TIME`], and requests of
//! [`REQUEST`] bytes. It knows nobody and answers everybody the same, so who may connect is a matter of the address.

use super::{Format, Page};
use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Clients at a time.
const CLIENTS: usize = 16;

/// How long a client may take for request and answer.
const TIME: Duration = Duration::from_secs(2);

/// The longest request in bytes.
const REQUEST: usize = 8192;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Ip(SocketAddr),
    /// A Unix socket. The permissions of its folder and the umask say who may connect.
    Path(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(address) => address.fmt(f),
            Address::Path(path) => path.display().fmt(f),
        }
    }
}

#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: Address,
    /// Whether the socket's file goes with this.
    is_own_file: bool,
    thread: Option<JoinHandle<()>>,
}

/// Changes the page of a server, for as long as that is there.
#[derive(Clone, Debug)]
pub struct Publisher(Arc<Shared>);

impl Publisher {
    /// This page is served from now on.
    pub fn publish(&self, page: Page) {
        *self.0.page.lock().unwrap_or_else(PoisonError::into_inner) = page.into();
    }
}

#[derive(Debug, Default)]
struct Shared {
    page: Mutex<Arc<Page>>,
    is_over: AtomicBool,
    /// The connections of clients that have no answer yet, the oldest first.
    clients: Mutex<VecDeque<(u64, OwnedFd)>>,
}

impl Shared {
    fn clients(&self) -> MutexGuard<'_, VecDeque<(u64, OwnedFd)>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's connection.
trait Connection: Read + Write + AsFd + Send + 'static {
    fn limit(&self, left: Duration) -> io::Result<()>;
    fn finish(&self) -> io::Result<()>;
}

macro_rules! connection {
    ($stream:ty) => {
        impl Connection for $stream {
            fn limit(&self, left: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(left))?;
                self.set_write_timeout(Some(left))
            }

            fn finish(&self) -> io::Result<()> {
                self.shutdown(Shutdown::Write)
            }
        }
    };
}
connection!(TcpStream);
connection!(UnixStream);

impl Server {
    /// Listens at an address, and answers 503 until [`Server::serve`] gives it a page. A socket's file that nobody listens
    /// at is replaced.
    pub fn bind(address: &Address) -> io::Result<Server> {
        match address {
            Address::Ip(address) => Server::of_tcp(TcpListener::bind(address)?),
            Address::Path(path) => {
                remove_dead(path)?;
                let listener = UnixListener::bind(path)?;
                Server::of_unix(listener, path.clone(), true)
            }
        }
    }

    /// Listens at a socket that a service manager has made (sd_listen_fds(3)).
    pub fn inherited(socket: OwnedFd) -> io::Result<Server> {
        let listener = TcpListener::from(socket);
        if listener.local_addr().is_ok() {
            return Server::of_tcp(listener);
        }
        let listener = UnixListener::from(OwnedFd::from(listener));
        let path = listener.local_addr()?.as_pathname().map(Path::to_owned).unwrap_or_default();
        Server::of_unix(listener, path, false)
    }

    fn of_tcp(listener: TcpListener) -> io::Result<Server> {
        let address = Address::Ip(listener.local_addr()?);
        Server::start(address, false, move |shared| {
            listen(shared, || listener.accept().map(|(client, _)| client))
        })
    }

    fn of_unix(listener: UnixListener, path: PathBuf, is_own_file: bool) -> io::Result<Server> {
        Server::start(Address::Path(path), is_own_file, move |shared| {
            listen(shared, || listener.accept().map(|(client, _)| client))
        })
    }

    fn start(
        address: Address,
        is_own_file: bool,
        listen: impl FnOnce(&Arc<Shared>) + Send + 'static,
    ) -> io::Result<Server> {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(move || listen(&of_thread))?;
        Ok(Server { shared, address, is_own_file, thread: Some(thread) })
    }

    /// Where it listens; with the port that was chosen where port 0 was requested.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves this page from now on.
    pub fn serve(&self, page: Page) {
        self.publisher().publish(page);
    }

    /// What another thread changes the page by.
    pub fn publisher(&self) -> Publisher {
        Publisher(self.shared.clone())
    }

    /// Has the thread that waits for clients wake up. `false`: it could not be reached.
    fn wake(&self) -> bool {
        match &self.address {
            Address::Path(path) => UnixStream::connect(path).is_ok(),
            Address::Ip(address) => {
                let mut own = *address;
                // Where the address is that of all interfaces, this one is among them.
                if own.ip().is_unspecified() {
                    own.set_ip(match own {
                        SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                        SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
                    });
                }
                TcpStream::connect_timeout(&own, Duration::from_millis(200)).is_ok()
            }
        }
    }
}

/// Removes a socket that nobody listens at. Error: somebody does, or it is no socket.
fn remove_dead(path: &Path) -> io::Result<()> {
    match UnixStream::connect(path) {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            use std::os::unix::fs::FileTypeExt;
            let is_socket = fs::symlink_metadata(path)?.file_type().is_socket();
            if is_socket { fs::remove_file(path) } else { Err(io::ErrorKind::AlreadyExists.into()) }
        }
        // A link to a file that is not there is no free place.
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_ok() => {
            Err(io::ErrorKind::AlreadyExists.into())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Why nothing can be served at an address, and what to do.
pub fn unservable(address: &Address, error: &io::Error) -> String {
    match address {
        Address::Ip(address) => {
            format!("metrics cannot be served at {address}: {}", of_address(*address, error))
        }
        Address::Path(path) => {
            let why = match error.kind() {
                io::ErrorKind::AddrInUse => "another process listens there".to_owned(),
                io::ErrorKind::AlreadyExists => "that is no socket (a file, or a link to none)".to_owned(),
                io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
                _ => error.to_string(),
            };
            format!("metrics cannot be served at {}: {why}", path.display())
        }
    }
}

fn of_address(address: SocketAddr, error: &io::Error) -> String {
    let (port, ip) = (address.port(), address.ip());
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!(
                "another program has port {port} there already (`ss -ltnp sport = :{port}` names it); take another"
            )
        }
        io::ErrorKind::AddrNotAvailable => {
            format!(
                "no interface of this network namespace has the address {ip} (`ip address` shows those that there are)"
            )
        }
        io::ErrorKind::PermissionDenied => {
            format!("port {port} takes CAP_NET_BIND_SERVICE, those from 1024 on do not")
        }
        _ => error.to_string(),
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        let woken = self.wake();
        // A thread that could not be woken ends with the process.
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
        if let Address::Path(path) = &self.address
            && self.is_own_file
        {
            // One that is removed already is no reason to complain.
            let _ = fs::remove_file(path);
        }
    }
}

fn listen<C: Connection>(shared: &Arc<Shared>, accept: impl Fn() -> io::Result<C>) {
    for number in 0.. {
        let client = accept();
        if shared.is_over.load(Ordering::Acquire) {
            return;
        }
        let Ok((own, client)) = client.and_then(|client| Ok((client.as_fd().try_clone_to_owned()?, client)))
        else {
            // No descriptors, for example: not at full speed.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        let mut clients = shared.clients();
        while clients.len() >= CLIENTS {
            if let Some((_, oldest)) = clients.pop_front() {
                // One that has ended already needs no end.
                let _ = rustix::net::shutdown(&oldest, rustix::net::Shutdown::Both);
            }
        }
        clients.push_back((number, own));
        drop(clients);
        let of_thread = shared.clone();
        let answer = move || {
            // A client that goes away, or is too slow, has itself to blame.
            let _ = answer(client, &of_thread);
            of_thread.clients().retain(|(other, _)| *other != number);
        };
        if thread::Builder::new().name("client".to_owned()).spawn(answer).is_err() {
            shared.clients().retain(|(other, _)| *other != number);
        }
    }
}

fn answer(mut client: impl Connection, shared: &Shared) -> io::Result<()> {
    let until = Instant::now() + TIME;
    let head = read_head(&mut client, until)?;
    let page = shared.page.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let answer = respond(&head, &page);
    write_until(&mut client, &answer, until)?;
    client.finish()
}

/// The request up to the empty line, or as much of it as is allowed.
fn read_head(client: &mut impl Connection, until: Instant) -> io::Result<Vec<u8>> {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    while head.len() <= REQUEST && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        client.limit(left(until)?)?;
        let length = client.read(&mut part)?;
        if length == 0 {
            break;
        }
        head.extend_from_slice(&part[..length]);
    }
    Ok(head)
}

fn write_until(client: &mut impl Connection, mut answer: &[u8], until: Instant) -> io::Result<()> {
    while !answer.is_empty() {
        client.limit(left(until)?)?;
        let written = client.write(answer)?;
        answer = answer.get(written..).filter(|_| written > 0).ok_or(io::ErrorKind::WriteZero)?;
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn respond(head: &[u8], page: &Page) -> Vec<u8> {
    let is_whole = head.windows(4).any(|end| end == b"\r\n\r\n");
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&str> = std::str::from_utf8(line).unwrap_or_default().split(' ').collect();
    let (method, target) = match words[..] {
        _ if !is_whole && head.len() > REQUEST => {
            return plain("431 Request Header Fields Too Large", "", false);
        }
        [method, target, version] if is_whole && version.starts_with("HTTP/1.") => (method, target),
        _ => return plain("400 Bad Request", "", false),
    };
    let is_head = method == "HEAD";
    if !is_head && method != "GET" {
        return plain("405 Method Not Allowed", "Allow: GET, HEAD\r\n", false);
    }
    match target.split('?').next() {
        // A page without a sample would be taken for a machine that has nothing.
        Some("/metrics") if page.is_empty() => {
            plain("503 Service Unavailable", "Retry-After: 2\r\n", is_head)
        }
        Some("/metrics") => {
            let (format, kind) = if takes_openmetrics(head) {
                (Format::OpenMetrics, "application/openmetrics-text; version=1.0.0; charset=utf-8")
            } else {
                (Format::Prometheus, "text/plain; version=0.0.4; charset=utf-8")
            };
            let text = page.text(format);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                text.len()
            );
            [head.as_bytes(), if is_head { &[] } else { text.as_bytes() }].concat()
        }
        _ => plain("404 Not Found", "", is_head),
    }
}

/// Whether the client says that it reads OpenMetrics. Preferences (`q`) are not weighed: whoever reads it does so at least as well as
/// the older format.
fn takes_openmetrics(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.any(|(name, value)| {
        name.eq_ignore_ascii_case("accept") && value.contains("application/openmetrics-text")
    })
}

/// An answer whose body is its own status.
fn plain(status: &str, fields: &str, is_head: bool) -> Vec<u8> {
    let body = if is_head { String::new() } else { format!("{status}; metrics are at /metrics\n") };
    let length = format!("{status}; metrics are at /metrics\n").len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n");
    format!("{head}{fields}Connection: close\r\n\r\n{body}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let server = Server::bind(&at("127.0.0.1:0")).expect("a port");
        assert!(request(&server, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
        server.serve(page());
        server
    }

    fn page() -> Page {
        let mut page = Page::new();
        page.gauge("a_metric", "One.").sample(&[], 1);
        page
    }

    fn at(address: &str) -> Address {
        Address::Ip(address.parse().expect("an address"))
    }

    fn connect(server: &Server) -> TcpStream {
        let Address::Ip(address) = server.address() else { panic!("no address") };
        TcpStream::connect(address).expect("connected")
    }

    fn request(server: &Server, request: &[u8]) -> String {
        exchange(connect(server), request)
    }

    fn exchange(mut client: impl Read + Write, request: &[u8]) -> String {
        client.write_all(request).expect("sent");
        let mut answer = Vec::new();
        // A refused request may end in a reset behind the answer.
        let _ = client.read_to_end(&mut answer);
        String::from_utf8(answer).expect("text")
    }

    #[test]
    fn the_page_is_served_and_nothing_else() {
        let server = server();
        let answer = request(&server, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("gauge\na_metric 1\n"),
            "{answer}"
        );
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let length = format!("Content-Length: {}\r\n", body.len());
        assert!(answer.contains("text/plain; version=0.0.4") && answer.contains(&length), "{answer}");
        let openmetrics =
            b"GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
        let answer = request(&server, openmetrics);
        assert!(answer.contains("application/openmetrics-text; version=1.0.0"), "{answer}");
        assert!(answer.ends_with("a_metric 1\n# EOF\n"), "{answer}");
        assert!(request(&server, b"GET /metrics?x=1 HTTP/1.0\r\n\r\n").contains("a_metric"));
        let answer = request(&server, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.contains(&length) && answer.ends_with("\r\n\r\n"), "{answer}");
        for (wrong, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404 "),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405 "),
            (b"\xff\xfe /metrics HTTP/1.1\r\n\r\n", "400 "),
            (b"nonsense\r\n\r\n", "400 "),
        ] {
            let answer = request(&server, wrong);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
        assert!(respond(&[b'x'; REQUEST + 1], &Page::new()).starts_with(b"HTTP/1.1 431 "));
    }

    #[test]
    fn clients_that_say_nothing_are_bounded_and_end() {
        let server = server();
        let silent: Vec<TcpStream> = (0..3 * CLIENTS).map(|_| connect(&server)).collect();
        for _ in 0..CLIENTS {
            let answer = request(&server, b"GET /metrics HTTP/1.1\r\n\r\n");
            assert!(answer.contains("a_metric 1"), "{answer}");
        }
        // The oldest made room, and the others end with their time.
        assert!(server.shared.clients().len() <= CLIENTS);
        for mut client in silent {
            let _ = client.read_to_end(&mut Vec::new());
        }
        testkit::wait_until("no client is left", || server.shared.clients().is_empty());
    }

    #[test]
    fn it_ends_when_dropped_and_an_address_in_use_is_an_error() {
        // An address of its own: other tests take free ports of 127.0.0.1 meanwhile.
        let server = Server::bind(&at("127.77.0.1:0")).expect("a port");
        let address = server.address().clone();
        assert!(Server::bind(&address).is_err());
        drop(server);
        assert!(Server::bind(&address).is_ok());
    }

    #[test]
    fn a_unix_socket_is_served_replaced_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("metrics.sock");
        let address = Address::Path(path.clone());
        let server = Server::bind(&address).expect("bound");
        server.serve(page());
        let answer =
            exchange(UnixStream::connect(&path).expect("connected"), b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert_eq!(Server::bind(&address).expect_err("in use").kind(), io::ErrorKind::AddrInUse);
        drop(server);
        assert!(!path.exists());
        // Left by a process that was killed.
        drop(UnixListener::bind(&path).expect("bound"));
        drop(Server::bind(&address).expect("in its place"));
        fs::write(&path, "a file").expect("written");
        let error = Server::bind(&address).expect_err("no socket");
        assert!(unservable(&address, &error).contains("no socket"), "{error}");
        assert!(path.exists());
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("nowhere", &path).expect("a link");
        assert!(unservable(&address, &Server::bind(&address).expect_err("a link")).contains("no socket"));
    }

    #[test]
    fn a_socket_of_the_service_manager_is_served() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("metrics.sock");
        for socket in [
            OwnedFd::from(TcpListener::bind("127.0.0.1:0").expect("a port")),
            OwnedFd::from(UnixListener::bind(&path).expect("bound")),
        ] {
            let server = Server::inherited(socket).expect("served");
            server.serve(page());
            let answer = match server.address() {
                Address::Ip(_) => request(&server, b"GET /metrics HTTP/1.1\r\n\r\n"),
                Address::Path(path) => {
                    exchange(UnixStream::connect(path).expect("connected"), b"GET /metrics HTTP/1.1\r\n\r\n")
                }
            };
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            drop(server);
        }
        assert!(path.exists(), "it is the manager's");
    }
}
