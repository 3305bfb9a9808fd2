//! `rxlane steer up` at every boot: the unit `rxlane-steer@`, its options, and the link that enables it.

use crate::file::MARKER;
use crate::format::unit::{UNITS, escaped};
use crate::machine::{Machine, System};
use crate::plan::{Plan, is_plain};
use crate::{File, Origin};
use host::setting::Tree;
use std::path::{Path, PathBuf};

/// The unit as the package has it.
const UNIT: &str = include_str!("../../../../packaging/systemd/rxlane-steer@.service");
const NAME: &str = "rxlane-steer@.service";
/// Where systemd looks for a program that a unit names without its folder (systemd.service(5), `systemd-path
/// search-binaries-default`).
const SEARCHED: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// Why a unit cannot steer as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The machine was not started by systemd.
    #[error(
        "systemd does not run here (no /run/systemd/system), and steering lasts as a unit of systemd; have the system's start script \
         run `{command}`"
    )]
    NoSystemd {
        /// The command that steers.
        command: String,
    },
    /// The interface is in a network namespace of its own.
    #[error(
        "steering lasts as a unit of systemd, which runs in the network namespace of process 1 and not in this one; have what makes the \
         namespace run `{command}`"
    )]
    Namespace {
        /// The command that steers.
        command: String,
    },
    /// The unit cannot run the program.
    #[error(
        "the unit cannot run {}, since homes and folders of temporary files are hidden from it; install rxlane in /usr/local/bin",
        .0.display()
    )]
    Hidden(PathBuf),
    /// The path would mean something else in a unit (systemd.service(5), "Command lines").
    #[error(
        "a unit would not run {0:?}, whose path has other characters than letters, digits and ._+-; install rxlane in /usr/local/bin"
    )]
    Path(PathBuf),
    /// The name would mean something else in a unit.
    #[error("{0:?} cannot stand in the name of a unit; rename the interface (ip link set dev … name …)")]
    Name(String),
}

/// What is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'r> {
    /// The interface.
    pub interface: &'r str,
    /// The options of `steer up`, words without blanks.
    pub options: &'r [String],
    /// The program.
    pub program: &'r Path,
    /// The unit that is installed, if any is that rxlane has not written.
    pub installed: Option<&'r Path>,
}

/// Where a unit may be installed, in the order in which systemd looks (systemd.unit(5)).
const INSTALLED: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The unit that systemd would take, where somebody else than rxlane has installed it.
pub fn installed(tree: &Tree) -> Option<PathBuf> {
    let paths = INSTALLED.iter().map(|folder| format!("{folder}/{NAME}"));
    let (text, path) = paths.filter_map(|path| Some((tree.read(&path).ok()?, path))).next()?;
    (!text.contains(MARKER)).then(|| PathBuf::from(path))
}

/// Why no unit can steer on this machine.
///
/// # Errors
///
/// [`Refusal::NoSystemd`], [`Refusal::Namespace`].
pub fn expect_systemd(machine: &Machine, command: &str) -> Result<(), Refusal> {
    let command = command.to_owned();
    match machine.system {
        System::Systemd(_) => Ok(()),
        System::Namespace => Err(Refusal::Namespace { command }),
        System::OpenWrt(_) | System::Other => Err(Refusal::NoSystemd { command }),
    }
}

/// The files.
///
/// # Errors
///
/// [`Refusal::Hidden`], [`Refusal::Path`], [`Refusal::Name`].
pub fn plan(request: &Request<'_>, origin: &Origin) -> Result<Plan, Refusal> {
    let Request { interface, options, program, installed } = request;
    if !is_plain(interface) {
        return Err(Refusal::Name((*interface).to_owned()));
    }
    let mut plan = Plan::default();
    let text = format!("# {}\nOPTIONS={}\n", origin.line(), options.join(" "));
    plan.files.push(File::text(format!("/etc/rxlane/steer-{interface}.conf"), 0o644, text));
    let unit = match installed {
        Some(path) => path.to_path_buf(),
        None => {
            // ProtectHome=, PrivateTmp= of the unit.
            let hidden = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];
            if hidden.iter().any(|hidden| program.starts_with(hidden)) {
                return Err(Refusal::Hidden((*program).to_owned()));
            }
            let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(byte);
            if !program.as_os_str().as_encoded_bytes().iter().all(is_allowed) {
                return Err(Refusal::Path((*program).to_owned()));
            }
            let path = Path::new(UNITS).join(NAME);
            // The same for all interfaces, whichever was the first.
            let all = Origin {
                written_by: "rxlane steer up --persist".to_owned(),
                removed_by: Some("rxlane steer down --undo".to_owned()),
            };
            let text = format!("# {}\n{}", all.line(), with_program(program));
            plan.files.push(File::text(&path, 0o644, text));
            path
        }
    };
    let enabled = format!("{UNITS}/multi-user.target.wants/rxlane-steer@{}.service", escaped(interface));
    plan.files.push(File::link(enabled, unit));
    Ok(plan)
}

/// The unit with the program where it is, if systemd would not find it.
fn with_program(program: &Path) -> String {
    let is_searched =
        program.parent().is_some_and(|folder| SEARCHED.iter().any(|known| folder == Path::new(known)));
    if is_searched && program.ends_with("rxlane") {
        return UNIT.to_owned();
    }
    let program = program.display();
    UNIT.replace("ExecStart=rxlane ", &format!("ExecStart={program} "))
        .replace("ExecStopPost=-rxlane ", &format!("ExecStopPost=-{program} "))
}
