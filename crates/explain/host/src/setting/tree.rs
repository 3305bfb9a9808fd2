//! Where settings are read and written: the files of procfs and sysfs, and two programs.

use super::{Error, InterfaceName, words};
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

/// A program that changes settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// ethtool(8).
    Ethtool,
    /// ip(8).
    Ip,
}

impl Program {
    pub const fn name(self) -> &'static str {
        match self {
            Program::Ethtool => "ethtool",
            Program::Ip => "ip",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Program::Ethtool => "ethtool",
            Program::Ip => "iproute2",
        }
    }
}

/// The machine whose settings are meant: this one, or a folder that stands for one.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    /// Open in every program that is run, see [`Tree::holding`].
    held: Option<Arc<File>>,
}

/// Bytes of a procfs or sysfs file, or of a program's output, that are looked at.
const LONGEST: u64 = 1 << 20;
/// Where Debian keeps ethtool and ip, in case `PATH` lacks it.
const SBIN: &str = "/usr/sbin:/sbin";

impl Tree {
    /// This machine, in the network namespace of the calling thread.
    pub fn live() -> Tree {
        Tree { root: PathBuf::from("/"), held: None }
    }

    /// A folder with `proc`, `sys` and, for what takes a program, `usr/sbin/ethtool` and `usr/sbin/ip` below.
    pub fn at(root: impl Into<PathBuf>) -> Tree {
        Tree { root: root.into(), held: None }
    }

    /// The same, with `lock` open as standard input of every program that is run. A lock by flock(2) belongs to the
    /// open file, so it lasts until the program has ended, also where this process was killed before.
    pub fn holding(&self, lock: Arc<File>) -> Tree {
        Tree { root: self.root.clone(), held: Some(lock) }
    }

    /// The number of an interface; `None` where there is none of that name.
    pub fn interface_index(&self, name: &InterfaceName) -> Option<u32> {
        if self.is_live() {
            return name_to_index(any_socket()?, name.as_str()).ok();
        }
        self.sysfs_index(name)
    }

    /// The interface that has the number.
    pub fn interface_with(&self, index: u32) -> Option<InterfaceName> {
        if self.is_live() {
            return index_to_name(any_socket()?, index).ok()?.parse().ok();
        }
        let folder = fs::read_dir(self.path("/sys/class/net")).ok()?;
        let mut names = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        names.find(|name| self.sysfs_index(name) == Some(index))
    }

    /// The number of an interface as sysfs shows it.
    fn sysfs_index(&self, name: &InterfaceName) -> Option<u32> {
        self.read(&format!("/sys/class/net/{name}/ifindex")).ok()?.parse().ok()
    }

    /// Makes sure that the interface of that name in `/sys` is the one that ethtool and ip mean. A sysfs shows the
    /// network namespace in which it was mounted, and `nsenter --net` alone leaves that of the old one in place.
    pub(crate) fn check_sysfs(&self, name: &InterfaceName) -> Result<(), Error> {
        match (self.interface_index(name), self.sysfs_index(name)) {
            (None, None) => Ok(()),
            (real, in_sysfs) if real == in_sysfs => Ok(()),
            _ => Err(Error::OtherSysfs { interface: name.clone() }),
        }
    }

    fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where the file is.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// The text of a file, without the last line's end.
    ///
    /// # Errors
    ///
    /// [`Error::Read`].
    pub fn read(&self, absolute: &str) -> Result<String, Error> {
        let path = self.path(absolute);
        let mut text = String::new();
        match File::open(&path).and_then(|file| file.take(LONGEST).read_to_string(&mut text)) {
            Ok(_) => Ok(text.trim_end().to_owned()),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Writes one line to a file that is there.
    pub(crate) fn write(&self, absolute: &str, value: &str) -> Result<(), Error> {
        let path = self.path(absolute);
        // One write: the handlers of the kernel take each write for a whole value.
        let line = format!("{value}\n");
        let written = OpenOptions::new().write(true).truncate(true).open(&path);
        written.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|source| Error::Write {
            value: value.to_owned(),
            path,
            source,
        })
    }

    /// Runs a program, not through a shell, and gives what it wrote to standard output.
    pub(crate) fn run(&self, program: Program, arguments: &[&str]) -> Result<String, Error> {
        let mut command = Command::new(self.executable(program));
        command.args(arguments).env("LC_ALL", "C").env("PATH", search_path());
        let failed = |what: &str, source| Error::Program {
            command: words::command(program, arguments),
            said: what.to_owned(),
            source: Some(source),
        };
        let input = self.held.as_deref().map_or(Ok(Stdio::null()), duplicate);
        command.stdin(input.map_err(|source| failed("no standard input", source))?);
        let output = command.output().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => {
                Error::Missing { program: program.name(), package: program.package(), source }
            }
            _ => failed("it does not start", source),
        })?;
        if !output.status.success() {
            return Err(refusal(program, arguments, &output));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn executable(&self, program: Program) -> PathBuf {
        if self.is_live() {
            return PathBuf::from(program.name());
        }
        self.root.join("usr/sbin").join(program.name())
    }
}

/// A socket to ask about interfaces of the network namespace of the calling thread.
fn any_socket() -> Option<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()
}

fn duplicate(file: &File) -> io::Result<Stdio> {
    file.try_clone().map(Stdio::from)
}

fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").filter(|path| !path.is_empty()).unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(SBIN);
    path
}

/// What a program that failed said, with the cause as far as its words say: neither program's exit status does.
fn refusal(program: Program, arguments: &[&str], output: &Output) -> Error {
    let text = match output.stderr.trim_ascii() {
        b"" => &output.stdout,
        _ => &output.stderr,
    };
    let text = String::from_utf8_lossy(text);
    let mut said = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()).take(4) {
        if !said.is_empty() {
            said.push_str("; ");
        }
        said.extend(line.chars().filter(|c| !c.is_control()).take(200));
    }
    if said.is_empty() {
        said = output.status.to_string();
    }
    let has = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let source = if has(&["Operation not permitted", "Permission denied"]) {
        Some(io::ErrorKind::PermissionDenied.into())
    } else if has(&["No such device", "Cannot find device"]) {
        Some(io::ErrorKind::NotFound.into())
    } else {
        None
    };
    Error::Program { command: words::command(program, arguments), said, source }
}
