//! What the drivers call their counters: `drivers.txt` next to this file, where each stands with its source.

use super::What;
use std::sync::LazyLock;

static DRIVERS: LazyLock<Vec<Driver>> =
    LazyLock::new(|| read(include_str!("drivers.txt")).unwrap_or_default());

/// A driver and the statistics that it prints.
#[derive(Default)]
pub(super) struct Driver {
    /// As `ethtool -i` names it; several where one source serves several drivers.
    pub names: Vec<&'static str>,
    pub counters: Vec<Counter>,
    /// The driver printed an output that has all names of the first list and none of the second; both are empty
    /// where nothing proves it.
    pub proof: [Vec<&'static str>; 2],
}

/// A line of `ethtool -S`.
pub(super) struct Counter {
    /// The name; `{n}` stands for the number of a receive queue.
    pub pattern: &'static str,
    pub counts: Counts,
    /// Whether the driver has to be known: others mean something else by the name.
    pub if_known: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Of the receive queue in the name, or of the device where there is none.
    Here(What),
    /// Of the queue of the heading above.
    Below(What),
    /// A heading whose value is the number of the queue below.
    Heading {
        receive: bool,
    },
    /// Frames that the device lost, or times that it lost some, for want of room.
    Overflow,
    TooLong,
    Allowance,
    /// Nothing that matters here, though the name means something elsewhere.
    Nothing,
}

/// Every driver that is known.
pub(super) fn all() -> &'static [Driver] {
    &DRIVERS
}

/// Reads the table. Errors: the line that is none.
fn read(text: &'static str) -> Result<Vec<Driver>, &'static str> {
    let mut drivers: Vec<Driver> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(field) = line.strip_prefix("  ") else {
            drivers.push(Driver { names: line.split(", ").collect(), ..Driver::default() });
            continue;
        };
        let driver = drivers.last_mut().ok_or(line)?;
        let (kind, names) = field.split_once(": ").ok_or(line)?;
        let names = names.split(", ");
        match kind {
            "proof" => driver.proof[0].extend(names),
            "without" => driver.proof[1].extend(names),
            _ => {
                let (kind, if_known) = kind.strip_prefix("known ").map_or((kind, false), |kind| (kind, true));
                let counts = counts(kind).ok_or(line)?;
                driver.counters.extend(names.map(|pattern| Counter { pattern, counts, if_known }));
            }
        }
    }
    Ok(drivers)
}

fn counts(kind: &str) -> Option<Counts> {
    Some(match kind {
        "receive-heading" => Counts::Heading { receive: true },
        "transmit-heading" => Counts::Heading { receive: false },
        "overflow" => Counts::Overflow,
        "too-long" => Counts::TooLong,
        "allowance" => Counts::Allowance,
        "nothing" => Counts::Nothing,
        kind => match kind.strip_prefix("below ") {
            Some(kind) => Counts::Below(what(kind)?),
            None => Counts::Here(what(kind)?),
        },
    })
}

fn what(kind: &str) -> Option<What> {
    Some(match kind {
        "packets" => What::Packets,
        "packets-part" => What::PacketsPart,
        "bytes" => What::Bytes,
        "bytes-part" => What::BytesPart,
        "drops" => What::Drops,
        "xdp-drops" => What::DropsByXdp,
        "packets-while-polled" => What::PacketsWhilePolled,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let drivers = read(include_str!("drivers.txt")).unwrap_or_else(|line| panic!("{line}"));
        assert!(drivers.len() > 40);
        assert!(drivers.iter().all(|driver| !driver.counters.is_empty() && !driver.names.contains(&"")));
    }
}
