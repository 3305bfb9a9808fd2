//! The virtual machine of a guest: its adapters, QEMU's command line, and the process.

use crate::image::First;
use crate::packages::{Kernel, Series};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use wire::ethernet::MacAddress;

pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// What QEMU says of its release, a line.
///
/// # Errors
///
/// It cannot be run, or says nothing.
pub fn emulator() -> Result<String> {
    let said = crate::packages::output(Command::new(QEMU).arg("--version"))?;
    Ok(said.lines().next().context("QEMU says no release")?.to_owned())
}

/// Emulated network adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Intel 82576: RSS, MSI-X vector for each queue, driver `igb`.
    Igb,
    /// Intel 82574, driver `e1000e`.
    E1000e,
    /// Paravirtual, driver `virtio_net`.
    VirtioNet,
}

impl Model {
    const fn device(self) -> &'static str {
        match self {
            Model::Igb => "igb",
            Model::E1000e => "e1000e",
            Model::VirtioNet => "virtio-net-pci",
        }
    }

    /// Name of the driver's module.
    pub const fn driver(self) -> &'static str {
        match self {
            Model::Igb => "igb",
            Model::E1000e => "e1000e",
            Model::VirtioNet => "virtio_net",
        }
    }
}

/// A network adapter of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// What its interface is called in the guest.
    pub name: String,
    /// What it is.
    pub model: Model,
    /// Name of another adapter of the same guest that it is connected with; `None`: the harness is at its far end.
    pub wired_to: Option<String>,
}

impl Nic {
    /// An adapter with the harness at its far end.
    pub fn new(name: &str, model: Model) -> Nic {
        Nic { name: name.to_owned(), model, wired_to: None }
    }

    /// Two adapters that are connected with each other.
    pub fn pair(one: &str, other: &str, model: Model) -> [Nic; 2] {
        [(one, other), (other, one)].map(|(name, far)| Nic {
            name: name.to_owned(),
            model,
            wired_to: Some(far.to_owned()),
        })
    }
}

/// What the time of a guest is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// That of the machine; each virtual CPU is a thread.
    #[default]
    Machine,
    /// The instructions that the virtual CPUs have executed, in turns: four nanoseconds for each (QEMU's `-icount`). What a guest
    /// measures is the same however fast or busy the machine is; it says nothing of several CPUs. While none executes anything, time
    /// goes by as it does on the machine.
    Instructions,
}

/// What guest to boot.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its kernel.
    pub kernel: Series,
    /// Number of virtual CPUs.
    pub cpus: u32,
    /// Memory, MiB.
    pub memory: u32,
    /// Its network adapters.
    pub nics: Vec<Nic>,
    /// Whether instructions are counted, which slows the guest down by about a fifth.
    pub counting: bool,
    /// What its time is.
    pub clock: Clock,
    /// What its process 1 becomes.
    pub first: First,
}

impl Spec {
    /// Four CPUs, 1 GiB, no adapters, no systemd.
    pub fn new(kernel: Series) -> Spec {
        Spec {
            kernel,
            cpus: 4,
            memory: 1024,
            nics: Vec::new(),
            counting: false,
            clock: Clock::Machine,
            first: First::Agent,
        }
    }
}

pub(crate) fn machine(
    command: &mut Command,
    spec: &Spec,
    tools: &Path,
    kernel: &Kernel,
    image: &Path,
    folder: &Path,
) {
    let console = format!("file:{}", folder.join("console").display());
    let agent = format!("socket,id=agent,path={}", folder.join("agent").display());
    let port = format!("virtserialport,chardev=agent,name={}", crate::agent::PORT);
    // Without the fast strings of CPUs: the kernel would copy by them, and QEMU emulates them byte by byte. Where instructions are
    // counted, the count goes on from earlier ones.
    let cpu = if spec.counting { "max" } else { "max,-erms,-fsrm" };
    command.args(["-machine", "q35", "-cpu", cpu, "-nodefaults", "-no-user-config"]);
    command.args(match spec.clock {
        Clock::Machine => &["-accel", "tcg,thread=multi"][..],
        Clock::Instructions => &["-accel", "tcg,thread=single", "-icount", "shift=2"],
    });
    command.args(["-display", "none", "-no-reboot"]);
    let monitor = folder.join(crate::monitor::SOCKET);
    command.arg("-qmp").arg(format!("unix:{},server=on,wait=off", monitor.display()));
    command.args(["-smp", &spec.cpus.to_string(), "-m", &spec.memory.to_string()]);
    command.args([
        "-serial",
        &console,
        "-chardev",
        &agent,
        "-device",
        "virtio-serial-pci,addr=1",
        "-device",
        &port,
    ]);
    command.args(["-device", "virtio-rng-pci,addr=3"]);
    let shares = [("host", Path::new("/"), 5), ("tools", tools, 7), ("kernel", kernel.root.as_path(), 9)];
    for (tag, path, slot) in shares {
        // Below a folder may be several file systems, whose inode numbers are kept apart.
        let how = "security_model=none,readonly=on,multidevs=remap";
        command.arg("-fsdev").arg(format!("local,id={tag},path={},{how}", path.display()));
        command.arg("-device").arg(format!("virtio-9p-pci,fsdev={tag},mount_tag={tag},addr={slot:#x}"));
    }
    command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(image);
    // One CPU until the first file system is there: while the kernel finds its devices, QEMU rearranges the address
    // space, and a CPU that writes to its interrupt controller meanwhile can lose that write (seen with QEMU 10.0: a
    // CPU without timer, or an assertion in iotlb_to_section).
    command.args(["-append", APPEND]);
}

/// The kernel's command line. `net.ifnames=0` is for udev: interfaces have the names that the harness gives them.
/// `lpj=` is that of a time stamp counter of 3 GHz at 250 ticks a second: without it the kernel measures each further CPU
/// against its timer, which fails under emulation after one to two seconds of two CPUs. It is for short delays of drivers,
/// and emulated devices need none. `no_timer_check`: the kernel waits ten ticks for an interrupt of its timer and panics where none came
/// (`check_timer` in arch/x86/kernel/apic/io_apic.c), which an emulated CPU on a busy host does not always manage.
const APPEND: &str = "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on maxcpus=1 lpj=12000000 no_timer_check net.ifnames=0";

/// Name of the socket at which QEMU reads the frames for an adapter.
pub(crate) fn near(place: usize) -> String {
    format!("near{place}")
}

pub(crate) fn adapter(command: &mut Command, spec: &Spec, place: usize, folder: &Path) -> Result<()> {
    let nic = &spec.nics[place];
    let far = match &nic.wired_to {
        None => format!("far{place}"),
        Some(name) => {
            let other = spec.nics.iter().position(|other| other.name == *name);
            near(other.with_context(|| format!("{}: there is no {name} to be wired to", nic.name))?)
        }
    };
    let (local, remote) = (folder.join(near(place)), folder.join(far));
    command.arg("-netdev").arg(format!(
        "dgram,id=n{place},local.type=unix,local.path={},remote.type=unix,remote.path={}",
        local.display(),
        remote.display()
    ));
    // Even slots: the virtual functions of an 82576 take the places from 16 slots behind it on, two slots in all.
    let (device, slot) = (nic.model.device(), 2 + 2 * place);
    command.arg("-device").arg(format!("{device},addr={slot:#x},netdev=n{place},mac={}", mac(place)));
    Ok(())
}

pub(crate) fn mac(place: usize) -> MacAddress {
    MacAddress([0x52, 0x54, 0, 0, 0, place as u8 + 1])
}

/// QEMU, and a shell that ends it and removes its folder when the harness has ended, however that came.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) qemu: Child,
    guard: Child,
}

impl Process {
    pub(crate) fn start(command: &mut Command, folder: &Path) -> Result<Process> {
        let mut qemu = command.spawn().context(QEMU)?;
        // The guard's input is a pipe that nobody writes to and that closes with this process.
        let guard = Command::new("sh")
            .args(["-c", "read -r _; kill -9 \"$0\" 2>/dev/null; rm -rf \"$1\"", &qemu.id().to_string()])
            .arg(folder)
            .stdin(Stdio::piped())
            .spawn();
        match guard {
            Ok(guard) => Ok(Process { qemu, guard }),
            Err(error) => {
                qemu.kill().and_then(|()| qemu.wait()).context(QEMU)?;
                Err(error).context("sh")
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guard first: the number that it would kill is QEMU's only until QEMU has been waited for.
        for child in [&mut self.guard, &mut self.qemu] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
