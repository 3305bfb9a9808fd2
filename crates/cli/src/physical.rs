//! What interfaces stand on: who names `ppp0` where a NIC is meant gets the NIC below.

use crate::output::complain;
use anyhow::bail;
use format::printable;
use serde_json::Value;
use service::{Instances, Kind, StateDir};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Interfaces of the kernel stand on no more others (`MAX_NEST_DEV` of include/linux/netdevice.h).
const DEEPEST: usize = 8;
/// Type of a PPP interface (`ARPHRD_PPP` of include/uapi/linux/if_arp.h).
const PPP: &str = "512";

/// The NICs below an interface of this network namespace: itself where it stands on no other, nothing where there is none.
/// Of a TUN or TAP device of this program its process says what is below.
pub fn physical(name: &str, state: &StateDir) -> Vec<String> {
    let (mut lowest, mut level) = (BTreeSet::new(), BTreeSet::from([name.to_owned()]));
    for _ in 0..=DEEPEST {
        for name in std::mem::take(&mut level) {
            match below(&name, state) {
                Some(others) if others.is_empty() => drop(lowest.insert(name)),
                others => level.extend(others.into_iter().flatten()),
            }
        }
    }
    lowest.into_iter().collect()
}

/// The only NIC below an interface, which the user sees where it is another one; the name itself where nothing is known of
/// it. Errors: several are below.
pub fn meant(name: &str, state: &StateDir) -> anyhow::Result<String> {
    match physical(name, state).as_slice() {
        [] => Ok(name.to_owned()),
        [only] => {
            if only != name {
                let (name, only) = (printable(name), printable(only));
                complain(&format!("{name} stands on {only}, and the answer is for {only}"));
            }
            Ok(only.clone())
        }
        several => {
            let (name, several) = (printable(name), printable(&several.join(", ")));
            bail!("{name} stands on several NICs: name one of {several}")
        }
    }
}

/// Whether it is a TUN or TAP device.
pub fn is_tun(name: &str) -> bool {
    !name.contains('/') && Path::new("/sys/class/net").join(name).join("tun_flags").exists()
}

/// The interfaces right below; `None`: there is no such interface.
fn below(name: &str, state: &StateDir) -> Option<BTreeSet<String>> {
    if name.contains('/') {
        return None;
    }
    let folder = Path::new("/sys/class/net").join(name);
    let entries = fs::read_dir(&folder).ok()?;
    if folder.join("device").exists() {
        return Some(BTreeSet::new());
    }
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let lower: BTreeSet<String> =
        names.filter_map(|entry| Some(entry.strip_prefix("lower_")?.to_owned())).collect();
    if !lower.is_empty() {
        return Some(lower);
    }
    if fs::read_to_string(folder.join("type")).is_ok_and(|number| number.trim() == PPP) {
        return Some(sessions(&fs::read_to_string("/proc/self/net/pppoe").unwrap_or_default()));
    }
    Some(if is_tun(name) { own(name, state).into_iter().collect() } else { BTreeSet::new() })
}

/// The interfaces of the kernel's PPPoE sessions: it does not say which of them is that of a PPP interface.
fn sessions(pppoe: &str) -> BTreeSet<String> {
    let devices = pppoe.lines().skip(1).filter_map(|line| line.split_whitespace().nth(2));
    devices.map(str::to_owned).collect()
}

/// The parent of an interface of a link, a client or a concentrator of this program.
fn own(name: &str, state: &StateDir) -> Option<String> {
    const KINDS: [(Kind, &[&str]); 3] = [
        (Kind::Link, &["present_name", "name"]),
        (Kind::Session, &["interface"]),
        (Kind::Concentrator, &["interface"]),
    ];
    KINDS.into_iter().find_map(|(kind, keys)| {
        let instances = Instances::new(kind, state.clone()).ok()?;
        let statuses = instances.names().ok()?.into_iter();
        let mut statuses = statuses.filter_map(|other| instances.ask::<Value>(&other, "status").ok());
        let is_its = |status: &Value| keys.iter().any(|key| status[key] == *name);
        Some(statuses.find(is_its)?["parent"].as_str()?.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_name_their_interfaces_once() {
        let text = "Id       Address              Device\n00000001 02:00:5e:00:00:01     eth0\n00000002 02:00:5e:00:00:02     eth0\n";
        assert_eq!(sessions(text), BTreeSet::from(["eth0".to_owned()]));
        assert_eq!(sessions(""), BTreeSet::new());
    }
}
