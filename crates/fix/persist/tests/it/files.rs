//! Every kind of file, as text: `golden/NAME.txt`. `RXLANE_WRITE_GOLDEN=1` writes them: read what changed before a commit.

use crate::machines::name;
use host::setting::{Setting, Tree};
use rxlane_persist::{
    Content, Identity, Interface, Lasting, LinkFile, Machine, Manager, Origin, Plan, Reason, System, Vector,
    machine::OpenWrt, plan, steering,
};
use std::fs;
use std::path::{Path, PathBuf};

/// Every kind of setting, in no good order.
const SETTINGS: [&str; 18] = [
    "echo 2 > /proc/irq/120/smp_affinity_list",
    "echo 4-5 > /proc/irq/121/smp_affinity_list",
    "ethtool -X wan0 equal 4",
    "ethtool -N wan0 rx-flow-hash udp4 sdfn",
    "ethtool -N wan0 rx-flow-hash udp6 ''",
    "echo fe > /sys/class/net/wan0/queues/rx-0/rps_cpus",
    "ethtool -G wan0 rx 4096",
    "ethtool -L wan0 combined 4",
    "ethtool -C wan0 rx-usecs 30",
    "ethtool -C wan0 adaptive-rx off",
    "ethtool -C wan0 rx-usecs-low 8",
    "ethtool -K wan0 gro on",
    "ethtool -K wan0 rx-gro-hw off",
    "ethtool -K wan0 tso off",
    "ip link set dev wan0 mtu 1508",
    "sysctl -w net.core.netdev_budget=600",
    "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'",
    "sysctl -w net.ipv4.conf.wan0/35.rp_filter=0",
];

pub fn origin() -> Origin {
    Origin {
        written_by: "rxlane doctor --apply --persist".to_owned(),
        removed_by: Some("rxlane doctor --undo".to_owned()),
    }
}

pub fn settings(commands: &[&str]) -> Vec<Lasting> {
    let vector = |setting: &Setting| match setting {
        Setting::IrqAffinity { irq, .. } if *irq < 200 => {
            Some(Vector { name: format!("wan0-rx-{}", irq - 120), interface: name("wan0") })
        }
        _ => None,
    };
    let setting = |command: &&str| command.parse().expect(command);
    commands
        .iter()
        .map(setting)
        .map(|setting: Setting| Lasting { vector: vector(&setting), setting })
        .collect()
}

pub fn machine(system: System, manager: Manager) -> Machine {
    let identity = Identity::PermanentAddress("00:1b:21:00:00:01".to_owned());
    let interface = Interface { name: name("wan0"), manager, evidence: Vec::new(), identity };
    Machine {
        system,
        evidence: Vec::new(),
        interfaces: vec![interface],
        later_sysctls: Vec::new(),
        initramfs: true,
    }
}

/// With the file that systemd ships.
pub fn link() -> Option<LinkFile> {
    let link = ["NamePolicy=keep kernel database onboard slot path", "MACAddressPolicy=persistent"];
    let path = PathBuf::from("/usr/lib/systemd/network/99-default.link");
    Some(LinkFile { path, link: link.map(str::to_owned).into() })
}

pub fn systemd(version: u32) -> Machine {
    machine(System::Systemd(version), Manager::Systemd { version, link: link() })
}

fn rendered(plan: &Plan) -> String {
    let mut text = String::new();
    for file in &plan.files {
        let path = file.path.display();
        text += &match &file.content {
            Content::Text(content) => format!("==== {path} {:04o}\n{content}", file.mode),
            Content::Link(target) => format!("==== {path} -> {}\n", target.display()),
        };
    }
    for lines in &plan.lines {
        text += &format!("==== lines of {}\n{}", lines.path.display(), lines.text);
    }
    for (title, commands) in [("commands", &plan.commands), ("undo", &plan.undo)] {
        if !commands.is_empty() {
            text += &format!("==== {title}\n{}\n", commands.join("\n"));
        }
    }
    for excluded in &plan.excluded {
        text += &format!("==== excluded: {}: {:?}\n", excluded.command, excluded.reason);
    }
    text
}

fn is_golden(name: &str, plan: &Plan) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(format!("{name}.txt"));
    let text = rendered(plan);
    if std::env::var_os("RXLANE_WRITE_GOLDEN").is_some() {
        fs::write(&path, &text).expect("written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{}", path.display());
}

#[test]
fn each_kind_of_file_is_as_its_system_reads_it() {
    let all = settings(&SETTINGS);
    let linux = |machine: &Machine| plan::linux(&all, machine, &origin());
    is_golden("systemd-252", &linux(&systemd(252)));
    is_golden("systemd-239", &linux(&systemd(239)));
    let no_link = Manager::Systemd { version: 252, link: None };
    is_golden("systemd-without-link", &linux(&machine(System::Systemd(252), no_link)));
    is_golden("networkmanager", &linux(&machine(System::Systemd(252), Manager::NetworkManager)));
    is_golden("udev", &linux(&machine(System::Other, Manager::Udev)));
    for (name, release, present) in
        [("openwrt-24.10", Some((24, 10)), Some("1".to_owned())), ("openwrt-23.05", Some((23, 5)), None)]
    {
        let openwrt = OpenWrt { release, packet_steering: present };
        is_golden(name, &linux(&machine(System::OpenWrt(openwrt), Manager::None)));
    }
}

#[test]
fn other_systems_have_lines_in_their_own_files() {
    let origin = || Origin {
        written_by: "rxlane doctor --from FILE --persist --dry-run".to_owned(),
        removed_by: None,
    };
    let commands =
        |commands: &[&str]| -> Vec<String> { commands.iter().map(|&one| one.to_owned()).collect() };
    let freebsd = commands(&[
        "sysctl net.isr.dispatch=deferred",
        "echo 'net.isr.dispatch=deferred' >> /etc/sysctl.conf",
        "echo 'net.isr.maxthreads=\"-1\"' >> /boot/loader.conf",
        "echo 'net.isr.bindthreads=\"1\"' >> /boot/loader.conf",
        "ifconfig igb0 mtu 1508",
        "ifconfig igb0 down",
        "ifconfig igb0 up",
        "service netif restart igb0",
        "sysctl net.inet.ip.intr_queue_maxlen=2048",
    ]);
    is_golden("freebsd", &plan::other(host::System::FreeBsd, &freebsd, &origin()));
    let netbsd = commands(&[
        "sysctl -w net.inet.ip.ifq.maxlen=1024",
        "sysctl -w hw.bge.rx_lvl=4",
        "ifconfig wm0 mtu 1508",
    ]);
    is_golden("netbsd", &plan::other(host::System::NetBsd, &netbsd, &origin()));
}

fn steer(interface: &str, program: &str, installed: Option<&str>) -> Result<Plan, steering::Refusal> {
    let options = ["--cpus", "1-3", "--disable-rxvlan", "--rebalance"].map(str::to_owned);
    let request = steering::Request {
        interface,
        options: &options,
        program: Path::new(program),
        installed: installed.map(Path::new),
    };
    let origin = Origin {
        written_by: "rxlane steer up wan-1 --persist".to_owned(),
        removed_by: Some("rxlane steer down wan-1 --undo".to_owned()),
    };
    steering::plan(&request, &origin)
}

#[test]
fn steering_is_a_unit_with_its_options() {
    const INSTALLED: &str = "/usr/lib/systemd/system/rxlane-steer@.service";
    is_golden("steer-installed", &steer("wan-1", "/usr/bin/rxlane", Some(INSTALLED)).expect("a plan"));
    is_golden("steer-own-unit", &steer("wan0", "/opt/rxlane/rxlane", None).expect("a plan"));
    let text = rendered(&steer("wan0", "/usr/local/bin/rxlane", None).expect("a plan"));
    assert!(text.contains("\nExecStart=rxlane steer up %I"), "{text}");
    for program in
        ["/home/me/rxlane", "/tmp/rxlane", "/opt/my tools/rxlane", "/opt/%i/rxlane", "/opt/$x/rxlane"]
    {
        let refused = steer("wan0", program, None).expect_err("refused").to_string();
        assert!(refused.contains(program) && refused.contains("/usr/local/bin"), "{refused}");
    }
    let name = steer("a%b", "/usr/bin/rxlane", None).expect_err("a name").to_string();
    assert!(name.contains("\"a%b\""), "{name}");
}

/// One that rxlane has written is written again, since each interface has it in its record.
#[test]
fn a_unit_that_a_package_has_installed_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = Tree::at(folder.path());
    assert_eq!(steering::installed(&tree), None);
    let install = |place: &str, text: &str| {
        let place = folder.path().join(place);
        fs::create_dir_all(&place).expect("a folder");
        fs::write(place.join("rxlane-steer@.service"), text).expect("written");
    };
    install("usr/lib/systemd/system", "[Unit]\n");
    let installed = PathBuf::from("/usr/lib/systemd/system/rxlane-steer@.service");
    assert_eq!(steering::installed(&tree), Some(installed));
    install("etc/systemd/system", &format!("# {}\n", origin().line()));
    assert_eq!(steering::installed(&tree), None);
    let refusal = |system| steering::expect_systemd(&machine(system, Manager::None), "rxlane steer up wan0");
    assert_eq!(refusal(System::Systemd(252)), Ok(()));
    for system in [System::Other, System::Namespace, System::OpenWrt(OpenWrt::default())] {
        let error = refusal(system).expect_err("refused").to_string();
        assert!(error.contains("`rxlane steer up wan0`"), "{error}");
    }
}

fn reasons(commands: &[&str], machine: &Machine) -> Vec<Reason> {
    let plan = plan::linux(&settings(commands), machine, &origin());
    plan.excluded.into_iter().map(|excluded| excluded.reason).collect()
}

#[test]
fn what_no_file_can_have_is_named_with_the_reason() {
    let commands = ["ethtool -G wan0 rx 4096", "echo 1 > /proc/irq/300/smp_affinity_list"];
    assert_eq!(reasons(&commands, &systemd(252)), [Reason::Vector { irq: 300 }]);
    let none = machine(System::Other, Manager::None);
    assert_eq!(reasons(&commands, &none), [Reason::NoManager, Reason::Vector { irq: 300 }]);
    assert_eq!(
        reasons(&["ethtool -G wan0 rx 4096"], &machine(System::Namespace, Manager::OtherNamespace)),
        [Reason::OtherNamespace]
    );
    assert_eq!(
        reasons(
            &["sysctl -w net.core.netdev_budget=600"],
            &machine(System::Namespace, Manager::OtherNamespace)
        ),
        [Reason::OtherNamespace]
    );
    assert_eq!(reasons(&["ethtool -G 'wan$(id)' rx 4096"], &systemd(252)), [Reason::Name(name("wan$(id)"))]);
    let mut later = systemd(252);
    let path = PathBuf::from("/etc/sysctl.conf");
    later.later_sysctls = vec![("net.core.netdev_budget".parse().expect("a name"), path.clone())];
    assert_eq!(reasons(&["sysctl -w net.core.netdev_budget=600"], &later), [Reason::SetLater(path)]);
}

/// Without the names and addresses that the file before gave, the interface would get another name at the next boot.
#[test]
fn a_link_file_is_before_the_one_in_charge_or_is_not_written() {
    let own = settings(&["ethtool -G wan0 rx 4096"]);
    let files = |base: &str| {
        let base = LinkFile {
            path: PathBuf::from(base),
            link: vec!["RxBufferSize=512".to_owned(), "Name=wan0".to_owned()],
        };
        let machine = machine(System::Systemd(252), Manager::Systemd { version: 252, link: Some(base) });
        plan::linux(&own, &machine, &origin()).files
    };
    let after = files("/run/systemd/network/10-netplan-wan0.link");
    let Content::Text(text) = &after[0].content else { panic!("text") };
    assert!(text.ends_with("\nName=wan0\n# What helped:\nRxBufferSize=4096\n"), "{text}");
    let before = files("/etc/systemd/network/00-early.link");
    assert!(before[0].path.ends_with("settings-wan0"), "{before:?}");
    let of_identity = |identity| {
        let mut machine = systemd(252);
        machine.interfaces[0].identity = identity;
        match plan::linux(&own, &machine, &origin()).files.remove(0).content {
            Content::Text(text) => text,
            Content::Link(_) => panic!("text"),
        }
    };
    assert!(of_identity(Identity::Path("pci-0000:01:00.0".to_owned())).contains("\nPath=pci-0000:01:00.0\n"));
    assert!(of_identity(Identity::Name).contains("\nOriginalName=wan0\n"));
    // No line of [Match] has the name that it gets later.
    assert!(of_identity(Identity::Renamed).contains("ethtool -G wan0 rx 4096"));
}

#[test]
fn a_later_value_takes_the_place_of_the_former_one() {
    for (former, new, left) in [
        ("ethtool -G wan0 rx 512", "ethtool -G wan0 rx 4096", 1),
        ("ethtool -G wan0 rx 512", "ethtool -G lan0 rx 4096", 2),
        ("ethtool -X wan0 equal 2", "ethtool -X wan0 default", 1),
        ("ethtool -X wan0 weight 1 2", "ethtool -X wan0 equal 2", 1),
        ("ethtool -L wan0 rx 2", "ethtool -L wan0 tx 2", 2),
        ("ethtool -K wan0 gro on", "ethtool -K wan0 gro off", 1),
        ("ethtool -K wan0 gro on", "ethtool -C wan0 rx-usecs 3", 2),
        (
            "echo 1 > /sys/class/net/wan0/queues/rx-0/rps_cpus",
            "echo 2 > /sys/class/net/wan0/queues/rx-0/rps_cpus",
            1,
        ),
        ("echo 1 > /proc/irq/120/smp_affinity_list", "echo 2 > /proc/irq/120/smp_affinity_list", 1),
        ("echo 1 > /proc/irq/120/smp_affinity_list", "echo 2 > /proc/irq/121/smp_affinity_list", 2),
        ("sysctl -w net.core.netdev_budget=600", "sysctl -w net.core.netdev_budget=900", 1),
        ("sysctl -w net.core.netdev_budget=600", "sysctl -w net.core.netdev_max_backlog=900", 2),
    ] {
        let merged = Lasting::merged(&settings(&[former]), &settings(&[new]));
        assert_eq!(merged.len(), left, "{former}, {new}");
        assert_eq!(merged.last(), settings(&[new]).first());
    }
}
