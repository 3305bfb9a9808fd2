//! `ethtool -i`: driver and bus address, and what interfaces without a device are by the name of their driver.
//!
//! The output names no interface: it is about the one that a command named last.

use super::{Fate, Line, Section, Tool};
use crate::{Fact, Interface, Kind, Quote, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "ethtool -i",
    command: |command| command.is("ethtool", "-i"),
    heading: |line| line.strip_prefix("driver: ").is_some_and(is_driver),
    open: |context| Box::new(Driver { interface: context.interface().to_owned() }),
};

/// `ETHTOOL_GDRVINFO` as ethtool prints it.
const NAMES: [&str; 10] = [
    "version",
    "firmware-version",
    "expansion-rom-version",
    "supports-statistics",
    "supports-test",
    "supports-eeprom-access",
    "supports-register-dump",
    "supports-priv-flags",
    "bus-info",
    "driver",
];

/// Drivers of interfaces that stand on no device, which call themselves with blanks.
const WITH_BLANKS: [&str; 2] = ["802.1Q VLAN Support", "Ethernet Channel Bonding Driver"];

struct Driver {
    interface: String,
}

impl Section for Driver {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let text = line.trimmed();
        if text.is_empty() {
            return Fate::Skipped;
        }
        let Some((name, value)) = text.split_once(':').map(|(name, value)| (name, value.trim())) else {
            return Fate::Over;
        };
        if !NAMES.contains(&name) {
            return Fate::Over;
        }
        // "driver:" begins the next interface's output, whose name was not said where no prompt came before.
        if value.is_empty() || value == "N/A" || !matches!(name, "driver" | "bus-info") {
            return Fate::Taken;
        }
        let quote = line.quote();
        let Some(interface) = snapshot.interface_mut(&self.interface, &quote) else { return Fate::Taken };
        if name == "bus-info" {
            interface.bus = Some(Fact::new(value.to_owned(), quote));
        } else {
            kind(interface, value, &quote);
            interface.driver = Some(Fact::new(value.to_owned(), quote));
        }
        Fate::Taken
    }
}

fn is_driver(name: &str) -> bool {
    WITH_BLANKS.contains(&name) || (!name.is_empty() && !name.contains(char::is_whitespace))
}

/// What an interface is by its driver; `ip -d link` says more and is not overruled.
fn kind(interface: &mut Interface, driver: &str, quote: &Quote) {
    let kind = match driver {
        "802.1Q VLAN Support" => {
            parent_by_name(interface, quote);
            Kind::Vlan { tpid: None, id: None }
        }
        "bridge" => Kind::Bridge { filtering: None, tpid: None },
        "veth" => Kind::Veth,
        "bonding" | "Ethernet Channel Bonding Driver" => Kind::Other("bond".to_owned()),
        "tun" | "team" | "macvlan" | "ipvlan" | "dummy" | "vxlan" | "wireguard" | "openvswitch" => {
            Kind::Other(driver.to_owned())
        }
        _ => Kind::Device,
    };
    interface.kind.get_or_insert_with(|| Fact::new(kind, quote.clone()));
}

/// `eth0.35` stands on `eth0`, as vconfig and every network manager name it. Other names tell nothing.
fn parent_by_name(interface: &mut Interface, quote: &Quote) {
    let Some((parent, id)) = interface.name.rsplit_once('.') else { return };
    if !parent.is_empty() && id.parse::<u16>().is_ok_and(|id| id < 4096) {
        let parent = parent.to_owned();
        interface.parent.get_or_insert_with(|| Fact::new(parent, quote.clone()));
    }
}

#[cfg(test)]
mod tests {
    use crate::text::Reader;
    use crate::{Kind, Snapshot};

    fn read(text: &str) -> Snapshot {
        let mut reader = Reader::new();
        reader.read("paste", text.as_bytes()).expect("memory");
        reader.finish()
    }

    // ethtool 4.x and later, ethtool.c, dump_drvinfo.
    const IGB: &str = "driver: igb\nversion: 5.3.0-k\nfirmware-version:  0. 6-1\nbus-info: 0000:03:00.0\n\
                       supports-statistics: yes\n";
    const VLAN: &str = "driver: 802.1Q VLAN Support\nversion: 1.8\nfirmware-version: N/A\nbus-info: \n";

    #[test]
    fn a_device_and_a_vlan_on_it() {
        let snapshot = read(&format!("$ ethtool -i eth0\n{IGB}$ ethtool -i eth0.376\n{VLAN}"));
        let device = snapshot.interface("eth0").expect("eth0");
        assert_eq!(device.driver.as_ref().map(|fact| fact.value.as_str()), Some("igb"));
        assert_eq!(device.bus.as_ref().map(|fact| fact.value.as_str()), Some("0000:03:00.0"));
        assert_eq!(device.kind.as_ref().map(|fact| &fact.value), Some(&Kind::Device));
        let vlan = snapshot.interface("eth0.376").expect("eth0.376");
        assert_eq!(vlan.kind.as_ref().map(|fact| &fact.value), Some(&Kind::Vlan { tpid: None, id: None }));
        assert_eq!((snapshot.physical("eth0.376"), &vlan.bus), ("eth0", &None));
    }

    #[test]
    fn a_vlan_of_another_name_has_no_known_parent() {
        let snapshot = read(&format!("$ ethtool -i wan\n{VLAN}$ ethtool -i a.b\n{VLAN}"));
        for name in ["wan", "a.b"] {
            let vlan = snapshot.interface(name).expect(name);
            assert!(
                vlan.parent.is_none()
                    && matches!(vlan.kind, Some(ref kind) if kind.value == Kind::Vlan { tpid: None, id: None })
            );
        }
    }

    #[test]
    fn without_a_prompt_it_is_the_unnamed_interface_and_prose_is_none() {
        assert!(read(IGB).interface("").is_some_and(|interface| interface.driver.is_some()));
        assert!(read("driver: I think it is igb\n").interfaces.is_empty());
    }
}
