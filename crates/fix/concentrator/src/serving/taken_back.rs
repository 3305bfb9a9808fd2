//! Going on with sessions that were given away, where the process that was to have them is gone: by a data path made anew.

use super::Tell;
use super::negotiator::Negotiator;
use super::prepared::beside;
use crate::error::Error;
use crate::event::Event;
use crate::subscribers::{Subscribers, Wish};
use kernel::netlink::link_by_name;
use service::Instances;
use service::control::Server;
use service::process::wait_until_gone;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// What answering anew takes.
#[derive(Debug)]
pub struct Asked {
    pub sockets: Instances,
    /// Written to when somebody asks for the end.
    pub ask: UnixStream,
}

/// Has a data path in the place of the one that was ended for a process of this number, with all sessions, and answers for the
/// interface again.
///
/// # Errors
///
/// The machine refuses it, or yet another process has begun to serve.
pub fn take_back(
    wish: &Wish,
    successor: Option<u32>,
    server: &mut Server,
    asked: &Asked,
    negotiator: &mut Negotiator,
    tell: Tell<'_>,
) -> Result<Subscribers, Error> {
    let ask = asked.ask.try_clone().map_err(Error::kernel("listen to questions"))?;
    // First, since who answers there serves.
    server.retake_place(&asked.sockets, negotiator.desk.parent(), Arc::clone(&negotiator.desk), ask)?;
    // That of the other process may still be on its way out, under either name, and has the same routes until then.
    for name in successor.map(beside).iter().chain([&wish.name]) {
        // A busy machine takes its time, and it is worth to be waited for: subscribers know of nothing yet.
        (0..3).take_while(|_| link_by_name(name).is_ok()).for_each(|_| wait_until_gone(name));
    }
    let (path, registry) = Subscribers::up(wish)?;
    let now = negotiator.clock.now();
    let mut inner = negotiator.inner();
    let installed = inner.turn(now, |machine, turn| machine.carried_anew(turn));
    inner.carried = inner.carried.anew(registry, path.index());
    let mut lacking = inner.carried.route_again();
    lacking
        .extend(installed.iter().flat_map(|installed| inner.carried.install(installed)).collect::<Vec<_>>());
    inner.is_offered = false;
    drop(inner);
    lacking.into_iter().for_each(|lacking| tell(&Event::Uncarried(lacking)));
    Ok(path)
}
