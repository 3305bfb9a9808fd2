//! Which interface a name means: the one that bears it, else one that bore it when it was attached.
//!
//! Programs belong to an interface's index; pins and records bear the name of the moment. People use either.

use crate::error::{Error, unknown};
use crate::record::{Records, instance};
use crate::up::interfaces;
use format::quoted;
use xdp::{Dead, Family, Interface};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The interface of this name, else the one that was attached under it and has another name now.
    pub interface: Option<Interface>,
    /// Names of the other interfaces here that were attached under it.
    pub renamed: Vec<String>,
}

/// Looks in the network namespace of the calling thread.
pub fn named(family: Family, name: &str) -> Result<Named, Error> {
    let bearer = find(name)?;
    let mut others = attached_as(family, name)?;
    others.retain(|other| other.name != name);
    let interface = match bearer {
        None if !others.is_empty() => Some(others.remove(0)),
        bearer => bearer,
    };
    Ok(Named { interface, renamed: others.into_iter().map(|other| other.name).collect() })
}

/// The interface of this name here; `None`: there is none.
pub fn find(name: &str) -> Result<Option<Interface>, Error> {
    match Interface::find(name) {
        Ok(interface) => Ok(Some(interface)),
        Err(xdp::Error::NoInterface { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Pins of that name in this network namespace whose program is on no interface.
pub fn dead(family: Family, name: &str) -> Result<Vec<Dead>, Error> {
    let here = here();
    let is_its = |dead: &Dead| dead.interface == name && here.is_none_or(|here| here == dead.namespace);
    Ok(xdp::dead(family)?.into_iter().filter(is_its).collect())
}

/// The interfaces here that were attached under a name. An interface that was renamed or removed since they were listed is none of them.
fn attached_as(family: Family, name: &str) -> Result<Vec<Interface>, Error> {
    let mut found = Vec::new();
    for here in interfaces() {
        let Some(interface) = find(&here)? else { continue };
        match interface.program() {
            Ok(Some(program)) if program.attached_name(family) == Some(name) => found.push(interface),
            Ok(_) | Err(xdp::Error::NoInterface { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Why a name leads nowhere: there was such an interface, which is in another network namespace now or removed, or there is
/// none.
pub fn nowhere(family: Family, name: &str, records: &Records) -> Error {
    let Some(namespace) = here() else { return unknown(name, &interfaces()) };
    let had = match family {
        Family::Steer => "was steered",
        Family::Envelope => "had an envelope",
        Family::Pppoe => "was one of a concentrator",
    };
    let is_planned =
        || family == Family::Steer && matches!(records.planned(&instance(namespace, name)), Ok(Some(_)));
    let is_away = xdp::away(family, name, namespace).is_some();
    if !is_away && dead(family, name).is_ok_and(|dead| !dead.is_empty()) {
        return Error::No(format!(
            "{name} was removed while it {had}: `{}` clears what is left of that",
            family.end_command(name)
        ));
    }
    if !is_away && !is_planned() {
        return unknown(name, &interfaces());
    }
    Error::No(format!(
        "{name} {had} in this network namespace and has left it: `rxlane {family} down` with its present name, in the \
         namespace where it is now (`ip netns exec NAMESPACE …`), ends that"
    ))
}

pub fn here() -> Option<u64> {
    Interface::find("lo").map(|lo| lo.namespace).ok()
}

pub fn name_of(index: u32) -> Option<String> {
    interfaces().into_iter().find(|name| Interface::find(name).is_ok_and(|found| found.index == index))
}

/// What is worth saying of an interface whose name another one was attached under.
pub fn rename_notice(name: &str, renamed: &str) -> String {
    format!(
        "{renamed}, which is steered, was called {name} when it was attached (`rxlane steer down {quoted_renamed}`)",
        quoted_renamed = quoted(renamed)
    )
}
