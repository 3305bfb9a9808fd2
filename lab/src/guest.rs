//! A guest: booted, spoken to, ended.

use crate::agent::{Bytes, Numbered, Output, Reply, Request, TIMEOUT};
use crate::instructions::Counts;
use crate::machine::{Process, Spec, mac};
use crate::packages::Kernel;
use crate::port::Port;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wire::ethernet::MacAddress;

/// A boot takes some eight seconds of an idle machine, half a minute of one that is busy.
const BOOT: Duration = Duration::from_secs(300);
/// How much longer than a command an answer may take.
const ANSWER: Duration = Duration::from_secs(120);
/// Lines of the console that an error quotes.
const QUOTED: usize = 15;

/// A running guest.
#[derive(Debug)]
pub struct Guest {
    pub(crate) agent: Option<Agent>,
    pub(crate) process: Process,
    pub(crate) ports: HashMap<String, Port>,
    pub(crate) counts: Option<Counts>,
    pub(crate) spec: Spec,
    pub(crate) folder: TempDir,
}

#[derive(Debug)]
pub(crate) struct Agent {
    stream: Mutex<UnixStream>,
    next: AtomicU64,
    waiting: Waiting,
}

/// Who waits for the answer to which request; `None` when the guest has ended.
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
    /// There is no such program, or the guest has ended.
    pub fn run<S: AsRef<str>>(&self, argv: &[S]) -> Result<Output> {
        self.run_with(argv, &[], TIMEOUT)
    }

    /// Runs a command that reads `stdin` and is killed with its children after `limit`.
    ///
    /// # Errors
    ///
    /// There is no such program, or the guest has ended.
    pub fn run_with<S: AsRef<str>>(&self, argv: &[S], stdin: &[u8], limit: Duration) -> Result<Output> {
        let argv: Vec<String> = argv.iter().map(|word| word.as_ref().to_owned()).collect();
        let command = argv.join(" ");
        let timeout_ms = limit.as_millis() as u64;
        let request = Request::Run { argv, stdin: Bytes(stdin.to_vec()), timeout_ms };
        match self.ask(request, limit + ANSWER).with_context(|| command.clone())? {
            Reply::Ran { status, timed_out, stdout, stderr } => {
                Ok(Output { status, timed_out, stdout: stdout.0, stderr: stderr.0 })
            }
            other => Err(unexpected(&other)).context(command),
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
    /// There is no such program, or the guest has ended.
    pub fn start<S: AsRef<str>>(&self, argv: &[S], output: &str) -> Result<u32> {
        let argv: Vec<String> = argv.iter().map(|word| word.as_ref().to_owned()).collect();
        let command = argv.join(" ");
        match self
            .ask(Request::Start { argv, output: output.to_owned() }, ANSWER)
            .with_context(|| command.clone())?
        {
            Reply::Started { pid } => Ok(pid),
            other => Err(unexpected(&other)).context(command),
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
        let content = Bytes(content.to_vec());
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
    /// It has none within a minute.
    pub fn await_carrier(&self, interface: &str) -> Result<()> {
        let path = format!("/sys/class/net/{interface}/carrier");
        let start = Instant::now();
        loop {
            // Reading fails while the interface is down.
            if self.read(&path).is_ok_and(|text| text == b"1\n") {
                return Ok(());
            }
            ensure!(start.elapsed() < Duration::from_secs(60), "{interface}: no carrier");
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

    /// Stops its virtual CPUs and its clocks. Until [`Guest::resume`] it takes no time of the machine (one that idles takes 3
    /// to 4 % of a CPU, by top(1)) and answers nothing; frames for it wait. It does not notice, but that its time of day is late
    /// from then on.
    ///
    /// # Errors
    ///
    /// QEMU does not do so within half a minute.
    pub fn pause(&self) -> Result<()> {
        crate::monitor::execute(self.folder.path(), "stop").with_context(|| self.last_words())
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// QEMU does not do so within half a minute.
    pub fn resume(&self) -> Result<()> {
        crate::monitor::execute(self.folder.path(), "cont").with_context(|| self.last_words())
    }

    /// What its kernel has printed on the console.
    pub fn console(&self) -> String {
        let bytes = fs::read(self.folder.path().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The process id of QEMU.
    pub fn pid(&self) -> u32 {
        self.process.qemu.id()
    }

    pub(crate) fn last_words(&self) -> String {
        let errors = fs::read_to_string(self.folder.path().join("qemu")).unwrap_or_default();
        let console = self.console();
        let lines: Vec<&str> = console.lines().chain(errors.lines()).collect();
        let end = lines.get(lines.len().saturating_sub(QUOTED)..).unwrap_or_default();
        format!("the guest's console ends with:\n{}", end.join("\n"))
    }

    /// Waits for QEMU's connection and the agent's first word.
    pub(crate) fn greet(&mut self, listener: &UnixListener, kernel: &Kernel) -> Result<()> {
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
            None => bail!("the guest has ended; {}", self.last_words()),
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
        RecvTimeoutError::Disconnected => anyhow!("the guest has ended"),
    })
}

fn unexpected(reply: &Reply) -> anyhow::Error {
    anyhow!("unexpected answer of the guest: {reply:?}")
}

/// Hands each reply to whom it belongs, until the guest has ended.
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
