//! What each CPU took out of its backlog or its network cards: `/proc/net/softnet_stat`.
//!
//! The counters are the machine's, whatever the network namespace.

use host::text::Reader;
use std::collections::BTreeMap;
use std::fs;
use std::io;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processed(BTreeMap<u32, u64>);

pub fn read() -> io::Result<Processed> {
    Ok(parse(&fs::read_to_string("/proc/net/softnet_stat")?))
}

fn parse(text: &str) -> Processed {
    let mut reader = Reader::new();
    // The only error is one of reading, which text in memory does not have.
    let _ = reader.read("softnet_stat", format!("$ cat /proc/net/softnet_stat\n{text}").as_bytes());
    let softnet = reader.finish().softnet;
    Processed(softnet.iter().map(|(cpu, row)| (*cpu, row.processed.value())).collect())
}

impl Processed {
    /// Frames by CPU since `earlier`; the counters have 32 bits and wrap.
    pub fn since(&self, earlier: &Processed) -> Vec<(u32, u64)> {
        let before = |cpu: &u32| earlier.0.get(cpu).copied().unwrap_or(0);
        let since =
            |(cpu, count): (&u32, &u64)| (*cpu, count.wrapping_sub(before(cpu)) & u64::from(u32::MAX));
        self.0.iter().map(since).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_hexadecimal_and_name_their_cpu() {
        let row = |processed: &str, cpu: &str| {
            format!("{processed} 00000000 00000000 {} {cpu}", ["00000000"; 9].join(" "))
        };
        let before = parse(&[row("000000ff", "00000000"), row("ffffffff", "00000002")].join("\n"));
        let after = parse(&[row("00000100", "00000000"), row("00000001", "00000002")].join("\n"));
        assert_eq!(after.since(&before), [(0, 1), (2, 2)]);
    }
}
