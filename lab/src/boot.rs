//! Booting guests: what it takes, and the way from a command line to a guest that answers.

use crate::guest::Guest;
use crate::image;
use crate::instructions::{self, Counts};
use crate::machine::{Process, QEMU, Spec, adapter, machine, near};
use crate::packages::{Cache, Extra, Series};
use crate::port::Port;
use anyhow::{Context, Result, bail, ensure};
use std::collections::HashMap;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::Missing;

/// The name by which `RXLANE_REQUIRE` demands the lab.
const FEATURE: &str = "lab";
/// How often a boot is tried: QEMU 10.0 crashes once in a while when several virtual CPUs start.
const TRIES: usize = 3;

/// What it takes to boot guests.
#[derive(Clone, Debug)]
pub struct Lab {
    qemu: PathBuf,
    cache: Cache,
    agent: PathBuf,
    /// Whether a kernel that is missing is fetched.
    may_fetch: bool,
}

impl Lab {
    /// The lab, where everything for it is there: QEMU, the agent, tools and the kernel of most experiments. They and other kernels
    /// are fetched only where `RXLANE_REQUIRE` names `lab`; else `make lab` does so.
    ///
    /// # Errors
    ///
    /// What is missing and how to get it.
    pub fn probe() -> Result<Lab, Missing> {
        let required = std::env::var("RXLANE_REQUIRE").unwrap_or_default();
        Lab::find(required.split(',').any(|name| name.trim() == FEATURE))
    }

    /// As [`Lab::probe`]; where something is missing, a line on standard error says that a test is skipped, or the test
    /// fails if `RXLANE_REQUIRE` names `lab` ([`testkit::require`]).
    #[track_caller]
    pub fn require() -> Option<Lab> {
        testkit::require(FEATURE, Lab::probe())
    }

    /// The lab; tools and kernels are fetched where they are missing, a kernel when it is booted.
    ///
    /// # Errors
    ///
    /// What is missing and how to get it.
    pub fn prepare() -> Result<Lab, Missing> {
        Lab::find(true)
    }

    /// Puts programs of Debian into a guest, as their packages have them; what a package does when it is installed is left to
    /// the caller. Where one is not unpacked on this machine, a line on standard error says that a test is skipped, or the test
    /// fails if `RXLANE_REQUIRE` names `lab`.
    #[track_caller]
    pub fn install(&self, guest: &Guest, extras: &[Extra]) -> Option<Result<()>> {
        // One after the other: cp fails where another one makes the same folder. What the machine has stays as it is: programs that
        // run meanwhile would load half a library.
        let mut script = "exec 9>/run/lab-install; flock 9\n".to_owned();
        for extra in extras {
            let missing = || Missing(format!("the lab is not prepared ({extra:?}; make lab fetches it)"));
            let root = testkit::require(FEATURE, self.cache.extra(*extra).ok_or_else(missing))?;
            script.push_str(&format!(
                "for d in usr etc var; do [ ! -d {0}/$d ] || cp -an {0}/$d /; done\n",
                root.display()
            ));
        }
        Some(guest.sh(&script).map(drop))
    }

    fn find(may_fetch: bool) -> Result<Lab, Missing> {
        let qemu = testkit::program(QEMU)?;
        check_version(&qemu).map_err(|error| Missing(format!("{error:#}")))?;
        let agent = agent_program().map_err(|error| Missing(format!("{error:#}")))?;
        let cache = Cache::place();
        if may_fetch {
            let filled = cache.fill().and_then(|()| cache.fetch(Series::V6_12));
            filled.map_err(|error| Missing(format!("the lab cannot be prepared: {error:#}")))?;
        }
        if cache.tools().is_none() || cache.kernel(Series::V6_12).is_none() {
            return Err(Missing("the lab is not prepared (make lab fetches kernels and tools)".to_owned()));
        }
        Ok(Lab { qemu, cache, agent, may_fetch })
    }

    /// Boots a guest and waits until it answers. Where QEMU crashes or hangs before that, a line on standard error says
    /// so, and it is started again.
    ///
    /// # Errors
    ///
    /// It cannot be started, or three times has not answered within five minutes; the message has the end of its
    /// console.
    pub fn boot(&self, spec: &Spec) -> Result<Guest> {
        let mut attempt = 1;
        loop {
            match self.start(spec) {
                Ok(guest) => return Ok(guest),
                Err(error) if attempt == TRIES => return Err(error),
                Err(error) => eprintln!("lab: boot {attempt} of {TRIES} failed: {error:#}"),
            }
            attempt += 1;
        }
    }

    fn start(&self, spec: &Spec) -> Result<Guest> {
        let kernel = match self.cache.kernel(spec.kernel) {
            Some(kernel) => kernel,
            None if self.may_fetch => self.cache.fetch(spec.kernel)?,
            None => bail!("no kernel {} (make lab fetches it)", spec.kernel),
        };
        let folder =
            tempfile::Builder::new().prefix("rxlane-lab-").tempdir().context("folder of the guest")?;
        let path = |name: &str| folder.path().join(name);
        let tools = self.cache.tools().context("tools")?;
        let image = image::build(&tools, &kernel, &self.agent, spec.first, folder.path())?;
        let listener = UnixListener::bind(path("agent"))?;
        let mut command = Command::new(&self.qemu);
        machine(&mut command, spec, &tools, &kernel, &image, folder.path());
        if spec.counting {
            let plugin = instructions::plugin(&self.cache)?;
            let counts = path("counts");
            command.arg("-plugin").arg(format!("{},counts={}", plugin.display(), counts.display()));
        }
        let mut ports = HashMap::new();
        for (place, nic) in spec.nics.iter().enumerate() {
            if nic.wired_to.is_none() {
                ports
                    .insert(nic.name.clone(), Port::bind(&path(&format!("far{place}")), path(&near(place)))?);
            }
            adapter(&mut command, spec, place, folder.path())?;
        }
        let errors = fs::File::create(path("qemu"))?;
        let process =
            Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors), folder.path())?;
        let mut guest = Guest { agent: None, process, ports, counts: None, spec: spec.clone(), folder };
        guest.greet(&listener, &kernel).with_context(|| guest.last_words())?;
        if spec.counting {
            guest.counts = Some(Counts::open(&guest.folder.path().join("counts"), spec.cpus)?);
        }
        guest.name_adapters()?;
        Ok(guest)
    }
}

/// The release of QEMU is one that has the adapters and the plugin interface.
fn check_version(qemu: &Path) -> Result<()> {
    let said = crate::packages::output(Command::new(qemu).arg("--version"))?;
    let major = said.split("version ").nth(1).and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    ensure!(
        major.is_some_and(|major| major >= 10),
        "QEMU 10 or newer is needed (make deps installs it), and this says: {}",
        said.lines().next().unwrap_or("nothing")
    );
    Ok(())
}

/// The program of this package, which runs in the guest too: next to the running one, or one folder above it, where
/// cargo puts programs of a package whose tests it runs.
fn agent_program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("path of the running program")?;
    let folders = own.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("rxlane-lab")).find(|file| file.is_file());
    let agent = found.context("the agent is not built (cargo build -p rxlane-lab)")?;
    image::check_agent(&agent)?;
    Ok(agent)
}
