//! A transfer over TCP in both directions at once, which begins anew when its connection ends.

use super::router::{BEHIND, PORT, Router, at};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How often an end looks whether the transfer is over.
const LOOK: Duration = Duration::from_millis(100);
const PIECE: usize = 16 << 10;

/// What is known of it from outside.
#[derive(Default)]
pub struct Transfer {
    is_over: AtomicBool,
    /// Bytes that have arrived at the client, all of them right.
    downloaded: AtomicU64,
    connections: AtomicU64,
    client: Mutex<Option<SocketAddr>>,
}

impl Transfer {
    pub fn downloaded(&self) -> u64 {
        self.downloaded.load(Ordering::Relaxed)
    }

    /// Connections that were made so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Address and port of the client's end now.
    pub fn client(&self) -> SocketAddr {
        self.client.lock().expect("no panic").expect("a connection")
    }

    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Transfers until its end is requested.
    pub fn run(&self, router: &Router) {
        let listener = router.server.bound(|| TcpListener::bind(at(BEHIND, PORT))).expect("a server");
        listener.set_nonblocking(true).expect("a setting");
        router.client.inside(|| {
            while !self.is_over() {
                // There may be no way now.
                let connected = TcpStream::connect_timeout(&at(BEHIND, PORT), LOOK * 10);
                let Ok(client) = connected else { continue };
                if let Some(server) = self.accept(&listener, &client) {
                    *self.client.lock().expect("no panic") = client.local_addr().ok();
                    self.connections.fetch_add(1, Ordering::Relaxed);
                    self.carry(&client, &server);
                }
            }
        });
    }

    /// The other end of a connection. Others that wait have ended at the client meanwhile.
    fn accept(&self, listener: &TcpListener, client: &TcpStream) -> Option<TcpStream> {
        client.set_nonblocking(false).expect("a setting");
        while !self.is_over() {
            match listener.accept() {
                Ok((server, from)) if from.port() == client.local_addr().ok()?.port() => {
                    server.set_nonblocking(false).expect("a setting");
                    return Some(server);
                }
                Ok(_) => {}
                // The pause between two looks: a connection ends the wait, or the transfer's end.
                Err(_) => thread::sleep(LOOK / 10),
            }
        }
        None
    }

    /// Both directions, until one of them fails.
    fn carry(&self, client: &TcpStream, server: &TcpStream) {
        for end in [client, server] {
            end.set_read_timeout(Some(LOOK)).expect("a time");
            end.set_write_timeout(Some(LOOK)).expect("a time");
        }
        let ended = AtomicBool::new(false);
        let ignored = AtomicU64::new(0);
        let has_ended = || ended.load(Ordering::Relaxed) || self.is_over();
        let end = || {
            ended.store(true, Ordering::Relaxed);
            for end in [client, server] {
                let _ = end.shutdown(Shutdown::Both);
            }
        };
        thread::scope(|scope| {
            for (from, to, counter) in [(client, server, &ignored), (server, client, &self.downloaded)] {
                scope.spawn(move || {
                    write(from, has_ended);
                    end();
                });
                scope.spawn(move || {
                    let wrong = read(to, has_ended, counter);
                    end();
                    assert!(!wrong, "other bytes");
                });
            }
        });
    }
}

/// The byte at a place of the transfer.
const fn byte(place: u64) -> u8 {
    (place ^ (place >> 8) ^ (place >> 16)) as u8
}

fn write(mut end: &TcpStream, has_ended: impl Fn() -> bool) {
    let mut place: u64 = 0;
    while !has_ended() {
        let piece: Vec<u8> = (place..place + PIECE as u64).map(byte).collect();
        match end.write(&piece) {
            Ok(written) => place += written as u64,
            Err(error) if is_patient(&error) => {}
            Err(_) => return,
        }
    }
}

/// Gives whether a byte was another one than it should be.
fn read(mut end: &TcpStream, has_ended: impl Fn() -> bool, counter: &AtomicU64) -> bool {
    let (mut place, mut piece) = (0_u64, vec![0; PIECE]);
    while !has_ended() {
        match end.read(&mut piece) {
            Ok(0) => return false,
            Ok(length) => {
                if !piece[..length].iter().zip(place..).all(|(found, place)| *found == byte(place)) {
                    return true;
                }
                place += length as u64;
                counter.fetch_add(length as u64, Ordering::Relaxed);
            }
            Err(error) if is_patient(&error) => {}
            Err(_) => return false,
        }
    }
    false
}

fn is_patient(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
