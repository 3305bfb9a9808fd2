//! A PPPoE session of the kernel without negotiation: both ends agree beforehand on its number and addresses, so that
//! an experiment needs no daemon. Runs inside the guest.

#[allow(unsafe_code)]
mod sys;

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::os::fd::OwnedFd;
use wire::ethernet::MacAddress;

/// A session (`if_pppox.h`, `ppp-ioctl.h`); it ends when this is dropped.
#[derive(Debug)]
pub struct Session {
    unit: i32,
    _socket: OwnedFd,
    _channel: File,
    _unit: File,
}

impl Session {
    /// Makes the session `number` with the station `peer` behind `interface`, and a network interface for it.
    ///
    /// # Errors
    ///
    /// The kernel has no PPPoE, `/dev/ppp` is missing, the interface is not there or down, or has such a session.
    pub fn new(interface: &str, number: u16, peer: MacAddress) -> Result<Session> {
        ensure!(number != 0 && number != 0xffff, "{number} is no session id (RFC 2516 section 4)");
        ensure!(interface.len() < sys::NAME_LENGTH, "{interface}: name too long");
        let socket = sys::connect(interface, number, peer.0)
            .with_context(|| format!("session {number} with {peer} on {interface}"))?;
        let channel_number = sys::channel(&socket).context("number of the PPP channel")?;
        let open = || File::options().read(true).write(true).open("/dev/ppp").context("/dev/ppp");
        let (channel, unit_file) = (open()?, open()?);
        sys::attach(&channel, channel_number).context("PPP channel")?;
        let unit = sys::new_unit(&unit_file).context("PPP interface")?;
        sys::connect_unit(&channel, unit).context("PPP interface with its channel")?;
        Ok(Session { unit, _socket: socket, _channel: channel, _unit: unit_file })
    }

    /// Name of its network interface.
    pub fn interface(&self) -> String {
        format!("ppp{}", self.unit)
    }
}
