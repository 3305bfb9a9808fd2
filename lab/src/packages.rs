//! Debian packages, unpacked into a folder and installed nowhere: kernels, and tools that the guest has and the machine
//! may lack.

use crate::apt::Apt;
use crate::bzimage;
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable: the folder of the cache.
pub const CACHE: &str = "RXLANE_LAB_CACHE";

/// What the guest's root has besides the machine's own files.
const TOOLS: [&str; 13] = [
    "bpftool",
    "busybox-static",
    "iperf3",
    "kmod",
    "libiperf0",
    "libkmod2",
    "libnftables1",
    "libnftnl11",
    "libpcap0.8",
    "libsctp1",
    "nftables",
    "ppp",
    "pppoe",
];

/// Programs of Debian that a guest has only where an experiment installs them: by being there they change what others do, or few
/// want them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extra {
    /// A DHCPv6 client that asks for prefixes.
    Dhcpcd,
    /// A DHCPv6 server that delegates prefixes, also on an interface without a MAC address.
    Dibbler,
    /// Router advertisements.
    Radvd,
    /// systemd's keeper of `/etc/resolv.conf`, of the version of the machine's systemd.
    Resolved,
    /// Debian's keeper of `/etc/resolv.conf`.
    Resolvconf,
    /// Another one, with the same command.
    Openresolv,
}

impl Extra {
    /// All of them.
    pub const ALL: [Extra; 6] =
        [Extra::Dhcpcd, Extra::Dibbler, Extra::Radvd, Extra::Resolved, Extra::Resolvconf, Extra::Openresolv];

    /// The packages: its own first, then what the machine may lack.
    const fn packages(self) -> &'static [&'static str] {
        match self {
            Extra::Dhcpcd => &["dhcpcd-base"],
            Extra::Dibbler => &["dibbler-server"],
            Extra::Radvd => &["radvd", "libbsd0", "libmd0"],
            Extra::Resolved => &["systemd-resolved"],
            Extra::Resolvconf => &["resolvconf"],
            Extra::Openresolv => &["openresolv"],
        }
    }

    fn folder(self) -> String {
        format!("extra-{}", self.packages()[0])
    }
}

/// A line of Debian kernels for amd64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Series {
    /// That of Debian 11, the oldest that steers: it charges maps to the limit of locked memory (until 5.11), and has
    /// neither frames of several buffers in XDP (5.18) nor the look-up of another CPU's value (5.19).
    V5_10,
    /// That of Debian 12.
    V6_1,
    /// That of Debian 12's backports.
    V6_12,
    /// The newest of Debian 13's backports, which coalesces and segments PPPoE (7.2).
    V7,
}

impl Series {
    /// All of them, oldest first.
    pub const ALL: [Series; 4] = [Series::V5_10, Series::V6_1, Series::V6_12, Series::V7];

    /// The one that is called so.
    pub fn named(name: &str) -> Option<Series> {
        Series::ALL.into_iter().find(|series| series.name() == name)
    }

    /// As in `6.12`; `7` is any release of 7.
    pub const fn name(self) -> &'static str {
        match self {
            Series::V5_10 => "5.10",
            Series::V6_1 => "6.1",
            Series::V6_12 => "6.12",
            Series::V7 => "7",
        }
    }

    /// The suite of Debian that has it, where the machine's own lists do not.
    const fn suite(self) -> Option<&'static str> {
        match self {
            Series::V5_10 => Some("bullseye"),
            Series::V7 => Some("trixie-backports"),
            Series::V6_1 | Series::V6_12 => None,
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unpacked kernel package.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// As `uname -r` says it.
    pub release: String,
    /// The image that boots.
    pub image: PathBuf,
    /// The root of the package; the modules are below `usr/lib/modules`.
    pub root: PathBuf,
}

/// The folder in which everything is kept.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The folder named by `RXLANE_LAB_CACHE`, else `target/lab` of the workspace. Nothing is made yet.
    pub fn place() -> Cache {
        let root = std::env::var_os(CACHE)
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab"), PathBuf::from);
        Cache { root }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The root of the unpacked tools, where they are there.
    pub fn tools(&self) -> Option<PathBuf> {
        let root = self.root.canonicalize().ok()?.join("tools");
        root.is_dir().then_some(root)
    }

    /// The root of an unpacked extra, where it is there.
    pub fn extra(&self, extra: Extra) -> Option<PathBuf> {
        let root = self.root.canonicalize().ok()?.join(extra.folder());
        root.is_dir().then_some(root)
    }

    /// The kernel, where it is there.
    pub fn kernel(&self, series: Series) -> Option<Kernel> {
        let root = self.root.canonicalize().ok()?.join(format!("linux-{series}"));
        let modules = fs::read_dir(root.join("usr/lib/modules")).ok()?;
        let release = modules.flatten().find_map(|entry| entry.file_name().into_string().ok())?;
        let image =
            [root.join(BARE)].into_iter().chain(packed(&root, &release)).find(|image| image.is_file())?;
        Some(Kernel { release, image, root })
    }

    /// Fetches and unpacks the tools and extras that are missing. Processes that do so at once wait for each other.
    ///
    /// # Errors
    ///
    /// The folder cannot be written, apt knows no such package, a download or `tar` fails.
    pub fn fill(&self) -> Result<()> {
        let _lock = self.lock()?;
        if self.tools().is_none() {
            self.unpack("tools", &Apt::default(), &TOOLS.map(str::to_owned), |_| Ok(()))?;
        }
        for extra in Extra::ALL {
            if self.extra(extra).is_none() {
                let packages: Vec<String> = extra.packages().iter().map(|name| (*name).to_owned()).collect();
                self.unpack(&extra.folder(), &Apt::default(), &packages, |_| Ok(()))?;
            }
        }
        Ok(())
    }

    /// The kernel, fetched and unpacked where it is missing. Processes that do so at once wait for each other.
    ///
    /// # Errors
    ///
    /// As [`Cache::fill`].
    pub fn fetch(&self, series: Series) -> Result<Kernel> {
        let _lock = self.lock()?;
        if self.kernel(series).is_none() {
            let apt = match series.suite() {
                None => Apt::default(),
                Some(suite) => Apt::of_suite(suite, &self.root.join(format!("apt-{suite}")))?,
            };
            let known = output(apt.command("apt-cache").args(["show", "linux-image-amd64"]))?;
            let package = kernel_package(&known, series).with_context(|| {
                format!("apt knows no kernel {series} (make deps, as root, adds Debian's backports and reads its lists)")
            })?;
            let depends = output(apt.command("apt-cache").args(["depends", &package]))?;
            let packages: Vec<String> = parts(&depends).chain([package]).collect();
            self.unpack(&format!("linux-{series}"), &apt, &packages, |root| self.complete(root))?;
        }
        self.kernel(series)
            .with_context(|| format!("the packages of kernel {series} have no image or no modules"))
    }

    /// Held while something is fetched.
    fn lock(&self) -> Result<File> {
        fs::create_dir_all(&self.root).with_context(|| format!("{}", self.root.display()))?;
        let lock = File::create(self.root.join("lock")).context("lock of the cache")?;
        lock.lock().context("lock of the cache")?;
        Ok(lock)
    }

    /// Packages into one folder, which appears under its name when it is complete.
    fn unpack(
        &self,
        name: &str,
        apt: &Apt,
        packages: &[String],
        complete: impl Fn(&Path) -> Result<()>,
    ) -> Result<()> {
        let partial = self.root.join(format!("{name}.partial"));
        let downloads = self.root.join(format!("{name}.packages"));
        for folder in [&partial, &downloads] {
            if folder.exists() {
                fs::remove_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
            }
            fs::create_dir(folder).with_context(|| format!("{}", folder.display()))?;
        }
        output(apt.command("apt-get").args(["-q", "download"]).args(packages).current_dir(&downloads))?;
        // A root is laid over the machine's, where these are links (merged /usr).
        for folder in ["bin", "sbin", "lib"] {
            fs::create_dir_all(partial.join("usr").join(folder))?;
            std::os::unix::fs::symlink(format!("usr/{folder}"), partial.join(folder))?;
        }
        for entry in fs::read_dir(&downloads)? {
            extract(&entry?.path(), &partial)?;
        }
        complete(&partial)?;
        fs::rename(&partial, self.root.join(name)).with_context(|| name.to_owned())?;
        fs::remove_dir_all(&downloads).with_context(|| format!("{}", downloads.display()))
    }

    /// Writes the bare kernel, and `modules.dep` and its like, which Debian makes at installation.
    fn complete(&self, root: &Path) -> Result<()> {
        let tools = self.tools().context("the tools are unpacked first")?;
        let modules = root.join("usr/lib/modules");
        let release =
            fs::read_dir(&modules)?.next().context("no modules in the kernel package")??.file_name();
        let image = packed(root, &release.to_string_lossy()).into_iter().find(|image| image.is_file());
        bzimage::unpack(&image.context("no kernel in its package")?, &root.join(BARE))?;
        output(
            Command::new(tools.join("usr/bin/kmod"))
                .arg0("depmod")
                .env("LD_LIBRARY_PATH", tools.join("usr/lib/x86_64-linux-gnu"))
                .arg("-b")
                .arg(root)
                .arg(release),
        )?;
        Ok(())
    }
}

/// The kernel as it is in memory, in the folder of a series.
const BARE: &str = "vmlinux";

/// Where packages have the kernel that a boot loader loads: in the folder of its modules since Debian 13's backports of Linux 7.
fn packed(root: &Path, release: &str) -> [PathBuf; 2] {
    [format!("boot/vmlinuz-{release}"), format!("usr/lib/modules/{release}/vmlinuz")]
        .map(|path| root.join(path))
}

/// `dpkg -x` replaces links to folders by folders, so tar does it.
fn extract(package: &Path, root: &Path) -> Result<()> {
    let mut archive = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("dpkg-deb")?;
    let stream = archive.stdout.take().context("output of dpkg-deb")?;
    let unpacked = Command::new("tar")
        .args(["-x", "--keep-directory-symlink", "--no-same-owner", "-C"])
        .arg(root)
        .stdin(stream)
        .status()
        .context("tar")?;
    let read = archive.wait().context("dpkg-deb")?;
    ensure!(unpacked.success() && read.success(), "{}: cannot be unpacked", package.display());
    Ok(())
}

/// `NAME=VERSION` of the newest kernel of the series, from what `apt-cache show linux-image-amd64` says of the
/// package that depends on it.
fn kernel_package(known: &str, series: Series) -> Option<String> {
    let prefix = format!("linux-image-{series}.");
    let depends = known.lines().filter_map(|line| line.strip_prefix("Depends: "));
    let first = depends.flat_map(|line| line.split(", ")).find(|one| one.starts_with(&prefix))?;
    let (name, version) = first.split_once(" (= ")?;
    Some(format!("{}={}", name.trim(), version.trim_end().strip_suffix(')')?))
}

/// The packages that hold the kernel and its modules where its own has neither (Debian 13), from what `apt-cache depends` says.
fn parts(depends: &str) -> impl Iterator<Item = String> {
    let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let prefixes = ["linux-base-", "linux-binary-", "linux-modules-"];
    names.filter(move |name| prefixes.iter().any(|prefix| name.starts_with(prefix))).map(str::to_owned)
}

/// What a program printed.
///
/// # Errors
///
/// It cannot be run, or fails; the message has the end of what it said.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or(OsStr::new("?")).to_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{}", name.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}: {}", name.display(), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const APT_OUTPUT: &str = "Package: linux-image-amd64\nVersion: 6.12.95-1~bpo12+1\n\
        Depends: linux-image-6.12.95+deb12-amd64 (= 6.12.95-1~bpo12+1)\n\nPackage: linux-image-amd64\n\
        Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\n\nDepends: linux-image-6.1.0-50-amd64 (= 6.1.176-1)\n";

    #[test]
    fn the_newest_kernel_of_a_series_is_named_with_its_version() {
        assert_eq!(
            kernel_package(APT_OUTPUT, Series::V6_1).as_deref(),
            Some("linux-image-6.1.0-56-amd64=6.1.192-2")
        );
        assert_eq!(
            kernel_package(APT_OUTPUT, Series::V6_12).as_deref(),
            Some("linux-image-6.12.95+deb12-amd64=6.12.95-1~bpo12+1")
        );
    }

    #[test]
    fn a_kernel_of_several_packages_has_all_of_them() {
        let record = "Depends: linux-base-amd64 (= 7.3.4-1), linux-image-7.3.4+deb13-amd64 (= 7.3.4-1), linux-modules-amd64 (= 7.3.4-1)\n";
        assert_eq!(
            kernel_package(record, Series::V7).as_deref(),
            Some("linux-image-7.3.4+deb13-amd64=7.3.4-1")
        );
        let depends = "linux-image-7.3.4\n |Depends: dracut\n  Depends: linux-base-7.3.4\n  Depends: linux-binary-7.3.4\n  \
            Depends: linux-modules-7.3.4\n";
        assert_eq!(
            parts(depends).collect::<Vec<_>>(),
            ["linux-base-7.3.4", "linux-binary-7.3.4", "linux-modules-7.3.4"]
        );
    }

    #[test]
    fn a_series_that_apt_does_not_know_has_no_package() {
        let only_new = APT_OUTPUT.split("\n\n").next().expect("the first");
        assert_eq!(kernel_package(only_new, Series::V6_1), None);
        assert_eq!(kernel_package("", Series::V6_12), None);
        assert_eq!(kernel_package("Depends: linux-image-6.1.0-56-amd64\n", Series::V6_1), None);
    }
}
