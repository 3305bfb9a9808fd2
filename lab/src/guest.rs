//! A guest: booted, spoken to, ended.

use crate::agent::{Numbered, Octets, Output, Reply, Request, TIMEOUT};
use crate::image;
use crate::instructions::{self, Counts};
use crate::packages::{Cache, Kernel, Series};
use crate::port::Port;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::Missing;
use wire::ethernet::MacAddress;

/// The name by which `RXLANE_REQUIRE` demands the lab.
const FEATURE: &str = "lab";
const QEMU: &str = "qemu-system-x86_64";
/// A boot takes some eight seconds of an idle machine, half a minute of one that is busy.
const BOOT: Duration = Duration::from_secs(90);
/// How often a boot is tried: QEMU 10.0 crashes once in a while when several virtual CPUs start.
const TRIES: usize = 3;
/// How much longer than a command an answer may take.
const ANSWER: Duration = Duration::from_secs(30);
/// Lines of the console that an error quotes.
const QUOTED: usize = 15;

/// What it takes to boot guests.
#[derive(Clone, Debug)]
pub struct Lab {
    qemu: PathBuf,
    cache: Cache,
    agent: PathBuf,
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
}

impl Spec {
    /// Four CPUs, 1 GiB, no adapters.
    pub fn new(kernel: Series) -> Spec {
        Spec { kernel, cpus: 4, memory: 1024, nics: Vec::new(), counting: false }
    }
}

impl Lab {
    /// The lab, where everything for it is there: QEMU, the agent, kernels and tools. Those are fetched only where
    /// `RXLANE_REQUIRE` names `lab`; else `make lab` does so.
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

    /// The lab; kernels and tools are fetched where they are missing.
    ///
    /// # Errors
    ///
    /// What is missing and how to get it.
    pub fn prepare() -> Result<Lab, Missing> {
        Lab::find(true)
    }

    fn find(may_fetch: bool) -> Result<Lab, Missing> {
        let qemu = testkit::program(QEMU)?;
        check_version(&qemu).map_err(|error| Missing(format!("{error:#}")))?;
        let agent = agent_program().map_err(|error| Missing(format!("{error:#}")))?;
        let cache = Cache::place();
        if may_fetch {
            cache.fill().map_err(|error| Missing(format!("the lab cannot be prepared: {error:#}")))?;
        }
        let is_full =
            cache.tools().is_some() && Series::ALL.iter().all(|series| cache.kernel(*series).is_some());
        if !is_full {
            return Err(Missing("the lab is not prepared (make lab fetches kernels and tools)".to_owned()));
        }
        Ok(Lab { qemu, cache, agent })
    }

    /// Boots a guest and waits until it answers. Where QEMU crashes or hangs before that, a line on standard error says
    /// so, and it is started again.
    ///
    /// # Errors
    ///
    /// It cannot be started, or three times has not answered within a minute and a half; the message has the end of its
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
        let kernel = self.cache.kernel(spec.kernel).context("kernel")?;
        let folder =
            tempfile::Builder::new().prefix("rxlane-lab-").tempdir().context("folder of the guest")?;
        let path = |name: &str| folder.path().join(name);
        let tools = self.cache.tools().context("tools")?;
        let image = image::build(&tools, &kernel, &self.agent, folder.path())?;
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

/// The program of this package, which runs in the guest too: beside the running one, or one folder above it, where
/// cargo puts programs of a package whose tests it runs.
fn agent_program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("path of the running program")?;
    let folders = own.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("rxlane-lab")).find(|file| file.is_file());
    let agent = found.context("the agent is not built (cargo build -p rxlane-lab)")?;
    image::check_agent(&agent)?;
    Ok(agent)
}

fn machine(command: &mut Command, spec: &Spec, tools: &Path, kernel: &Kernel, image: &Path, folder: &Path) {
    let console = format!("file:{}", folder.join("console").display());
    let agent = format!("socket,id=agent,path={}", folder.join("agent").display());
    let port = format!("virtserialport,chardev=agent,name={}", crate::agent::PORT);
    command.args([
        "-machine",
        "q35",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-nodefaults",
        "-no-user-config",
    ]);
    command.args(["-display", "none", "-no-reboot"]);
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
    command.args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on maxcpus=1"]);
}

/// Name of the socket at which QEMU reads the frames for an adapter.
fn near(place: usize) -> String {
    format!("near{place}")
}

fn adapter(command: &mut Command, spec: &Spec, place: usize, folder: &Path) -> Result<()> {
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

fn mac(place: usize) -> MacAddress {
    MacAddress([0x52, 0x54, 0, 0, 0, place as u8 + 1])
}

/// QEMU, and a shell that ends it and removes its folder when the harness is gone, however that came.
#[derive(Debug)]
struct Process {
    qemu: Child,
    guard: Child,
}

impl Process {
    fn start(command: &mut Command, folder: &Path) -> Result<Process> {
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

/// A running guest.
#[derive(Debug)]
pub struct Guest {
    agent: Option<Agent>,
    process: Process,
    ports: HashMap<String, Port>,
    counts: Option<Counts>,
    spec: Spec,
    folder: TempDir,
}

#[derive(Debug)]
struct Agent {
    stream: Mutex<UnixStream>,
    next: AtomicU64,
    waiting: Waiting,
}

/// Who waits for the answer to which request; `None` when the guest has gone.
type Waiting = Arc<Mutex<Option<HashMap<u64, Sender<Reply>>>>>;

impl Guest {
    /// What it was booted as.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The far end of the adapter.
    ///
    /// # Errors
    ///
    /// It has no such adapter, or the adapter is wired to another one.
    pub fn port(&self, nic: &str) -> Result<&Port> {
        self.ports.get(nic).with_context(|| format!("the harness is not at the far end of {nic}"))
    }

    /// The adapter's own address.
    ///
    /// # Errors
    ///
    /// It has no such adapter.
    pub fn mac(&self, nic: &str) -> Result<MacAddress> {
        let place = self.spec.nics.iter().position(|other| other.name == nic);
        place.map(mac).with_context(|| format!("no adapter {nic}"))
    }

    /// Runs a command and waits for its end, at most a minute.
    ///
    /// # Errors
    ///
    /// There is no such program, or the guest has gone.
    pub fn run<S: AsRef<str>>(&self, argv: &[S]) -> Result<Output> {
        self.run_with(argv, &[], TIMEOUT)
    }

    /// Runs a command that reads `stdin` and is killed with its children after `limit`.
    ///
    /// # Errors
    ///
    /// There is no such program, or the guest has gone.
    pub fn run_with<S: AsRef<str>>(&self, argv: &[S], stdin: &[u8], limit: Duration) -> Result<Output> {
        let argv: Vec<String> = argv.iter().map(|word| word.as_ref().to_owned()).collect();
        let shown = argv.join(" ");
        let timeout_ms = limit.as_millis() as u64;
        let request = Request::Run { argv, stdin: Octets(stdin.to_vec()), timeout_ms };
        match self.ask(request, limit + ANSWER).with_context(|| shown.clone())? {
            Reply::Ran { status, timed_out, stdout, stderr } => {
                Ok(Output { status, timed_out, stdout: stdout.0, stderr: stderr.0 })
            }
            other => Err(unexpected(&other)).context(shown),
        }
    }

    /// What a shell script prints. It ends at the first command that fails.
    ///
    /// # Errors
    ///
    /// It fails; the message has what it said.
    pub fn sh(&self, script: &str) -> Result<String> {
        let output = self.run(&["sh", "-ec", script])?;
        if output.status != 0 || output.timed_out {
            bail!("{script}: status {}: {}{}", output.status, output.text(), output.errors().trim());
        }
        Ok(output.text())
    }

    /// Starts a command and leaves it running; what it prints goes into `output`. Gives its process id.
    ///
    /// # Errors
    ///
    /// There is no such program, or the guest has gone.
    pub fn start<S: AsRef<str>>(&self, argv: &[S], output: &str) -> Result<u32> {
        let argv: Vec<String> = argv.iter().map(|word| word.as_ref().to_owned()).collect();
        let shown = argv.join(" ");
        match self
            .ask(Request::Start { argv, output: output.to_owned() }, ANSWER)
            .with_context(|| shown.clone())?
        {
            Reply::Started { pid } => Ok(pid),
            other => Err(unexpected(&other)).context(shown),
        }
    }

    /// Sends a signal to a started command; with `wait`, waits for its end and gives its status as [`Output::status`].
    ///
    /// # Errors
    ///
    /// No such command was started, or it does not end within 30 s.
    pub fn signal(&self, pid: u32, signal: i32, wait: bool) -> Result<Option<i32>> {
        match self.ask(Request::Signal { pid, signal, wait }, ANSWER)? {
            Reply::Ran { status, .. } => Ok(Some(status)),
            Reply::Done => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    /// The content of a file.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        match self.ask(Request::Read { path: path.to_owned() }, ANSWER)? {
            Reply::Content(content) => Ok(content.0),
            other => Err(unexpected(&other)),
        }
    }

    /// Writes a file, and the folders above it.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, path: &str, content: &[u8]) -> Result<()> {
        let content = Octets(content.to_vec());
        match self.ask(Request::Write { path: path.to_owned(), content }, ANSWER)? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// A counter of an interface, from `/sys/class/net/IFACE/statistics`.
    ///
    /// # Errors
    ///
    /// There is no such interface or counter.
    pub fn counter(&self, interface: &str, counter: &str) -> Result<u64> {
        let path = format!("/sys/class/net/{interface}/statistics/{counter}");
        let text = String::from_utf8(self.read(&path)?)?;
        text.trim().parse().with_context(|| format!("{path}: {text}"))
    }

    /// Waits until a counter is at least `least`, and gives it.
    ///
    /// # Errors
    ///
    /// It is not within `limit`.
    pub fn await_counter(&self, interface: &str, counter: &str, least: u64, limit: Duration) -> Result<u64> {
        let start = Instant::now();
        loop {
            let number = self.counter(interface, counter)?;
            if number >= least {
                return Ok(number);
            }
            ensure!(
                start.elapsed() < limit,
                "{interface}: {counter} is {number} and not {least} after {limit:?}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Everything that the driver counts (`ethtool -S`), by the driver's names.
    ///
    /// # Errors
    ///
    /// There is no such interface, or its driver counts nothing.
    pub fn statistics(&self, interface: &str) -> Result<BTreeMap<String, u64>> {
        let text = self.sh(&format!("ethtool -S {interface}"))?;
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs
            .filter_map(|(name, number)| Some((name.trim().to_owned(), number.trim().parse().ok()?)))
            .collect())
    }

    /// Frames that each receive queue has handed on, as `igb` counts them (`rx_queue_N_packets`). The numbers start
    /// anew when the driver sets its rings up.
    ///
    /// # Errors
    ///
    /// There is no such interface, or its driver does not count so.
    pub fn queue_frames(&self, interface: &str) -> Result<Vec<u64>> {
        let statistics = self.statistics(interface)?;
        let queues = (0..).map_while(|queue| statistics.get(&format!("rx_queue_{queue}_packets")).copied());
        let queues: Vec<u64> = queues.collect();
        ensure!(!queues.is_empty(), "{interface}: its driver does not count frames by queue");
        Ok(queues)
    }

    /// Frames that the stack has taken on each CPU (`/proc/net/softnet_stat`, first column).
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn cpu_frames(&self) -> Result<Vec<u64>> {
        let text = String::from_utf8(self.read("/proc/net/softnet_stat")?)?;
        let first = |line: &str| u64::from_str_radix(line.split_whitespace().next().unwrap_or_default(), 16);
        text.lines().map(|line| first(line).with_context(|| line.to_owned())).collect()
    }

    /// Waits until the interface has a carrier: a driver resets its device when it is set up, and frames that come
    /// before are lost.
    ///
    /// # Errors
    ///
    /// It has none within 20 s.
    pub fn await_carrier(&self, interface: &str) -> Result<()> {
        let path = format!("/sys/class/net/{interface}/carrier");
        let start = Instant::now();
        loop {
            // Reading fails while the interface is down.
            if self.read(&path).is_ok_and(|text| text == b"1\n") {
                return Ok(());
            }
            ensure!(start.elapsed() < Duration::from_secs(20), "{interface}: no carrier");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Instructions that each virtual CPU has executed since it was booted.
    ///
    /// # Errors
    ///
    /// It was booted without counting.
    pub fn instructions(&self) -> Result<Vec<u64>> {
        self.counts.as_ref().context("the guest was booted without counting")?.read()
    }

    /// What its kernel has printed on the console.
    pub fn console(&self) -> String {
        let octets = fs::read(self.folder.path().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&octets).into_owned()
    }

    /// The process id of QEMU.
    pub fn pid(&self) -> u32 {
        self.process.qemu.id()
    }

    fn last_words(&self) -> String {
        let errors = fs::read_to_string(self.folder.path().join("qemu")).unwrap_or_default();
        let console = self.console();
        let lines: Vec<&str> = console.lines().chain(errors.lines()).collect();
        let end = lines.get(lines.len().saturating_sub(QUOTED)..).unwrap_or_default();
        format!("the guest's console ends with:\n{}", end.join("\n"))
    }

    /// Waits for QEMU's connection and the agent's first word.
    fn greet(&mut self, listener: &UnixListener, kernel: &Kernel) -> Result<()> {
        listener.set_nonblocking(true)?;
        let start = Instant::now();
        let stream = loop {
            if let Ok((stream, _)) = listener.accept() {
                break stream;
            }
            if let Some(status) = self.process.qemu.try_wait()? {
                bail!("QEMU ended with {status}");
            }
            ensure!(start.elapsed() < BOOT, "QEMU does not connect");
            thread::sleep(Duration::from_millis(10));
        };
        stream.set_nonblocking(false)?;
        let waiting: Waiting = Arc::default();
        let (sender, ready) = mpsc::channel();
        *lock(&waiting) = Some(HashMap::from([(0, sender)]));
        let (reader, shared) = (stream.try_clone()?, Arc::clone(&waiting));
        thread::Builder::new().name("agent".to_owned()).spawn(move || deliver(reader, &shared))?;
        self.agent = Some(Agent { stream: Mutex::new(stream), next: AtomicU64::new(1), waiting });
        match answer(&ready, BOOT).context("the agent has not answered")? {
            Reply::Ready { release } if release == kernel.release => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Loads the drivers and gives the interfaces their names, which the kernel counts otherwise. Done at boot, and to be
    /// done again after a driver was unloaded.
    ///
    /// # Errors
    ///
    /// The kernel has no such driver.
    pub fn name_adapters(&self) -> Result<()> {
        let mut script = String::new();
        for (place, nic) in self.spec.nics.iter().enumerate() {
            script.push_str(&format!(
                "modprobe {}; i=$(grep -l {} /sys/class/net/*/address); i=${{i%/address}}; \
                 [ \"${{i##*/}}\" = {} ] || \
                 ip link set \"${{i##*/}}\" name {}\n",
                nic.model.driver(),
                mac(place),
                nic.name,
                nic.name
            ));
        }
        self.sh(&script).map(drop)
    }

    fn ask(&self, request: Request, limit: Duration) -> Result<Reply> {
        let agent = self.agent.as_ref().context("no agent")?;
        let number = agent.next.fetch_add(1, Ordering::Relaxed);
        let (sender, reply) = mpsc::channel();
        match lock(&agent.waiting).as_mut() {
            Some(waiting) => waiting.insert(number, sender),
            None => bail!("the guest has gone; {}", self.last_words()),
        };
        let mut line = serde_json::to_vec(&Numbered { number, body: request })?;
        line.push(b'\n');
        let sent = lock(&agent.stream).write_all(&line);
        let reply = sent.map_err(anyhow::Error::from).and_then(|()| answer(&reply, limit));
        match reply.with_context(|| self.last_words())? {
            Reply::Failed(why) => bail!("{why}"),
            reply => Ok(reply),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(reply: &Receiver<Reply>, limit: Duration) -> Result<Reply> {
    reply.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Timeout => anyhow!("no answer from the guest in {limit:?}"),
        RecvTimeoutError::Disconnected => anyhow!("the guest has gone"),
    })
}

fn unexpected(reply: &Reply) -> anyhow::Error {
    anyhow!("unexpected answer of the guest: {reply:?}")
}

/// Hands each reply to whom it belongs, until the guest is gone.
fn deliver(stream: UnixStream, waiting: &Waiting) {
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        let Ok(reply) = serde_json::from_str::<Numbered<Reply>>(&line) else { continue };
        let sender = lock(waiting).as_mut().and_then(|waiting| waiting.remove(&reply.number));
        if let Some(sender) = sender {
            let _ = sender.send(reply.body);
        }
    }
    // Whoever waits now, waits for nothing.
    *lock(waiting) = None;
}
