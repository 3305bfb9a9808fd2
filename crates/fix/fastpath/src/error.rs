//! Errors.

use kernel::netlink::Refusal;
use service::ErrorKind;
use service::control::ControlError;
use std::io;

/// Why the fast path does not come up, or ends.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message says what its values are")]
pub enum Error {
    #[error("cannot ask the kernel for {what}: {source}{}", hint(.source))]
    Asking { what: &'static str, source: Refusal },
    #[error("cannot wait for changes of {what}: {source}")]
    Listening { what: &'static str, source: io::Error },
    #[error(transparent)]
    Program(#[from] xdp::Error),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(
        "{interface} is a {kind} interface: the fast path runs on Ethernet NICs and veth; name what it stands on"
    )]
    NoPort { interface: String, kind: String },
    #[error("a fast path takes at least two ports, or one with several VLANs: {0} stands alone")]
    Alone(String),
    #[error(
        "a fast path is up in this network namespace already: `rxlane fastpath status` shows it, `rxlane fastpath down` ends it"
    )]
    Up,
    #[error("{0} ports: a fast path has {most} at most", most = xdp::forward_layout::PORTS_MOST)]
    Ports(usize),
    #[error(
        "{interface} takes VLAN tags off before XDP sees them (`rx-vlan-offload`): --disable-rxvlan has that turned off as long as the \
         fast path is up"
    )]
    HiddenTags { interface: String },
    #[error(
        "{interface} shapes what it sends ({qdisc}), and the fast path would send past it: --bypass-qdisc does so all the same; \
         --limit-upload and --limit-download are a limit in the fast path itself"
    )]
    Shaper { interface: String, qdisc: String },
    #[error(
        "--limit-upload and --limit-download are about the port of the default route, and none leads out of these ports (`ip route`)"
    )]
    NoLine,
    #[error("{}", no_target(.interface, *.is_veth))]
    NoTarget { interface: String, is_veth: bool },
    #[error("{}", format::with_causes(.0))]
    Journal(#[from] service::journal::Error),
    #[error("cannot {what}: {source}")]
    System { what: &'static str, source: io::Error },
}

/// Why frames cannot be sent out of a port from XDP, and what helps.
fn no_target(interface: &str, is_veth: bool) -> String {
    let more = if is_veth { "" } else { ": --generic has the kernel do so, slower" };
    xdp::no_redirect_target(interface, is_veth) + more
}

fn hint(refusal: &Refusal) -> &'static str {
    match refusal.error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "; it requires root (sudo rxlane …)",
        Some(libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::EINVAL) => {
            "; connection tracking by netlink is required (modules nf_conntrack and nf_conntrack_netlink)"
        }
        _ => "",
    }
}

impl Error {
    pub(crate) fn asking(what: &'static str) -> impl Fn(Refusal) -> Error {
        move |source| Error::Asking { what, source }
    }

    /// Which exit code it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::HiddenTags { .. }
            | Error::Shaper { .. }
            | Error::NoTarget { .. }
            | Error::NoLine
            | Error::Up => ErrorKind::No,
            Error::NoPort { .. } | Error::Alone(_) | Error::Ports(_) => ErrorKind::Usage,
            Error::Program(error) if !error.lacks() => ErrorKind::No,
            Error::Control(error) if error.is_negative() => ErrorKind::No,
            _ => ErrorKind::Lacks,
        }
    }
}
