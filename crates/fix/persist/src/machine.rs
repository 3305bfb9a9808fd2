//! Which program configures an interface at boot, and how that was seen.

use crate::format::link_file::{OWN, PREFIX, TAKEN_OVER};
use crate::format::sysctl_conf;
use crate::lasting::Vector;
use host::setting::{InterfaceName, Setting, SysctlName, Tree};
use kernel::netns::NAMES;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file or a command, and what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// `/run/NetworkManager/devices/2`.
    pub from: String,
    /// `managed=true`.
    pub text: String,
}

/// What a machine starts its services with, as far as that decides where configuration stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum System {
    /// With systemd of this version (252), as `systemctl --version` prints it.
    Systemd(u32),
    /// OpenWrt.
    OpenWrt(OpenWrt),
    /// Another one, which reads `/etc/sysctl.d` at boot all the same.
    Other,
    /// A network namespace other than that of process 1: nothing of it is there after the next boot.
    Namespace,
}

/// What is known of an OpenWrt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenWrt {
    /// `(24, 10)`; `None` where it is not known, or a snapshot.
    pub release: Option<(u32, u32)>,
    /// The present value of `network.globals.packet_steering`; `None` where it is not set or not known.
    pub packet_steering: Option<String>,
}

/// The `.link` file that udev has applied to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFile {
    /// Where it is.
    pub path: PathBuf,
    /// The lines of its `[Link]` section, with those of its drop-ins, without comments.
    pub link: Vec<String>,
}

/// What configures an interface at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manager {
    /// udev of systemd, of this version.
    Systemd {
        /// As `systemctl --version` prints it.
        version: u32,
        /// `None`: udev has not processed the interface, or the file cannot be read.
        link: Option<LinkFile>,
    },
    /// NetworkManager.
    NetworkManager,
    /// udev without systemd.
    Udev,
    /// Nothing that was found.
    None,
    /// Nothing, since the interface is in a network namespace of its own.
    OtherNamespace,
}

/// By what an interface is found again at the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The address that its manufacturer gave it; no other interface has it.
    PermanentAddress(String),
    /// Its place, udev's `ID_PATH` (`pci-0000:01:00.0`).
    Path(String),
    /// Its name: it is made by software, which gives it the name.
    Name,
    /// Its name, which it was given after it was made: udev has to have named it before.
    Renamed,
}

/// An interface, and what configures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its present name.
    pub name: InterfaceName,
    /// What configures it at boot.
    pub manager: Manager,
    /// How that was seen; empty where nothing was.
    pub evidence: Vec<Evidence>,
    /// By what it is found again.
    pub identity: Identity,
}

/// A machine, as far as its configuration goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// What starts its services.
    pub system: System,
    /// How that was seen; empty where nothing was.
    pub evidence: Vec<Evidence>,
    /// The interfaces.
    pub interfaces: Vec<Interface>,
    /// Sysctls that a file sets which is read after that of rxlane, with that file.
    pub later_sysctls: Vec<(SysctlName, PathBuf)>,
    /// An initramfs has copies of `.link` files.
    pub initramfs: bool,
}

impl Machine {
    pub(crate) fn openwrt(&self) -> Option<&OpenWrt> {
        match &self.system {
            System::OpenWrt(openwrt) => Some(openwrt),
            _ => None,
        }
    }

    /// This machine, as it configures these interfaces.
    pub fn live(interfaces: &[InterfaceName]) -> Machine {
        Machine::read(&Tree::live(), systemd_version(), interfaces)
    }

    /// The machine that a folder stands for, with the version of systemd where systemd has started it.
    pub fn read(tree: &Tree, systemd: Option<u32>, interfaces: &[InterfaceName]) -> Machine {
        let (system, evidence) = system(tree, systemd);
        let interfaces = interfaces.iter().map(|name| interface(tree, &system, name)).collect();
        Machine {
            interfaces,
            later_sysctls: later_sysctls(tree),
            initramfs: tree.path("/usr/share/initramfs-tools/hooks/udev").exists(),
            system,
            evidence,
        }
    }
}

impl Machine {
    /// A machine of which a text shows no more than these interfaces. Without OpenWrt, files for systemd of any version: a script
    /// and the unit that runs it.
    pub fn of_text(openwrt: Option<OpenWrt>, interfaces: &[InterfaceName]) -> Machine {
        let manager = match openwrt {
            Some(_) => Manager::None,
            None => Manager::Systemd { version: 0, link: None },
        };
        let interface = |name: &InterfaceName| Interface {
            name: name.clone(),
            manager: manager.clone(),
            evidence: Vec::new(),
            identity: Identity::Name,
        };
        Machine {
            interfaces: interfaces.iter().map(interface).collect(),
            system: openwrt.map_or(System::Other, System::OpenWrt),
            evidence: Vec::new(),
            later_sysctls: Vec::new(),
            initramfs: false,
        }
    }
}

fn system(tree: &Tree, systemd: Option<u32>) -> (System, Vec<Evidence>) {
    let evidence = |from: &str, text: &str| vec![Evidence { from: from.to_owned(), text: text.to_owned() }];
    if let Some(own) = other_namespace(tree) {
        return (System::Namespace, evidence(OWN_NAMESPACE, &own));
    }
    const OPENWRT: &str = "/etc/openwrt_release";
    if let Ok(text) = tree.read(OPENWRT) {
        let release = text.lines().find(|line| line.starts_with("DISTRIB_RELEASE="));
        let number = release.and_then(|line| openwrt_release(line.trim_start_matches("DISTRIB_RELEASE=")));
        let openwrt = OpenWrt { release: number, packet_steering: None };
        return (System::OpenWrt(openwrt), evidence(OPENWRT, release.unwrap_or_default()));
    }
    // sd_booted(3).
    const BOOTED: &str = "/run/systemd/system";
    if tree.path(BOOTED).is_dir()
        && let Some(version) = systemd
    {
        return (System::Systemd(version), evidence("systemctl --version", &format!("systemd {version}")));
    }
    (System::Other, Vec::new())
}

const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// The network namespace, where it is not that of process 1, or has a name (`ip netns`): process 1 may not be looked at by who
/// has no CAP_SYS_PTRACE.
fn other_namespace(tree: &Tree) -> Option<String> {
    let own = fs::read_link(tree.path(OWN_NAMESPACE)).ok()?;
    let first = fs::read_link(tree.path("/proc/1/ns/net")).ok();
    let is_same = |one: &Metadata, other: &Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
    let is_named = || {
        let metadata = fs::metadata(tree.path(OWN_NAMESPACE)).ok()?;
        let mut names = fs::read_dir(tree.path(NAMES)).ok()?.flatten();
        names.find(|name| fs::metadata(name.path()).is_ok_and(|other| is_same(&other, &metadata)))
    };
    let is_other = first.is_some_and(|first| first != own) || is_named().is_some();
    is_other.then(|| own.display().to_string())
}

/// `'23.05.3'` is (23, 5).
pub fn openwrt_release(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim_matches(['\'', '"', ' ']).split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The version of systemd that is installed.
fn systemd_version() -> Option<u32> {
    let mut command = Command::new("systemctl");
    let output = command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.strip_prefix("systemd ")?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn interface(tree: &Tree, system: &System, name: &InterfaceName) -> Interface {
    let index = tree.interface_index(name);
    let udev = index.and_then(|index| database(tree, index)).unwrap_or_default();
    let (manager, evidence) = match system {
        System::Namespace => (Manager::OtherNamespace, Vec::new()),
        _ => manager(tree, system, index, &udev),
    };
    Interface { name: name.clone(), manager, evidence, identity: identity(tree, name, &udev) }
}

/// What udev knows of a network device: `E:NAME=VALUE` in its database.
#[derive(Default)]
struct Udev {
    path: String,
    properties: BTreeMap<String, String>,
}

fn database(tree: &Tree, index: u32) -> Option<Udev> {
    let path = format!("/run/udev/data/n{index}");
    let text = tree.read(&path).ok()?;
    let property = |line: &str| {
        let (name, value) = line.strip_prefix("E:")?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    Some(Udev { path, properties: text.lines().filter_map(property).collect() })
}

fn manager(tree: &Tree, system: &System, index: Option<u32>, udev: &Udev) -> (Manager, Vec<Evidence>) {
    let mut evidence = Vec::new();
    let file = format!("/run/NetworkManager/devices/{}", index.unwrap_or_default());
    let text = tree.read(&file).unwrap_or_default();
    // An interface that it only knows of has such a file, too (nm_config_device_state_load() in src/core/nm-config.c).
    let is_managed = |line: &&str| ["managed=true", "managed=full"].contains(&line.trim());
    if let Some(line) = text.lines().find(is_managed) {
        evidence.push(Evidence { from: file, text: line.trim().to_owned() });
        return (Manager::NetworkManager, evidence);
    }
    const FILE: &str = "ID_NET_LINK_FILE";
    let applied = udev.properties.get(FILE);
    if let Some(applied) = applied {
        evidence.push(Evidence { from: udev.path.clone(), text: format!("{FILE}={applied}") });
    }
    match system {
        System::Systemd(version) => {
            let link = applied.and_then(|path| link_file(tree, path));
            (Manager::Systemd { version: *version, link }, evidence)
        }
        _ if tree.path("/run/udev/control").exists() => {
            evidence.push(Evidence { from: "/run/udev/control".to_owned(), text: "udev runs".to_owned() });
            (Manager::Udev, evidence)
        }
        _ => (Manager::None, evidence),
    }
}

/// The file that udev has applied. One of rxlane's own stands for the one that it took the place of.
fn link_file(tree: &Tree, path: &str) -> Option<LinkFile> {
    let path = Path::new(path);
    let name = path.file_name()?.to_str()?;
    let text = tree.read(path.to_str()?).ok()?;
    if name.starts_with(PREFIX) {
        let mut lines = text.lines().skip_while(|line| !line.starts_with(TAKEN_OVER));
        let former = lines.next()?.strip_prefix(TAKEN_OVER)?.split(", ").next()?;
        let link = lines.take_while(|line| *line != OWN).map(str::to_owned).collect();
        return Some(LinkFile { path: PathBuf::from(former), link });
    }
    let mut link = section(&text);
    let folders = ["/usr/lib", "/lib", "/run", "/etc"].map(|root| format!("{root}/systemd/network/{name}.d"));
    // Of drop-ins of the same name, that of the folder of the highest priority counts.
    let drop_ins: BTreeMap<OsString, PathBuf> =
        folders.iter().flat_map(|folder| files(tree, folder)).collect();
    for (_, drop_in) in drop_ins {
        link.extend(section(&tree.read(drop_in.to_str()?).ok()?));
    }
    Some(LinkFile { path: path.to_owned(), link })
}

/// The files of a folder that end in `.conf`, by name.
fn files(tree: &Tree, folder: &str) -> Vec<(OsString, PathBuf)> {
    let entries = fs::read_dir(tree.path(folder)).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let is_conf = |name: &OsString| Path::new(name).extension().is_some_and(|ending| ending == "conf");
    names.filter(is_conf).map(|name| (name.clone(), Path::new(folder).join(name))).collect()
}

/// The lines of the section `[Link]`.
fn section(text: &str) -> Vec<String> {
    let mut is_link = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_link = line == "[Link]";
        } else if is_link && !line.is_empty() && !line.starts_with(['#', ';']) {
            lines.push(line.to_owned());
        }
    }
    lines
}

fn identity(tree: &Tree, name: &InterfaceName, udev: &Udev) -> Identity {
    let of = |name: &str, file: &str| tree.read(&format!("/sys/class/net/{name}/{file}")).ok();
    // NET_ADDR_PERM of include/uapi/linux/netdevice.h: nobody has changed the address since the driver set it.
    let permanent =
        |name: &str| of(name, "address").filter(|_| of(name, "addr_assign_type").as_deref() == Some("0"));
    // NET_NAME_RENAMED of include/uapi/linux/netdevice.h.
    let is_renamed = of(name.as_str(), "name_assign_type").as_deref() == Some("4");
    let by_name = if is_renamed { Identity::Renamed } else { Identity::Name };
    let is_device = tree.path(&format!("/sys/class/net/{name}/device")).exists();
    if !is_device {
        return by_name;
    }
    let others = fs::read_dir(tree.path("/sys/class/net")).into_iter().flatten().flatten();
    let others = others.filter_map(|entry| entry.file_name().into_string().ok());
    let others: Vec<String> =
        others.filter(|other| other != name.as_str()).filter_map(|other| permanent(&other)).collect();
    match (permanent(name.as_str()), udev.properties.get("ID_PATH")) {
        (Some(address), _) if !others.contains(&address) => Identity::PermanentAddress(address),
        (_, Some(path)) => Identity::Path(path.clone()),
        _ => by_name,
    }
}

/// Sysctls of files that are read after that of rxlane: those that come later in the order of sysctl.d(5).
fn later_sysctls(tree: &Tree) -> Vec<(SysctlName, PathBuf)> {
    let folders =
        ["/usr/lib", "/lib", "/usr/local/lib", "/run", "/etc"].map(|root| format!("{root}/sysctl.d"));
    let mut all: BTreeMap<OsString, PathBuf> =
        folders.iter().flat_map(|folder| files(tree, folder)).collect();
    // procps reads it last; systemd by a link in sysctl.d that some distributions have.
    all.entry("zz".into()).or_insert_with(|| PathBuf::from("/etc/sysctl.conf"));
    let later = all.into_iter().filter(|(name, _)| name.as_encoded_bytes() > sysctl_conf::NAME.as_bytes());
    let mut found = Vec::new();
    for (_, path) in later {
        let text = path.to_str().and_then(|path| tree.read(path).ok()).unwrap_or_default();
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
        let names =
            lines.filter_map(|line| line.split_once('=')?.0.trim().trim_start_matches('-').parse().ok());
        found.extend(names.map(|name| (name, path.clone())));
    }
    found
}

/// The handler of an interrupt and the interface that it serves, one of these. `None`: its name is not its own, or it serves
/// none of them.
pub fn vector(tree: &Tree, irq: u32, interfaces: &[InterfaceName]) -> Option<Vector> {
    let handlers = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<String>>()
    };
    let folder = tree.path("/proc/irq");
    let own = handlers(&folder.join(irq.to_string()));
    let [name] = own.as_slice() else { return None };
    let others =
        fs::read_dir(&folder).ok()?.flatten().filter(|entry| entry.file_name() != irq.to_string().as_str());
    if others.into_iter().any(|other| other.path().join(name).exists()) {
        return None;
    }
    let serves = |interface: &&InterfaceName| {
        let vectors = format!("/sys/class/net/{interface}/device/msi_irqs/{irq}");
        let is_word = |part: &str| part == interface.as_str();
        tree.path(&vectors).exists() || name.split(['-', ':', '_', '@', ' ']).any(is_word)
    };
    let mut served = interfaces.iter().filter(serves);
    let interface = served.next().filter(|_| served.next().is_none())?;
    Some(Vector { name: name.clone(), interface: interface.clone() })
}

/// The settings with what finds their interrupts again.
pub fn lasting(tree: &Tree, settings: &[Setting], interfaces: &[InterfaceName]) -> Vec<crate::Lasting> {
    let of = |setting: &Setting| match setting {
        Setting::IrqAffinity { irq, .. } => vector(tree, *irq, interfaces),
        _ => None,
    };
    settings.iter().map(|setting| crate::Lasting { vector: of(setting), setting: setting.clone() }).collect()
}
