//! Machines as folders: what configures an interface there.

use host::setting::{InterfaceName, Setting, Tree};
use rxlane_persist::machine::{lasting, openwrt_release, vector};
use rxlane_persist::{Identity, LinkFile, Machine, Manager, System};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A folder that stands for a machine.
struct Folder(tempfile::TempDir);

pub fn name(name: &str) -> InterfaceName {
    name.parse().expect("a name")
}

impl Folder {
    /// With two network cards, `wan0` (2) and `lan0` (3), and a VLAN device `wan0.35` (4).
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a folder"));
        for (name, index, address, assigned) in [
            ("wan0", "2", "00:1b:21:00:00:01", "0"),
            ("lan0", "3", "00:1b:21:00:00:02", "0"),
            ("wan0.35", "4", "00:1b:21:00:00:01", "2"),
        ] {
            folder.file(&format!("/sys/class/net/{name}/ifindex"), index);
            folder.file(&format!("/sys/class/net/{name}/address"), address);
            folder.file(&format!("/sys/class/net/{name}/addr_assign_type"), assigned);
        }
        for name in ["wan0", "lan0"] {
            folder.folder(&format!("/sys/class/net/{name}/device/msi_irqs"));
        }
        folder
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.path(path)).expect("a folder");
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("above")).expect("a folder");
        fs::write(path, format!("{text}\n")).expect("written");
    }

    fn tree(&self) -> Tree {
        Tree::at(self.0.path())
    }

    fn machine(&self, systemd: Option<u32>) -> Machine {
        Machine::read(&self.tree(), systemd, &[name("wan0"), name("wan0.35")])
    }
}

fn link_of(machine: &Machine) -> Option<&LinkFile> {
    match &machine.interfaces[0].manager {
        Manager::Systemd { link, .. } => link.as_ref(),
        other => panic!("{other:?}"),
    }
}

const APPLIED: &str =
    "I:1\nE:ID_PATH=pci-0000:01:00.0\nE:ID_NET_LINK_FILE=/usr/lib/systemd/network/99-default.link\nG:systemd";

#[test]
fn udev_of_systemd_is_seen_in_its_database() {
    let folder = Folder::new();
    folder.folder("/run/systemd/system");
    folder.file("/run/udev/data/n2", APPLIED);
    folder.file(
        "/usr/lib/systemd/network/99-default.link",
        "# a comment\n[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep kernel\n; another\nMACAddressPolicy=persistent",
    );
    let machine = folder.machine(Some(252));
    assert_eq!(machine.system, System::Systemd(252));
    assert_eq!(machine.evidence[0].text, "systemd 252");
    let wan0 = &machine.interfaces[0];
    assert_eq!(wan0.identity, Identity::PermanentAddress("00:1b:21:00:00:01".to_owned()));
    assert_eq!(wan0.evidence[0].from, "/run/udev/data/n2");
    let link = link_of(&machine).expect("the file");
    assert_eq!(link.link, ["NamePolicy=keep kernel", "MACAddressPolicy=persistent"]);
    // A VLAN device is made by software, under its name.
    assert_eq!(machine.interfaces[1].identity, Identity::Name);
    assert_eq!(machine.interfaces[1].manager, Manager::Systemd { version: 252, link: None });
    assert!(!machine.initramfs);

    // Drop-ins count, and of one name that of the folder of the highest priority.
    folder.file("/usr/lib/systemd/network/99-default.link.d/a.conf", "[Link]\nWakeOnLan=magic");
    folder.file("/usr/lib/systemd/network/99-default.link.d/b.conf", "[Link]\nWakeOnLan=phy");
    folder.file(
        "/etc/systemd/network/99-default.link.d/a.conf",
        "[Match]\nOriginalName=x\n[Link]\nWakeOnLan=off",
    );
    let machine = folder.machine(Some(252));
    let lines = &link_of(&machine).expect("the file").link;
    assert_eq!(lines[2..], ["WakeOnLan=off", "WakeOnLan=phy"]);
}

/// After the next boot rxlane's own file is the one that was applied.
#[test]
fn a_file_of_rxlane_stands_for_the_one_that_it_took_the_place_of() {
    let folder = Folder::new();
    folder.folder("/run/systemd/system");
    folder.file("/run/udev/data/n2", "E:ID_NET_LINK_FILE=/etc/systemd/network/00-rxlane-wan0.link");
    folder.file(
        "/etc/systemd/network/00-rxlane-wan0.link",
        "# Written by rxlane: x\n[Match]\nOriginalName=wan0\n\n[Link]\n# From /usr/lib/systemd/network/99-default.link, which this \
         file takes the place of:\nNamePolicy=keep\n# What helped:\nRxBufferSize=4096",
    );
    let machine = folder.machine(Some(255));
    let link = link_of(&machine).expect("the file");
    assert_eq!(
        (link.path.as_path(), &link.link[..]),
        (Path::new("/usr/lib/systemd/network/99-default.link"), &["NamePolicy=keep".to_owned()][..])
    );
}

#[test]
fn networkmanager_manages_what_it_says_it_manages() {
    let folder = Folder::new();
    folder.folder("/run/systemd/system");
    for (text, expected) in [
        ("[device]\nmanaged=true\nnm-owned=false", true),
        ("[device]\nmanaged=full", true),
        ("[device]\nmanaged=false", false),
        ("[device]\nperm-hw-addr-fake=00:1B:21:00:00:01", false),
    ] {
        folder.file("/run/NetworkManager/devices/2", text);
        let machine = folder.machine(Some(252));
        let interface = &machine.interfaces[0];
        assert_eq!(interface.manager == Manager::NetworkManager, expected, "{text}");
        assert_eq!(interface.evidence.len(), usize::from(expected));
    }
}

#[test]
fn other_systems_are_distinguished() {
    let folder = Folder::new();
    assert_eq!(folder.machine(None).system, System::Other);
    assert_eq!(folder.machine(None).interfaces[0].manager, Manager::None);
    // systemd is installed, and did not start the machine.
    assert_eq!(folder.machine(Some(252)).system, System::Other);
    folder.file("/run/udev/control", "");
    assert_eq!(folder.machine(None).interfaces[0].manager, Manager::Udev);
    folder.file("/etc/openwrt_release", "DISTRIB_ID='OpenWrt'\nDISTRIB_RELEASE='23.05.3'");
    let System::OpenWrt(openwrt) = folder.machine(None).system else { panic!("an OpenWrt") };
    assert_eq!(openwrt.release, Some((23, 5)));
    for (text, release) in
        [("'24.10.0-rc2'", Some((24, 10))), ("\"22.03.7\"", Some((22, 3))), ("'SNAPSHOT'", None), ("", None)]
    {
        assert_eq!(openwrt_release(text), release, "{text}");
    }
}

/// What is configured for process 1 does not concern another network namespace.
#[test]
fn a_namespace_of_its_own_is_not_configured_at_boot() {
    let folder = Folder::new();
    folder.folder("/run/systemd/system");
    for (process, inode) in [("1", "1"), ("thread-self", "1")] {
        folder.folder(&format!("/proc/{process}/ns"));
        symlink(format!("net:[{inode}]"), folder.path(&format!("/proc/{process}/ns/net"))).expect("a link");
    }
    assert_eq!(folder.machine(Some(252)).system, System::Systemd(252));
    fs::remove_file(folder.path("/proc/thread-self/ns/net")).expect("removed");
    symlink("net:[2]", folder.path("/proc/thread-self/ns/net")).expect("a link");
    let machine = folder.machine(Some(252));
    assert_eq!(
        (machine.system, &machine.interfaces[0].manager),
        (System::Namespace, &Manager::OtherNamespace)
    );
}

#[test]
fn an_address_that_two_devices_have_is_no_identity() {
    let folder = Folder::new();
    folder.file("/run/udev/data/n2", APPLIED);
    folder.file("/sys/class/net/lan0/address", "00:1b:21:00:00:01");
    assert_eq!(folder.machine(None).interfaces[0].identity, Identity::Path("pci-0000:01:00.0".to_owned()));
    // An address that somebody set is not the permanent one.
    folder.file("/sys/class/net/lan0/address", "00:1b:21:00:00:02");
    folder.file("/sys/class/net/wan0/addr_assign_type", "3");
    assert_eq!(folder.machine(None).interfaces[0].identity, Identity::Path("pci-0000:01:00.0".to_owned()));
    folder.file("/run/udev/data/n2", "E:ID_NET_LINK_FILE=x");
    assert_eq!(folder.machine(None).interfaces[0].identity, Identity::Name);
}

#[test]
fn a_later_file_of_sysctls_is_found() {
    let folder = Folder::new();
    folder.file("/usr/lib/sysctl.d/50-default.conf", "net.core.netdev_budget = 300");
    folder.file("/usr/lib/sysctl.d/99-zz.conf", "net.core.netdev_max_backlog = 1000");
    folder.file("/etc/sysctl.conf", "# net.core.somaxconn = 1\n-net.core.netdev_budget=300\nno sysctl");
    let later = folder.machine(None).later_sysctls;
    let later: Vec<String> = later.iter().map(|(name, path)| format!("{name} {}", path.display())).collect();
    assert_eq!(
        later,
        [
            "net.core.netdev_max_backlog /usr/lib/sysctl.d/99-zz.conf",
            "net.core.netdev_budget /etc/sysctl.conf"
        ]
    );
    // The file of the same name in a folder of higher priority takes its place.
    folder.file("/etc/sysctl.d/99-zz.conf", "# nothing");
    assert_eq!(folder.machine(None).later_sysctls.len(), 1);
}

#[test]
fn interrupts_are_found_again_by_the_names_of_their_handlers() {
    let folder = Folder::new();
    for path in [
        "120/wan0-rx-0",
        "121/wan0-rx-1",
        "122/ahci",
        "123/xhci_hcd",
        "124/xhci_hcd",
        "125/a",
        "125/b",
        "126",
    ] {
        folder.folder(&format!("/proc/irq/{path}"));
    }
    for path in ["130/mlx5_comp0@pci:0000:01:00.0", "131/mlx5_comp1@pci:0000:01:00.0"] {
        folder.folder(&format!("/proc/irq/{path}"));
    }
    folder.file("/sys/class/net/lan0/device/msi_irqs/130", "msix");
    let both = [name("wan0"), name("lan0")];
    let of = |irq| {
        vector(&folder.tree(), irq, &both).map(|vector| format!("{} {}", vector.interface, vector.name))
    };
    assert_eq!(of(120).as_deref(), Some("wan0 wan0-rx-0"));
    assert_eq!(of(130).as_deref(), Some("lan0 mlx5_comp0@pci:0000:01:00.0"));
    for none in [122, 123, 124, 125, 126, 131, 999] {
        assert_eq!(of(none), None, "{none}");
    }
    let settings: Vec<Setting> = ["echo 1 > /proc/irq/121/smp_affinity_list", "ethtool -G wan0 rx 512"]
        .map(|command| command.parse().expect(command))
        .into();
    let lasting = lasting(&folder.tree(), &settings, &both);
    assert_eq!(lasting[0].interface(), Some(&both[0]));
    assert!(lasting[1].vector.is_none());
}
