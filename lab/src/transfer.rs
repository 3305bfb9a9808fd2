//! Content that is compared byte by byte where it arrives, over TCP and UDP, between two network namespaces of one
//! machine. Runs inside the guest, one process for both ends.
//!
//! The content repeats every 65,521 bytes, a prime: no number of segments or fragments of a size is as long, so what is
//! lost, doubled or out of its place shows.

#[allow(unsafe_code)]
mod sys;

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

/// Bytes after which the content repeats.
const PERIOD: usize = 65_521;
/// Bytes that are written in one call: TCP makes super-packets of as much.
const CHUNK: usize = 60_000;
/// How long an end waits for the other: longer than TCP takes to repeat a segment several times.
const LIMIT: Duration = Duration::from_secs(20);
/// Bytes of a datagram among those that are handed to the kernel as one.
const SEGMENT: usize = 1200;
/// How many of these are handed over at once; the last one is shorter.
const SEGMENTS: usize = 12;

/// An address in a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Name of the namespace, as ip-netns(8) has it.
    pub namespace: String,
    /// An address of an interface in it.
    pub address: IpAddr,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.address, self.namespace)
    }
}

impl End {
    /// Addresses in one namespace, with commas between them.
    ///
    /// # Errors
    ///
    /// One of them is no address.
    pub fn listed(namespace: &str, addresses: &str) -> Result<Vec<End>> {
        let end = |text: &str| {
            let address = text.parse().with_context(|| format!("{text}: no address"))?;
            Ok(End { namespace: namespace.to_owned(), address })
        };
        addresses.split(',').map(end).collect()
    }

    fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, 0)
    }

    /// Does something in the namespace, such as opening a socket, which stays there.
    fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> Result<T> {
        let path = format!("/run/netns/{}", self.namespace);
        let file = File::open(&path).context(path)?;
        let entered = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        let done = thread::scope(|scope| scope.spawn(entered).join());
        done.unwrap_or_else(|_| Err(io::Error::other("panicked"))).with_context(|| self.to_string())
    }
}

/// The content, as often as it takes to have a whole [`CHUNK`] from any place in its period on.
fn content() -> Vec<u8> {
    // SplitMix64 (Steele, Lea, Flood 2014): words that differ everywhere.
    let word = |number: u64| {
        let mut word = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    let mut bytes: Vec<u8> =
        (0..PERIOD.div_ceil(8) as u64).flat_map(|number| word(number).to_be_bytes()).collect();
    bytes.truncate(PERIOD);
    bytes.extend_from_within(..);
    bytes
}

/// The content from a byte on, at most a [`CHUNK`]: as much as is requested and known.
fn piece(content: &[u8], from: u64, most: usize) -> &[u8] {
    let start = (from % PERIOD as u64) as usize;
    content.get(start..start + most.min(CHUNK)).unwrap_or_default()
}

fn differs(got: &[u8], expected: &[u8]) -> Option<usize> {
    (got != expected).then(|| {
        let first = got.iter().zip(expected).position(|(got, expected)| got != expected);
        first.unwrap_or(got.len().min(expected.len()))
    })
}

fn send(mut stream: &TcpStream, content: &[u8], bytes: u64) -> Result<()> {
    let mut sent = 0;
    while sent < bytes {
        let rest = usize::try_from(bytes - sent).unwrap_or(CHUNK);
        let piece = piece(content, sent, rest);
        stream.write_all(piece).with_context(|| format!("sending after {sent} bytes"))?;
        sent += piece.len() as u64;
    }
    stream.shutdown(Shutdown::Write).context("end of the stream")
}

fn check(mut stream: &TcpStream, content: &[u8], bytes: u64) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut seen = 0_u64;
    loop {
        let length = stream.read(&mut buffer).with_context(|| format!("receiving after {seen} bytes"))?;
        if length == 0 {
            ensure!(seen == bytes, "the stream ended after {seen} of {bytes} bytes");
            return Ok(());
        }
        let got = buffer.get(..length).unwrap_or_default();
        if let Some(place) = differs(got, piece(content, seen, length)) {
            bail!("byte {} of the stream is not what was sent", seen + place as u64);
        }
        seen += length as u64;
    }
}

fn both_ways(stream: &TcpStream, content: &[u8], bytes: u64) -> Result<()> {
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    thread::scope(|scope| {
        let sender = scope.spawn(|| send(stream, content, bytes));
        let received = check(stream, content, bytes);
        received.and(sender.join().unwrap_or_else(|_| bail!("the sending thread panicked")))
    })
}

/// A TCP connection with so many bytes each way at the same time.
///
/// # Errors
///
/// There is no such namespace or address, nothing passes for 20 s, or something else arrives than was sent.
pub fn stream(one: &End, other: &End, bytes: u64) -> Result<()> {
    let content = content();
    let listener = other.inside(|| TcpListener::bind(other.socket()))?;
    let far = listener.local_addr()?;
    let client = one.inside(|| TcpStream::connect_timeout(&far, LIMIT))?;
    let (server, _) = listener.accept()?;
    thread::scope(|scope| {
        let server =
            scope.spawn(|| both_ways(&server, &content, bytes).with_context(|| format!("at {other}")));
        joined(both_ways(&client, &content, bytes).with_context(|| format!("at {one}")), server)
    })
}

/// The errors of both, since one end's is often the other's cause.
fn joined(client: Result<()>, server: thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    match (client, server.join().unwrap_or_else(|_| bail!("the far end's thread panicked"))) {
        (Err(one), Err(other)) => bail!("{one:#}; {other:#}"),
        (one, other) => one.and(other),
    }
}

/// Datagrams of these sizes one after the other, each sent back by the other end; then many as one super-packet
/// (`UDP_SEGMENT`, udp(7)) each way.
///
/// # Errors
///
/// There is no such namespace or address, a datagram or its answer does not come within 20 s, or is another.
pub fn datagrams(one: &End, other: &End, sizes: &[usize]) -> Result<()> {
    let content = content();
    let socket = |end: &End| {
        let socket = end.inside(|| UdpSocket::bind(end.socket()))?;
        socket.set_read_timeout(Some(LIMIT))?;
        anyhow::Ok(socket)
    };
    let (client, server) = (socket(one)?, socket(other)?);
    let (near, far) = (client.local_addr()?, server.local_addr()?);
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            for (place, size) in sizes.iter().enumerate() {
                let datagram = received(&server, &content, place, *size)?;
                server.send_to(&datagram, near)?;
            }
            burst_received(&server, &content)?;
            sys::send_segments(&server, &burst(&content), SEGMENT, near).context("super-packet back")
        });
        let ask = || {
            for (place, size) in sizes.iter().enumerate() {
                client.send_to(piece(&content, from(place), *size), far)?;
                received(&client, &content, place, *size).context("answer")?;
            }
            sys::send_segments(&client, &burst(&content), SEGMENT, far).context("super-packet")?;
            burst_received(&client, &content)
        };
        joined(ask(), server)
    })
}

/// Where in the content a datagram begins.
const fn from(place: usize) -> u64 {
    place as u64 * 7
}

fn datagram(socket: &UdpSocket) -> Result<Vec<u8>> {
    let mut datagram = vec![0; PERIOD];
    let length = socket.recv(&mut datagram)?;
    datagram.truncate(length);
    Ok(datagram)
}

fn received(socket: &UdpSocket, content: &[u8], place: usize, size: usize) -> Result<Vec<u8>> {
    let datagram = datagram(socket).with_context(|| format!("datagram {place} of {size} bytes"))?;
    if let Some(byte) = differs(&datagram, piece(content, from(place), size)) {
        let length = datagram.len();
        bail!("datagram {place} came with {length} of {size} bytes and differs from byte {byte} on");
    }
    Ok(datagram)
}

/// Datagrams of one super-packet, in any order: an adapter with several transmit queues sends them as it likes.
fn burst_received(socket: &UdpSocket, content: &[u8]) -> Result<()> {
    let mut sizes = Vec::new();
    while sizes.len() < SEGMENTS {
        let datagram = datagram(socket).with_context(|| format!("of a super-packet came {sizes:?} bytes"))?;
        sizes.push(datagram.len());
        if let Some(byte) = differs(&datagram, piece(content, 0, datagram.len())) {
            bail!("of a super-packet came {sizes:?} bytes, of which the last differ from byte {byte} on");
        }
    }
    sizes.sort_unstable();
    let mut expected = [SEGMENT; SEGMENTS];
    expected[0] = SEGMENT / 2;
    ensure!(sizes == expected, "of a super-packet came {sizes:?} bytes");
    Ok(())
}

/// Datagrams of [`SEGMENT`] bytes with the same content, the last of half the size.
fn burst(content: &[u8]) -> Vec<u8> {
    let mut bytes = piece(content, 0, SEGMENT).repeat(SEGMENTS - 1);
    bytes.extend_from_slice(piece(content, 0, SEGMENT / 2));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_goes_on_where_the_last_one_ended() {
        let content = content();
        assert_eq!(content.len(), 2 * PERIOD);
        let (mut place, mut pieces) = (0, Vec::new());
        for size in [1, 1448, CHUNK, 7000, CHUNK] {
            let piece = piece(&content, place, size);
            assert_eq!(piece.len(), size);
            pieces.extend_from_slice(piece);
            place += size as u64;
        }
        assert!(
            pieces.iter().zip(content.iter().take(PERIOD).cycle()).all(|(got, expected)| got == expected)
        );
        assert_ne!(piece(&content, 0, 1448), piece(&content, 1448, 1448));
    }

    #[test]
    fn the_first_octet_that_differs_is_named() {
        assert_eq!(differs(b"same", b"same"), None);
        assert_eq!(differs(b"sane", b"same"), Some(2));
        assert_eq!(differs(b"sam", b"same"), Some(3));
    }

    fn streams() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let client = TcpStream::connect(listener.local_addr().expect("its address")).expect("connected");
        (client, listener.accept().expect("accepted").0)
    }

    #[test]
    fn a_stream_that_is_short_long_or_wrong_is_an_error() {
        const BYTES: u64 = 200_000;
        let content = content();
        for (sent, fault) in [(BYTES, ""), (BYTES - 1, "ended after"), (BYTES + 1, "ended after")] {
            let (near, far) = streams();
            let checked = thread::scope(|scope| {
                scope.spawn(|| send(&near, &content, sent).expect("sent"));
                check(&far, &content, BYTES)
            });
            let said = checked.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains(fault) && said.is_empty() == fault.is_empty(), "{sent}: {said}");
        }
        let (mut near, far) = streams();
        let mut wrong = piece(&content, 0, 5000).to_vec();
        wrong[4000] ^= 0x10;
        near.write_all(&wrong).expect("sent");
        let said = check(&far, &content, 5000).expect_err("it differs").to_string();
        assert_eq!(said, "byte 4000 of the stream is not what was sent");
    }

    #[test]
    fn datagrams_are_compared_and_a_lost_one_is_named() {
        let content = content();
        let (one, other) =
            (UdpSocket::bind("127.0.0.1:0").expect("bound"), UdpSocket::bind("127.0.0.1:0").expect("bound"));
        let far = other.local_addr().expect("an address");
        sys::send_segments(&one, &burst(&content), SEGMENT, far).expect("sent");
        burst_received(&other, &content).expect("all of them");
        for _ in 0..SEGMENTS {
            one.send_to(piece(&content, 0, SEGMENT), far).expect("sent");
        }
        assert!(burst_received(&other, &content).is_err());
        one.send_to(piece(&content, from(2), 100), far).expect("sent");
        let said = received(&other, &content, 3, 100).expect_err("another").to_string();
        assert_eq!(said, "datagram 3 came with 100 of 100 bytes and differs from byte 0 on");
        other.set_read_timeout(Some(Duration::from_millis(10))).expect("set");
        let said = received(&other, &content, 3, 100).expect_err("none").to_string();
        assert_eq!(said, "datagram 3 of 100 bytes");
    }
}
