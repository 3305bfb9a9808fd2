//! `ifconfig` of BusyBox (OpenWrt) and of net-tools before 2.0.
//!
//! An interface begins with `eth0      Link encap:Ethernet  HWaddr …`; lines beneath it are indented by ten blanks:
//! `UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1`, `RX packets:11 errors:0 dropped:0 overruns:0 frame:0`
//! (BusyBox `networking/interface.c`, `ife_print`). A PPP interface encapsulates `Point-to-Point Protocol`.

use super::command::is_interface;
use super::kept::Kept;
use super::{Context, Fate, Line, Section, Tool, sysctl_machine};
use crate::{Counter, Fact, Kind, Observed, Snapshot, System};

pub(super) static TOOL: Tool = Tool {
    name: "ifconfig",
    // A command `ifconfig` opens the reader of the other form, which hands on what it does not know.
    command: |_| false,
    heading: |line| header(line).is_some(),
    open: |context| Box::new(Listing { context: context.clone(), interface: None }),
};

struct Listing {
    context: Context,
    interface: Option<String>,
}

impl Section for Listing {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let text = line.trimmed();
        if let Some((name, encapsulation)) = header(text) {
            sysctl_machine::infer(snapshot, System::Linux, &line.quote());
            self.interface = Some(name.to_owned());
            if let Some(interface) = snapshot.interface_mut(name, &line.quote())
                && encapsulation.starts_with("Point-to-Point")
            {
                interface.kind.get_or_insert_with(|| Fact::new(Kind::Ppp, line.quote()));
            }
            return Fate::Taken;
        }
        if text.is_empty() {
            return Fate::Skipped;
        }
        let Some(name) = &self.interface else { return Fate::Over };
        let word = text.split([' ', ':']).next().unwrap_or_default();
        match word {
            "RX" => self.received(name, line),
            "inet" | "inet6" | "TX" | "collisions" | "Interrupt" | "Base" | "Memory" | "DMA" => {}
            _ if text.contains("MTU:") => flags(name, line, snapshot),
            _ => return Fate::Over,
        }
        Fate::Taken
    }
}

/// Name and encapsulation.
fn header(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(char::is_whitespace)?;
    let encapsulation = rest.trim_start().strip_prefix("Link encap:")?;
    is_interface(name).then_some((name, encapsulation))
}

/// `UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1`; without `UP` where it is down.
fn flags(name: &str, line: &Line<'_>, snapshot: &mut Snapshot) {
    let quote = line.quote();
    let Some(interface) = snapshot.interface_mut(name, &quote) else { return };
    let up = line.trimmed().split_whitespace().any(|word| word == "UP");
    Observed::note(&mut interface.up, Fact::new(up, quote.clone()));
    if let Some(mtu) = number(line.trimmed(), "MTU:").and_then(|mtu| mtu.try_into().ok()) {
        Observed::note(&mut interface.mtu, Fact::new(mtu, quote));
    }
}

impl Listing {
    /// `RX packets:11 errors:0 dropped:0 overruns:0 frame:0`, and `RX bytes:1100 (1.0 KiB)  TX bytes:…`.
    /// `overruns` are `rx_fifo_errors`, frames that a full ring lost.
    fn received(&self, name: &str, line: &Line<'_>) {
        let text = line.trimmed();
        let mut kept = self.context.kept();
        let Some(totals) = kept.totals_of(name, TOOL.name) else { return };
        if let Some(packets) = number(text, "RX packets:") {
            Counter::note(&mut totals.packets, packets, line.quote());
        }
        if let Some(bytes) = number(text, "RX bytes:") {
            Counter::note(&mut totals.bytes, bytes, line.quote());
        }
        if let Some(overruns) = number(text, "overruns:") {
            Counter::note_at(&mut totals.overflow, "fifo".to_owned(), overruns, line.quote(), Kept::MOST);
        }
    }
}

fn number(text: &str, label: &str) -> Option<u64> {
    text.split_once(label)?.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::text::read;
    use crate::{Kind, System};

    // eth0 as in github.com/netdata/netdata issue 988; the PPP interface in BusyBox's layout, written for this test.
    const TEXT: &str = "\
eth0      Link encap:Ethernet  HWaddr 02:00:00:00:00:01
          inet addr:192.0.2.12  Bcast:192.0.2.255  Mask:255.255.255.0
          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1
          RX packets:3811442658 errors:0 dropped:7183 overruns:4 frame:0
          TX packets:3587842070 errors:0 dropped:0 overruns:9 carrier:0
          collisions:0 txqueuelen:1000
          RX bytes:3492834266631 (3.4 TB)  TX bytes:4635258443813 (4.6 TB)
          Interrupt:20 Memory:fe500000-fe520000

pppoe-wan Link encap:Point-to-Point Protocol
          POINTOPOINT NOARP MULTICAST  MTU:1492  Metric:1
";

    #[test]
    fn interfaces_with_their_totals() {
        for text in [TEXT.to_owned(), format!("root@OpenWrt:~# ifconfig\n{TEXT}")] {
            let snapshot = read(&text);
            assert_eq!(snapshot.system.as_ref().map(|system| system.value), Some(System::Linux));
            let eth0 = snapshot.interface("eth0").expect("eth0");
            assert_eq!(eth0.mtu.as_ref().map(|mtu| *mtu.get()), Some(1500));
            assert_eq!(eth0.up.as_ref().map(|up| *up.get()), Some(true));
            assert_eq!(eth0.totals.packets.as_ref().map(|packets| packets.value()), Some(3_811_442_658));
            assert_eq!(eth0.totals.bytes.as_ref().map(|bytes| bytes.value()), Some(3_492_834_266_631));
            assert_eq!(eth0.totals.overflow["fifo"].value(), 4);
            let ppp = snapshot.interface("pppoe-wan").expect("pppoe-wan");
            assert_eq!(ppp.kind.as_ref().map(|kind| &kind.value), Some(&Kind::Ppp));
            assert_eq!(ppp.up.as_ref().map(|up| *up.get()), Some(false));
            assert_eq!(ppp.mtu.as_ref().map(|mtu| *mtu.get()), Some(1492));
        }
        for end in 0..TEXT.len() {
            read(&TEXT[..end]);
        }
        assert!(read("my eth0 Link encap:Ethernet is fine\n").interfaces.is_empty());
    }
}
