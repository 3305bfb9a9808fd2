//! Tables of `/proc/net`: PPPoE sessions, VLAN devices, totals of every interface.

use super::kept::Kept;
use super::{Line, Outcome, Tool, command};
use crate::{Counter, Fact, Kind, Session, Snapshot};

/// `/proc/net/pppoe` (`pppoe_seq_show`, drivers/net/ppp/pppoe.c).
pub(super) static PPPOE: Tool = Tool {
    name: "/proc/net/pppoe",
    command: |command| command.reads("/proc/net/pppoe"),
    heading: is_pppoe_heading,
    open: |_| Box::new(session),
};

/// `/proc/net/vlan/config` (`vlan_seq_show`, net/8021q/vlanproc.c).
pub(super) static VLAN: Tool = Tool {
    name: "/proc/net/vlan/config",
    command: |command| command.reads("/proc/net/vlan/config"),
    heading: is_vlan_heading,
    open: |_| Box::new(vlan),
};

/// `/proc/net/dev` (`dev_seq_printf_stats`, net/core/net-procfs.c).
pub(super) static DEV: Tool = Tool {
    name: "/proc/net/dev",
    command: |command| command.reads("/proc/net/dev"),
    heading: is_dev_heading,
    open: |_| Box::new(totals),
};

fn session(line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let text = line.trimmed();
    if is_pppoe_heading(text) {
        return Outcome::Taken;
    }
    let mut words = text.split_whitespace();
    let (Some(id), Some(_address), Some(interface), None) =
        (words.next().and_then(session_id), words.next(), words.next(), words.next())
    else {
        return Outcome::Over;
    };
    if !command::is_interface(interface) {
        return Outcome::Over;
    }
    if snapshot.sessions.iter().any(|known| known.id == id && known.interface == interface) {
        return Outcome::Taken;
    }
    if snapshot.sessions.len() < Snapshot::LINES {
        let session = Session { id, interface: interface.to_owned(), quote: line.quote() };
        snapshot.sessions.push(session);
    } else {
        snapshot.omitted += 1;
    }
    Outcome::Taken
}

/// The session id. The kernel prints the number that it keeps in network byte order as it lies in memory: on a
/// little-endian machine, for which this reads it, session 1 is `00000100`. Text of a big-endian one (some MIPS
/// routers) has the bytes of the id the other way round.
fn session_id(word: &str) -> Option<u16> {
    if word.len() != 8 {
        return None;
    }
    u16::try_from(u32::from_str_radix(word, 16).ok()?).ok().map(u16::swap_bytes)
}

fn is_pppoe_heading(text: &str) -> bool {
    text.starts_with("Id ") && text.split_whitespace().eq(["Id", "Address", "Device"])
}

fn vlan(line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let text = line.trimmed();
    if is_vlan_heading(text) || text.starts_with("Name-Type: ") {
        return Outcome::Taken;
    }
    let mut parts = text.split('|').map(str::trim);
    let (Some(name), Some(id), Some(parent), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Outcome::Over;
    };
    let Some(id) = id.parse::<u16>().ok().filter(|&id| id < 4096) else { return Outcome::Over };
    if !command::is_interface(name) || !command::is_interface(parent) {
        return Outcome::Over;
    }
    let quote = line.quote();
    let Some(interface) = snapshot.interface_mut(name, &quote) else { return Outcome::Taken };
    let tpid = match interface.kind.as_ref().map(|kind| &kind.value) {
        Some(Kind::Vlan { tpid, .. }) => *tpid,
        _ => None,
    };
    interface.kind = Some(Fact::new(Kind::Vlan { tpid, id: Some(id) }, quote.clone()));
    interface.parent = Some(Fact::new(parent.to_owned(), quote));
    Outcome::Taken
}

fn is_vlan_heading(text: &str) -> bool {
    text.starts_with("VLAN Dev name") && text.contains('|')
}

fn totals(line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let text = line.trimmed();
    if is_dev_heading(text) || text.starts_with("face |bytes") {
        return Outcome::Taken;
    }
    let Some((name, numbers)) = text.split_once(':') else { return Outcome::Over };
    let numbers: Option<Vec<u64>> = numbers.split_whitespace().map(|word| word.parse().ok()).collect();
    // Received: bytes packets errs drop fifo frame compressed multicast; then the same of transmit.
    let Some([bytes, packets, _errs, _drop, fifo, ..]) = numbers.as_deref() else { return Outcome::Over };
    if !command::is_interface(name) {
        return Outcome::Over;
    }
    let quote = line.quote();
    // What has totals is an interface, whether or not anything else is known of it.
    if snapshot.interface_mut(name, &quote).is_none() {
        return Outcome::Taken;
    }
    let mut kept = line.kept();
    let Some(totals) = kept.totals_of(name, DEV.name) else { return Outcome::Taken };
    Counter::note(&mut totals.bytes, *bytes, &quote);
    Counter::note(&mut totals.packets, *packets, &quote);
    Counter::note_at(&mut totals.overflow, "fifo".to_owned(), *fifo, quote, Kept::MOST);
    Outcome::Taken
}

fn is_dev_heading(text: &str) -> bool {
    text.starts_with("Inter-|") && text.contains("Receive")
}
