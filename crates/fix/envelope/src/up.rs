//! Putting an envelope on an interface: everything is resolved first, printed on request, and only then done.

use crate::{Error, by, place};
use host::setting::{InterfaceName, Setting};
use service::journal::Applied;
use service::record::begin;
use service::{Instances, Kind};
use steer::error::Error as Steer;
use steer::record::Records;
use steer::{drivers, error, named, stale_namespaces, up};
use xdp::envelope::{self, Envelope, Plan};
use xdp::{Described, Family, Interface, Mode};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub interface: String,
    /// Bytes for headers.
    pub header: u32,
    pub generic: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub plan: Plan,
    pub setting: Setting,
    pub driver: Option<String>,
    /// What attaching does to the interface, as the end of a sentence that begins with the driver; `None`: not known.
    pub attaching: Option<&'static str>,
}

#[derive(Debug)]
pub struct Done {
    pub envelope: Envelope,
    pub mode: Mode,
}

/// Decides everything. Changes nothing and takes no privilege.
pub fn resolve(request: &Request, records: &Records) -> Result<Resolved, Error> {
    let name: InterfaceName = request.interface.parse()?;
    let family = Family::Envelope;
    let interface = match named::named(family, name.as_str())?.interface {
        Some(interface) if interface.name == name.as_str() => interface,
        Some(renamed) => {
            let attached = name.to_string();
            return Err(xdp::Error::Attached { family, interface: renamed.name, attached }.into());
        }
        None => return Err(error::unknown(name.as_str(), &up::interfaces()).into()),
    };
    let described = interface.described()?;
    may_be_here(&interface, &described)?;
    interface.is_free()?;
    // Without root the journal is closed; `up` looks again.
    let is_recorded = || {
        let journal = up::existing_journal(records).ok().flatten();
        journal.is_some_and(|journal| !place::entries(&journal, &interface, None).is_empty())
    };
    if is_recorded() {
        // The program of an `up` is on before this is recorded, and off after a `down` has settled it.
        interface.is_free()?;
        records.wait_for_change();
        interface.is_free()?;
        if is_recorded() {
            return Err(Error::Bare { interface: interface.name });
        }
    }
    let mode = if request.generic { Mode::Generic } else { Mode::Native };
    if let Some(driver) =
        described.driver.as_ref().filter(|driver| request.generic && UNCUT.contains(&driver.as_str()))
    {
        let (interface, driver) = (interface.name, driver.clone());
        return Err(Error::Uncut { interface, driver });
    }
    // Other than a pair or a guest's adapter, a TAP device gets no request to have them cut (drivers/net/tun.c).
    if described.has_virtio_headers {
        return Err(Error::Written { interface: interface.name });
    }
    let payload = described.mtu.unwrap_or_default();
    let requested = payload.saturating_add(request.header);
    fits(&interface, &described, mode, requested)?;
    let known = described.driver.as_deref().and_then(drivers::driver);
    Ok(Resolved {
        plan: Plan { interface, mode, payload, header: request.header },
        setting: Setting::Mtu { interface: name, mtu: requested },
        attaching: known.map(|driver| driver.attaching).filter(|_| !request.generic),
        driver: described.driver,
    })
}

/// Drivers that hand on what the other end sends as it is, segments to be cut (GSO) among it. A program in native mode makes
/// them ask the other end for frames: `veth_fix_features()` in drivers/net/veth.c, `virtnet_clear_guest_offloads()` in
/// drivers/net/virtio_net.c. Received segments that the kernel itself would merge (GRO) it leaves alone where a generic
/// program is on (`netif_elide_gro()` in include/linux/netdevice.h).
const UNCUT: [&str; 3] = ["veth", "virtio_net", "tun"];

/// An envelope is a matter of the device on which frames arrive with all their headers.
fn may_be_here(interface: &Interface, described: &Described) -> Result<(), Error> {
    let name = &interface.name;
    if !described.is_ethernet {
        let what = if name == "lo" { "the loopback" } else { "no Ethernet interface" };
        return Err(Steer::Usage(format!("{name} is {what}: no tagged or PPPoE frame arrives on it")).into());
    }
    let what = match described.kind.as_deref() {
        Some("vlan") => "a VLAN device: name the device below it",
        Some("macvlan" | "macvtap" | "ipvlan") => "a part of another device: name the device below it",
        Some("bridge") => "a bridge: name its ports, one after the other",
        Some("bond" | "team") => "made of several devices: name each of these, and raise its own MTU then",
        _ => return Ok(()),
    };
    let text = format!("{name} is {what}, where the frames come in with all their headers");
    Err(Steer::Usage(text).into())
}

/// Whether the kernel lets the interface have the MTU, as far as that is known before it is tried.
fn fits(interface: &Interface, described: &Described, mode: Mode, requested: u32) -> Result<(), Error> {
    let refused = |why: String| Error::Mtu {
        interface: interface.name.clone(),
        driver: described.driver.clone(),
        requested,
        why,
    };
    if let Some(most) = described.mtu_most.filter(|&most| most < requested) {
        return Err(refused(format!("its maximum is {most}{}", room(described.mtu, most))));
    }
    let known = described.driver.as_deref().and_then(drivers::driver).filter(|_| mode == Mode::Native);
    let limited = known.and_then(|driver| Some((driver, driver.mtu_most.filter(|&most| most < requested)?)));
    match limited {
        Some((driver, most)) => Err(refused(format!(
            "with an XDP program it takes {most} at most ({}){}; `--mode generic` asks nothing of the driver",
            driver.source,
            room(described.mtu, most)
        ))),
        None => Ok(()),
    }
}

fn room(mtu: Option<u32>, most: u32) -> String {
    match mtu.map(|mtu| most.saturating_sub(mtu)) {
        Some(room) if room >= envelope::HEADER_LEAST => format!(", which leaves `--header {room}`"),
        _ => ", which leaves no room for headers".to_owned(),
    }
}

/// Does what was resolved: the program first, then the MTU. What fails takes everything back.
///
/// # Errors
///
/// [`Error`]; nothing was left behind.
pub fn up(resolved: &Resolved, records: &Records) -> Result<Done, Error> {
    let Resolved { plan, setting, driver, .. } = resolved;
    // The loader knows best which privileges are missing.
    envelope::check(plan)?;
    let interface = &plan.interface;
    let _alone = records.lock(Kind::Envelope, interface)?;
    let _lock = records.work()?;
    // It may have come up since, and what the journal has is of that one.
    interface.is_free()?;
    let instances = Instances::new(Kind::Envelope, records.state().clone())?;
    stale_namespaces::clear(records);
    if let Some(mut journal) = up::existing_journal(records)? {
        for number in place::orphans(&journal, &interface.name) {
            journal.forget(number)?;
        }
        if !place::entries(&journal, interface, None).is_empty() {
            return Err(Error::Bare { interface: interface.name.clone() });
        }
    }
    let _coming_up = begin(&instances, &interface.name)?;
    let envelope = match envelope::attach(plan) {
        Ok(envelope) => envelope,
        Err(error) => {
            unpin(interface);
            return Err(error.into());
        }
    };
    let raised = raise(plan, setting, driver.as_ref(), records);
    match raised.and_then(|()| Ok(envelope.mode()?)) {
        Ok(mode) => Ok(Done { envelope, mode }),
        Err(error) => {
            // Of two errors the first says more than that of cleaning up behind it.
            let _ = take_back(interface, records);
            unpin(interface);
            Err(error)
        }
    }
}

fn raise(plan: &Plan, setting: &Setting, driver: Option<&String>, records: &Records) -> Result<(), Error> {
    let interface = plan.interface.name.clone();
    let former = |mtu| match setting {
        Setting::Mtu { interface, .. } => Setting::Mtu { interface: interface.clone(), mtu },
        other => other.clone(),
    };
    let applied = up::journal(records)?.apply(setting, &by(&interface));
    match applied {
        Ok(Applied::Changed { former: was, .. }) if was.settings() == [former(plan.payload)] => Ok(()),
        Ok(_) => Err(Error::Raced { interface }),
        Err(error @ service::journal::Error::Setting(_)) => Err(Error::Mtu {
            interface,
            driver: driver.cloned(),
            requested: plan.payload.saturating_add(plan.header),
            why: error::with_causes(&error),
        }),
        Err(other) => Err(other.into()),
    }
}

/// Pins of an interface that was removed meanwhile. What cannot be removed now, `down` removes.
fn unpin(interface: &Interface) {
    for dead in named::dead(Family::Envelope, &interface.name).unwrap_or_default() {
        let _ = xdp::clear_dead(&dead);
    }
}

/// The MTU first, as ever.
fn take_back(interface: &Interface, records: &Records) -> Result<(), Error> {
    if let Some(mut journal) = up::existing_journal(records)? {
        let numbers: Vec<u64> =
            place::entries(&journal, interface, None).iter().map(|entry| entry.number).collect();
        if !numbers.is_empty() {
            journal.undo_these(&numbers, false)?;
        }
    }
    Envelope::remove(interface)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(kind: Option<&str>, is_ethernet: bool) -> Described {
        let kind = kind.map(str::to_owned);
        Described {
            is_ethernet,
            mtu: Some(1500),
            mtu_most: None,
            has_virtio_headers: false,
            driver: kind.clone(),
            kind,
        }
    }

    fn wan0() -> Interface {
        Interface { name: "wan0".to_owned(), index: 2, namespace: 1 }
    }

    #[test]
    fn frames_have_all_their_headers_only_on_the_device_below() {
        let refused = [
            (Some("vlan"), true, "a VLAN device: name the device below it"),
            (Some("macvlan"), true, "a part of another device"),
            (Some("bridge"), true, "a bridge: name its ports"),
            (Some("bond"), true, "made of several devices"),
            (Some("ppp"), false, "no Ethernet interface"),
            (None, false, "no Ethernet interface"),
        ];
        for (kind, is_ethernet, said) in refused {
            let error = may_be_here(&wan0(), &described(kind, is_ethernet)).expect_err(said);
            assert!(error.to_string().contains(said), "{error}");
        }
        for kind in [None, Some("veth"), Some("tun")] {
            may_be_here(&wan0(), &described(kind, true)).expect("a device by which frames come in");
        }
    }

    #[test]
    fn the_larger_mtu_has_to_fit_the_device_and_its_driver() {
        let of = |driver: &str, mtu: u32, most: Option<u32>| Described {
            mtu: Some(mtu),
            mtu_most: most,
            driver: Some(driver.to_owned()),
            ..described(None, true)
        };
        let fits = |described: &Described, mode, header: u32| {
            fits(&wan0(), described, mode, described.mtu.unwrap_or_default() + header)
                .map_err(|error| error.to_string())
        };
        assert_eq!(fits(&of("igb", 1500, Some(9216)), Mode::Native, 482), Ok(()));
        let device = fits(&of("e1000e", 1500, Some(1504)), Mode::Generic, 8).expect_err("too long");
        assert!(device.contains("its maximum is 1504, which leaves `--header 4`"), "{device}");
        let driver = fits(&of("igc", 1500, Some(9216)), Mode::Native, 8).expect_err("too long with XDP");
        assert!(driver.contains("it takes 1500 at most") && driver.contains("no room"), "{driver}");
        assert!(driver.contains("`--mode generic`"), "{driver}");
        assert_eq!(fits(&of("igc", 1500, Some(9216)), Mode::Generic, 8), Ok(()));
    }
}
