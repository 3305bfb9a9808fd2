//! What is looked at before a client begins: room for its packets, a free name.

use super::Start;
use format::quoted;
use kernel::netlink::{self, Link};
use kernel::tun::TunError;
use link::Error;
use link::frame_size::{longest_mtu, needed_mtu};
use link::running::find_parent;
use service::process::DYING;
use std::thread;
use std::time::{Duration, Instant};
use wire::emit::{Encapsulation, PppoeSession};

/// The least MTU that is taken without a request: that of IPv6 (RFC 8200 section 5).
const LEAST: u16 = 1280;

/// PPPoE inside the tags, which have none inside yet.
pub(super) fn framed(tags: &Encapsulation, session: PppoeSession) -> Encapsulation {
    tags.with_pppoe(session).unwrap_or(*tags)
}

impl Start {
    /// Sees that nothing stands in the way that can be seen before; that packets are shorter than usual, and why.
    ///
    /// # Errors
    ///
    /// There is no such parent, packets do not fit it, or the name of the interface is taken.
    pub fn check(&mut self) -> Result<Option<String>, Error> {
        let parent = find_parent(&self.request.parent)?;
        let narrow = fit_parent(self, &parent)?;
        expect_free(&self.request.name, false)?;
        Ok(narrow)
    }
}

/// Sees that the packets requested have room on the parent, or makes them shorter, and says so.
pub(super) fn fit_parent(start: &mut Start, parent: &Link) -> Result<Option<String>, Error> {
    let encapsulation = framed(&start.tags, PppoeSession { session: None, peer: None });
    let most = longest_mtu(parent.mtu, &encapsulation);
    let requested = u32::from(start.config.discovery.max_payload);
    if requested <= most {
        return Ok(None);
    }
    let needed = needed_mtu(requested, &encapsulation);
    let name = &parent.name;
    let shorter = u16::try_from(most).ok().filter(|most| !start.has_mtu && *most >= LEAST);
    let Some(shorter) = shorter else { return Err(Error::mtu_too_large(requested, parent, &encapsulation)) };
    start.config.discovery.max_payload = shorter;
    Ok(Some(format!(
        "{name} has an MTU of {}, in which packets of {shorter} bytes have room behind tags and PPPoE: `ip link set {quoted_name} mtu \
         {needed}` makes room for {requested}",
        parent.mtu,
        quoted_name = quoted(name)
    )))
}

/// Sees that no interface has the name of the session's, before a session is requested. `after_kill`: that of a killed
/// process may still be on its way out.
pub(super) fn expect_free(name: &str, after_kill: bool) -> Result<(), Error> {
    let until = Instant::now() + if after_kill { DYING } else { Duration::ZERO };
    while netlink::link_by_name(name).is_ok() {
        if Instant::now() >= until {
            return Err(TunError::Taken { name: name.to_owned() }.into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
