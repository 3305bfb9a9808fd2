//! The agent: in the guest, executes what the harness asks.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rxlane_lab::agent::{Bytes, Numbered, PORT, Reply, Request, TIMEOUT};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Commands that were started and are not waited for.
#[derive(Default)]
struct Started(Mutex<HashMap<u32, Child>>);

/// Serves until the harness has ended. Every request has a thread of its own, so a long command holds up no other.
pub(crate) fn serve() -> Result<()> {
    let port = device()?;
    let reader =
        File::options().read(true).write(true).open(&port).with_context(|| format!("{}", port.display()))?;
    let writer = Mutex::new(reader.try_clone()?);
    let started = Started::default();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("release of the kernel")?;
    let release = release.trim().to_owned();
    send(&writer, 0, Reply::Ready { release })?;
    thread::scope(|scope| {
        for line in BufReader::new(reader).lines() {
            let Ok(line) = line else { break };
            let Ok(request) = serde_json::from_str::<Numbered<Request>>(&line) else { continue };
            let (writer, started) = (&writer, &started);
            scope.spawn(move || {
                let reply = started.execute(request.body);
                // Nobody is left to get an answer when the harness has ended.
                let _ = send(
                    writer,
                    request.number,
                    reply.unwrap_or_else(|error| Reply::Failed(format!("{error:#}"))),
                );
            });
        }
        // The guest ends with its harness, whatever still runs in it.
        std::process::exit(0);
    })
}

/// The device of the harness's port, which may come a moment after its driver.
fn device() -> Result<PathBuf> {
    let start = Instant::now();
    loop {
        for entry in fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten() {
            if fs::read_to_string(entry.path().join("name")).is_ok_and(|name| name.trim() == PORT) {
                return Ok(Path::new("/dev").join(entry.file_name()));
            }
        }
        anyhow::ensure!(
            start.elapsed() < Duration::from_secs(10),
            "no port {PORT}: this is no guest of the lab"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

fn send(writer: &Mutex<File>, number: u64, body: Reply) -> Result<()> {
    let mut line = serde_json::to_vec(&Numbered { number, body })?;
    line.push(b'\n');
    lock(writer).write_all(&line).context("answer")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Started {
    fn execute(&self, request: Request) -> Result<Reply> {
        match request {
            Request::Run { argv, stdin, timeout_ms } => {
                run(&argv, stdin.0, Duration::from_millis(timeout_ms))
            }
            Request::Start { argv, output } => self.start(&argv, &output),
            Request::Signal { pid, signal, wait } => self.signal(pid, signal, wait),
            Request::Read { path } => {
                fs::read(&path).map(|content| Reply::Content(Bytes(content))).with_context(|| path.clone())
            }
            Request::Write { path, content } => write(&path, &content.0).map(|()| Reply::Done),
        }
    }

    fn start(&self, argv: &[String], output: &str) -> Result<Reply> {
        let file = File::create(output).with_context(|| output.to_owned())?;
        let child = command(argv)?
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| argv.join(" "))?;
        let pid = child.id();
        lock(&self.0).insert(pid, child);
        Ok(Reply::Started { pid })
    }

    fn signal(&self, pid: u32, signal: i32, wait: bool) -> Result<Reply> {
        let mut started = lock(&self.0);
        anyhow::ensure!(started.contains_key(&pid), "{pid}: no command was started under this number");
        let number = Pid::from_raw(i32::try_from(pid)?).context("a process id")?;
        let signal = Signal::from_named_raw(signal).with_context(|| format!("signal {signal}"))?;
        kill_process(number, signal).with_context(|| format!("{pid}"))?;
        if !wait {
            return Ok(Reply::Done);
        }
        let Some(mut child) = started.remove(&pid) else { return Ok(Reply::Done) };
        drop(started);
        let status = child.wait()?;
        Ok(Reply::Ran {
            status: number_of(status),
            timed_out: false,
            stdout: Bytes::default(),
            stderr: Bytes::default(),
        })
    }
}

fn write(path: &str, content: &[u8]) -> Result<()> {
    if let Some(folder) = Path::new(path).parent() {
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    fs::write(path, content).with_context(|| path.to_owned())
}

/// A command in a process group of its own, so that its children can be killed with it.
fn command(argv: &[String]) -> Result<Command> {
    let [program, arguments @ ..] = argv else { anyhow::bail!("no program") };
    let mut command = Command::new(program);
    command.args(arguments).process_group(0);
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
    // systemctl gives up after 25 seconds, which an emulated systemd on a busy machine may take.
    command.env("SYSTEMD_BUS_TIMEOUT", TIMEOUT.as_secs().to_string());
    Ok(command)
}

fn number_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or(-1)
}

fn run(argv: &[String], stdin: Vec<u8>, limit: Duration) -> Result<Reply> {
    let start = Instant::now();
    let mut child = command(argv)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| argv.join(" "))?;
    let input = child.stdin.take();
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let mut timed_out = false;
    thread::scope(|scope| {
        scope.spawn(move || {
            // A command that does not read all of it has its reasons.
            let _ = input.map(|mut input| input.write_all(&stdin));
        });
        let output = scope.spawn(|| read_all(output));
        let errors = scope.spawn(|| read_all(errors));
        let group = Pid::from_child(&child);
        let mut pause = Duration::from_micros(500);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if start.elapsed() >= limit {
                timed_out = true;
                kill_process_group(group, Signal::KILL).context("the command's processes")?;
                break child.wait()?;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        // Processes that it left behind would keep its output open for ever.
        while !(output.is_finished() && errors.is_finished()) && start.elapsed() < limit {
            thread::sleep(Duration::from_millis(1));
        }
        if !(output.is_finished() && errors.is_finished()) {
            timed_out = true;
            let _ = kill_process_group(group, Signal::KILL);
        }
        let joined = |stream: thread::ScopedJoinHandle<'_, Vec<u8>>| Bytes(stream.join().unwrap_or_default());
        Ok(Reply::Ran {
            status: number_of(status),
            timed_out,
            stdout: joined(output),
            stderr: joined(errors),
        })
    })
}

fn read_all(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        let _ = stream.read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    fn ran(script: &str, stdin: &[u8], limit: Duration) -> (i32, bool, Vec<u8>, Vec<u8>) {
        match run(&shell(script), stdin.to_vec(), limit).expect("it runs") {
            Reply::Ran { status, timed_out, stdout, stderr } => (status, timed_out, stdout.0, stderr.0),
            other => panic!("{other:?}"),
        }
    }

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn status_and_both_streams_come_back() {
        let seen = ran("cat; echo wrong >&2; exit 7", b"in\xff", LONG);
        assert_eq!(seen, (7, false, b"in\xff".to_vec(), b"wrong\n".to_vec()));
        assert_eq!(ran("kill -9 $$", b"", LONG).0, -9);
    }

    #[test]
    fn a_command_that_ignores_its_input_is_no_error() {
        assert_eq!(ran("exec true", &vec![0; 1 << 20], LONG).0, 0);
    }

    #[test]
    fn a_command_is_killed_with_its_children_when_its_time_is_over() {
        let start = Instant::now();
        let (status, timed_out, ..) = ran("sleep 50 & sleep 50", b"", Duration::from_millis(100));
        assert_eq!((status, timed_out), (-9, true));
        // The shell has ended long before, unless the machine is so busy that it is killed, too.
        let (status, timed_out, ..) = ran("sleep 50 & exit 3", b"", Duration::from_secs(2));
        assert!(matches!((status, timed_out), (3 | -9, true)), "{status}");
        assert!(start.elapsed() < LONG);
    }

    #[test]
    fn a_started_command_is_signalled_and_waited_for_once() {
        let started = Started::default();
        let folder = std::env::temp_dir().join(format!("rxlane-lab-{}", std::process::id()));
        let output = folder.display().to_string();
        let Ok(Reply::Started { pid }) = started.start(&shell("echo up; exec sleep 50"), &output) else {
            panic!("not started");
        };
        let start = Instant::now();
        while fs::read(&folder).expect("its output") != b"up\n" && start.elapsed() < LONG {
            thread::sleep(Duration::from_millis(5));
        }
        let Ok(Reply::Ran { status, .. }) = started.signal(pid, 15, true) else { panic!("no end") };
        assert_eq!(status, -15);
        assert!(started.signal(pid, 15, true).is_err());
        fs::remove_file(folder).expect("removed");
    }

    #[test]
    fn what_cannot_be_done_says_why() {
        let started = Started::default();
        let missing = started.execute(Request::Read { path: "/nonexistent/x".to_owned() });
        assert!(format!("{:#}", missing.expect_err("no file")).starts_with("/nonexistent/x: "));
        assert!(run(&[], Vec::new(), LONG).is_err());
        assert!(run(&["/nonexistent/x".to_owned()], Vec::new(), LONG).is_err());
    }
}
