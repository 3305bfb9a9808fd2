//! Telling the service manager that steering is up (sd_notify(3)): a datagram to the socket that `NOTIFY_SOCKET` names.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// `READY=1`, with a sentence for `systemctl status`.
    Ready(String),
    /// `STOPPING=1`.
    Stopping,
}

/// Tells it, where a service manager listens.
///
/// # Errors
///
/// The socket cannot be reached.
pub fn notify(told: &Told) -> io::Result<()> {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(path) if !path.is_empty() => send(&path, told),
        _ => Ok(()),
    }
}

fn send(path: &OsString, told: &Told) -> io::Result<()> {
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    let text = match told {
        Told::Ready(status) => format!("READY=1\nSTATUS={}", status.replace('\n', " ")),
        Told::Stopping => "STOPPING=1".to_owned(),
    };
    UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_hears_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let by_path = UnixDatagram::bind(&path).expect("bound");
        let name = format!("rxlane-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let by_name = UnixDatagram::bind_addr(&address).expect("bound");
        for (socket, at) in [(&by_path, path.into_os_string()), (&by_name, format!("@{name}").into())] {
            send(&at, &Told::Ready("wan0 is\nsteered".to_owned())).expect("told");
            send(&at, &Told::Stopping).expect("told");
            let heard = || {
                let mut buffer = [0; 100];
                let length = socket.recv(&mut buffer).expect("heard");
                String::from_utf8_lossy(&buffer[..length]).into_owned()
            };
            assert_eq!(heard(), "READY=1\nSTATUS=wan0 is steered");
            assert_eq!(heard(), "STOPPING=1");
        }
    }
}
