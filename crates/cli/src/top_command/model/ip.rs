//! What the IP layer of this network namespace took from below, in `/proc/net/snmp` and `/proc/net/snmp6`
//! (net/ipv4/proc.c and net/ipv6/proc.c of Linux; RFC 4293 names the counters).

/// Packets since the namespace was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpCounts {
    /// Packets that came from an interface (`InReceives`), both versions.
    pub received: u64,
    /// Packets that were dropped, though nothing was wrong with them (`InDiscards`), both versions.
    pub discarded: u64,
}

impl IpCounts {
    /// Reads both files' text; a machine without IPv6 has no second one.
    pub fn read(snmp: &str, snmp6: Option<&str>) -> Option<IpCounts> {
        let mut rows = snmp.lines().filter_map(|line| line.strip_prefix("Ip: "));
        let (names, values) = (rows.next()?, rows.next()?);
        let v4 = |wanted: &str| {
            let mut pairs = names.split_whitespace().zip(values.split_whitespace());
            pairs.find(|(name, _)| *name == wanted)?.1.parse::<u64>().ok()
        };
        let v6 = |wanted: &str| {
            let words = |line: &'_ str| {
                let (name, value) = line.split_once(char::is_whitespace)?;
                (name == wanted).then(|| value.trim().parse::<u64>().ok())?
            };
            snmp6.map_or(Some(0), |text| text.lines().find_map(words))
        };
        Some(IpCounts {
            received: v4("InReceives")?.saturating_add(v6("Ip6InReceives")?),
            discarded: v4("InDiscards")?.saturating_add(v6("Ip6InDiscards")?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Ip: Forwarding DefaultTTL InReceives InHdrErrors InDiscards\nIp: 1 64 1000 2 3\n\
                        Icmp: InMsgs\nIcmp: 5\n";

    #[test]
    fn both_versions_are_added_up() {
        let v6 = "Ip6InReceives                   \t40\nIp6InDiscards                   \t2\n";
        assert_eq!(IpCounts::read(SNMP, Some(v6)), Some(IpCounts { received: 1040, discarded: 5 }));
        assert_eq!(IpCounts::read(SNMP, None), Some(IpCounts { received: 1000, discarded: 3 }));
    }

    #[test]
    fn a_file_in_another_form_is_not_known() {
        for text in [
            "",
            "Ip: InReceives InDiscards\n",
            "Ip: InReceives\nIp: 5\n",
            "Ip: InReceives InDiscards\nIp: x 1\n",
        ] {
            assert_eq!(IpCounts::read(text, None), None, "{text}");
        }
        assert_eq!(IpCounts::read(SNMP, Some("nothing")), None);
    }
}
