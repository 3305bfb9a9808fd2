//! Serves one page over HTTP/1.1 (RFC 9112) to whoever asks with GET or HEAD.
//!
//! Bounded, whatever clients do: [`CLIENTS`] at a time, each for [`TIME`], and requests of [`REQUEST`] bytes. It knows
//! nobody and answers everybody the same, so who may connect is a matter of the address.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Clients at a time; those beyond are turned away.
const CLIENTS: usize = 16;

/// How long a client may take for request and answer.
const TIME: Duration = Duration::from_secs(2);

/// The longest request in bytes.
const REQUEST: usize = 8192;

#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    page: Mutex<Arc<str>>,
    is_over: AtomicBool,
    clients: AtomicUsize,
}

impl Server {
    /// Listens on an address, and serves an empty page until [`Server::serve`] gives it one.
    pub fn bind(address: SocketAddr) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread =
            thread::Builder::new().name("metrics".to_owned()).spawn(move || listen(&listener, &of_thread))?;
        Ok(Server { shared, address, thread: Some(thread) })
    }

    /// Where it listens; with the port that was chosen where port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn serve(&self, page: String) {
        *self.shared.page.lock().unwrap_or_else(PoisonError::into_inner) = page.into();
    }
}

/// Why nothing can be served at an address, and what to do.
pub fn unservable(address: SocketAddr, error: &io::Error) -> String {
    let (port, ip) = (address.port(), address.ip());
    let why = match error.kind() {
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
    };
    format!("metrics cannot be served at {address}: {why}")
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // Wakes the thread that waits for clients. Where the address is that of all interfaces, this one is among them.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(match own {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let woken = TcpStream::connect_timeout(&own, Duration::from_millis(200)).is_ok();
        // A thread that could not be woken ends with the process.
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let client = listener.accept();
        if shared.is_over.load(Ordering::Acquire) {
            return;
        }
        let Ok((client, _)) = client else {
            // No descriptors, for example: not at full speed.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if shared.clients.fetch_add(1, Ordering::AcqRel) >= CLIENTS {
            shared.clients.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let of_thread = shared.clone();
        let answer = move || {
            // A client that goes away, or is too slow, has itself to blame.
            let _ = answer(client, &of_thread);
            of_thread.clients.fetch_sub(1, Ordering::AcqRel);
        };
        if thread::Builder::new().name("client".to_owned()).spawn(answer).is_err() {
            shared.clients.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn answer(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    let until = Instant::now() + TIME;
    let head = read_head(&mut client, until)?;
    let page = shared.page.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let answer = respond(&head, &page);
    write_until(&mut client, &answer, until)?;
    client.shutdown(Shutdown::Write)
}

/// The request up to the empty line, or as much of it as is allowed.
fn read_head(client: &mut TcpStream, until: Instant) -> io::Result<Vec<u8>> {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    while head.len() <= REQUEST && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        client.set_read_timeout(Some(left(until)?))?;
        let length = client.read(&mut part)?;
        if length == 0 {
            break;
        }
        head.extend_from_slice(&part[..length]);
    }
    Ok(head)
}

fn write_until(client: &mut TcpStream, mut answer: &[u8], until: Instant) -> io::Result<()> {
    while !answer.is_empty() {
        client.set_write_timeout(Some(left(until)?))?;
        let written = client.write(answer)?;
        answer = answer.get(written..).filter(|_| written > 0).ok_or(io::ErrorKind::WriteZero)?;
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn respond(head: &[u8], page: &str) -> Vec<u8> {
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
        Some("/metrics") => {
            let body = if is_head { "" } else { page };
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                page.len()
            );
            [head.as_bytes(), body.as_bytes()].concat()
        }
        _ => plain("404 Not Found", "", is_head),
    }
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
        let server = Server::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        server.serve("a_metric 1\n".to_owned());
        server
    }

    fn ask(server: &Server, request: &[u8]) -> String {
        let mut client = TcpStream::connect(server.address()).expect("connected");
        client.write_all(request).expect("asked");
        let mut answer = Vec::new();
        // A refused request may end in a reset behind the answer.
        let _ = client.read_to_end(&mut answer);
        String::from_utf8(answer).expect("text")
    }

    #[test]
    fn the_page_is_served_and_nothing_else() {
        let server = server();
        let answer = ask(&server, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\na_metric 1\n"),
            "{answer}"
        );
        assert!(answer.contains("text/plain; version=0.0.4") && answer.contains("Content-Length: 11\r\n"));
        assert!(ask(&server, b"GET /metrics?x=1 HTTP/1.0\r\n\r\n").contains("a_metric"));
        let answer = ask(&server, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.contains("Content-Length: 11\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404 "),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405 "),
            (b"\xff\xfe /metrics HTTP/1.1\r\n\r\n", "400 "),
            (b"nonsense\r\n\r\n", "400 "),
        ] {
            let answer = ask(&server, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
        assert!(respond(&[b'x'; REQUEST + 1], "").starts_with(b"HTTP/1.1 431 "));
    }

    #[test]
    fn clients_that_say_nothing_are_bounded_and_end() {
        let server = server();
        let silent: Vec<TcpStream> =
            (0..3 * CLIENTS).map(|_| TcpStream::connect(server.address()).expect("connected")).collect();
        let began = Instant::now();
        loop {
            let answer = ask(&server, b"GET /metrics HTTP/1.1\r\n\r\n");
            if answer.contains("a_metric 1") {
                break;
            }
            assert!(began.elapsed() < TIME * 3, "still shut out");
            thread::sleep(Duration::from_millis(50));
        }
        drop(silent);
    }

    #[test]
    fn it_ends_when_dropped_and_an_address_in_use_is_an_error() {
        // An address of its own: other tests take free ports of 127.0.0.1 meanwhile.
        let server = Server::bind("127.77.0.1:0".parse().expect("an address")).expect("a port");
        let address = server.address();
        assert!(Server::bind(address).is_err());
        drop(server);
        assert!(Server::bind(address).is_ok());
    }
}
