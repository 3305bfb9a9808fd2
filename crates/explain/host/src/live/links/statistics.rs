//! The `RX:` and `TX:` blocks of `ip -s link`.

use kernel::netlink::Attributes;
use linux_raw_sys::if_arp as nl;
use std::fmt::Write as _;

/// Counters of an interface by their place in `struct rtnl_link_stats64`, and of old kernels in
/// `struct rtnl_link_stats`, which has the same order in 32 bits (`include/uapi/linux/if_link.h`).
struct Counters(Vec<u64>);

/// Columns of a block: heading and place of the counter. The last is printed where it counts.
type Columns = [(&'static str, usize); 7];
const RX: Columns = [
    ("bytes", 2),
    ("packets", 0),
    ("errors", 4),
    ("dropped", 6),
    ("missed", 15),
    ("mcast", 8),
    ("compressed", 21),
];
const TX: Columns = [
    ("bytes", 3),
    ("packets", 1),
    ("errors", 5),
    ("dropped", 7),
    ("carrier", 17),
    ("collsns", 9),
    ("compressed", 22),
];
/// Least width of each column: iproute2 sizes the columns for the headings of `ip -s -s`, too.
const WIDTHS: [usize; 7] = [10, 7, 6, 7, 7, 7, 10];

impl Counters {
    fn of(attributes: Attributes<'_>) -> Option<Counters> {
        if let Some(wide) = attributes.get(nl::IFLA_STATS64 as u16) {
            let bytes = wide.chunks_exact(8).filter_map(|bytes| bytes.first_chunk());
            return Some(Counters(bytes.map(|bytes| u64::from_ne_bytes(*bytes)).collect()));
        }
        let narrow = attributes.get(nl::IFLA_STATS as u16)?;
        let bytes = narrow.chunks_exact(4).filter_map(|bytes| bytes.first_chunk());
        Some(Counters(bytes.map(|bytes| u64::from(u32::from_ne_bytes(*bytes))).collect()))
    }

    /// A counter; one that an older kernel does not have is zero, as iproute2 shows it.
    fn get(&self, place: usize) -> u64 {
        self.0.get(place).copied().unwrap_or(0)
    }
}

/// The two blocks: four lines. Nothing where the kernel sent no counters.
pub(super) fn render(attributes: Attributes<'_>) -> String {
    let Some(counters) = Counters::of(attributes) else { return String::new() };
    let mut widths = WIDTHS;
    for columns in [RX, TX] {
        for (width, (_, place)) in widths.iter_mut().zip(columns) {
            *width = (*width).max(counters.get(place).to_string().len());
        }
    }
    let mut text = String::new();
    block(&mut text, "RX", RX, &counters, widths);
    block(&mut text, "TX", TX, &counters, widths);
    text
}

/// Counters of lost packets, by their names in sysfs; none where the kernel sent none.
pub(super) fn losses(attributes: Attributes<'_>) -> Vec<(&'static str, u64)> {
    const LOSSES: [(&str, usize); 8] = [
        ("rx_errors", 4),
        ("tx_errors", 5),
        ("rx_dropped", 6),
        ("tx_dropped", 7),
        ("rx_over_errors", 11),
        ("rx_fifo_errors", 14),
        ("rx_missed_errors", 15),
        ("rx_nohandler", 23),
    ];
    let counters = Counters::of(attributes);
    LOSSES.iter().filter_map(|(name, place)| Some((*name, counters.as_ref()?.get(*place)))).collect()
}

fn block(text: &mut String, label: &str, columns: Columns, counters: &Counters, widths: [usize; 7]) {
    let (mut heading, mut numbers) = (format!("    {label}: "), String::from("    "));
    for (place, ((name, counter), width)) in columns.into_iter().zip(widths).enumerate() {
        if name == "compressed" && counters.get(counter) == 0 {
            continue;
        }
        // The label takes four columns of the first.
        let width_of_name = if place == 0 { width.saturating_sub(4) } else { width };
        let _ = write!(heading, "{name:>width_of_name$} ");
        let _ = write!(numbers, "{:>width$} ", counters.get(counter));
    }
    for line in [heading, numbers] {
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::attributes::attribute;

    #[test]
    fn counters_stand_below_their_headings() {
        let mut counters = [0u64; 25];
        counters[2] = 123_456_789_012;
        counters[0] = 1_000_000;
        counters[15] = 42;
        counters[17] = 3;
        let sent: Vec<u8> = counters.iter().flat_map(|counter| counter.to_ne_bytes()).collect();
        let sent = attribute(nl::IFLA_STATS64 as u16, &sent);
        let expected = [
            "    RX:    bytes packets errors dropped  missed   mcast",
            "    123456789012 1000000      0       0      42       0",
            "    TX:    bytes packets errors dropped carrier collsns",
            "               0       0      0       0       3       0",
        ];
        let text = render(Attributes::new(&sent));
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn counters_of_32_bits_and_fewer_are_printed_too() {
        let sent: Vec<u8> = [7u32, 8, 9].iter().flat_map(|counter| counter.to_ne_bytes()).collect();
        let text = render(Attributes::new(&attribute(nl::IFLA_STATS as u16, &sent)));
        assert_eq!(
            text.lines().nth(1).map(|line| line.split_whitespace().take(2).collect::<Vec<_>>()),
            Some(vec!["9", "7"])
        );
        assert_eq!(render(Attributes::new(&[])), "");
    }
}
