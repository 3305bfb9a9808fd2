//! What the doctor looks at: the machine, or texts; and the traffic.

use super::DoctorArguments;
use anyhow::{Context, bail};
use capture::Capture;
use doctor::Traffic;
use host::Snapshot;
use host::text::Reader;
use host::trace::Trace;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

pub struct Material {
    pub snapshot: Snapshot,
    pub traffic: Option<Traffic>,
    pub trace: Option<Trace>,
}

/// CPUs that a prediction spreads over where the text does not say how many there are.
const USUAL_CPUS: u16 = 4;

const BUFFER: usize = 1 << 20;

pub fn read(arguments: &DoctorArguments) -> anyhow::Result<Material> {
    // Before seconds of sampling, not after.
    for capture in &arguments.traffic {
        Capture::open(capture)?;
    }
    let (snapshot, sample, trace) = if arguments.from.is_empty() {
        super::live::read(arguments)?
    } else {
        (texts(&arguments.from)?, None, None)
    };
    let cpus = snapshot.cpu_count().and_then(|cpus| u16::try_from(cpus).ok()).unwrap_or(USUAL_CPUS);
    let traffic = match sample {
        Some(pcap) => {
            let open = move || Capture::from_reader(io::Cursor::new(pcap.clone()), "live sample");
            Some(Traffic::new(move || open().into_iter().collect(), arguments.interface.clone(), cpus))
        }
        None if arguments.traffic.is_empty() => None,
        None => {
            let files = arguments.traffic.clone();
            let open = move || files.iter().filter_map(|file| Capture::open(file).ok()).collect();
            Some(Traffic::new(open, arguments.interface.clone(), cpus))
        }
    };
    Ok(Material { snapshot, traffic, trace })
}

/// What these texts say of a machine. Errors: one cannot be read, or nothing in them is the output of a known tool.
pub fn texts(files: &[PathBuf]) -> anyhow::Result<Snapshot> {
    if files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        bail!("`-` stands for standard input, which can be read once");
    }
    let mut reader = Reader::new();
    for file in files {
        if file == Path::new("-") {
            if io::stdin().is_terminal() {
                bail!(
                    "standard input is a terminal; pipe a text in, or name a file: rxlane doctor --from FILE"
                );
            }
            reader.read("standard input", io::stdin().lock()).context("cannot read standard input")?;
        } else {
            add(&mut reader, file, File::open(file))?;
        }
    }
    finish(reader, files)
}

/// What this one says, which is open.
pub fn text(path: &Path, opened: File) -> anyhow::Result<Snapshot> {
    let mut reader = Reader::new();
    add(&mut reader, path, Ok(opened))?;
    finish(reader, &[path])
}

fn add(reader: &mut Reader, path: &Path, opened: io::Result<File>) -> anyhow::Result<()> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    opened
        .and_then(|opened| reader.read(&name, BufReader::with_capacity(BUFFER, opened)))
        .with_context(|| format!("cannot read {}", path.display()))
}

fn finish(reader: Reader, files: &[impl AsRef<Path>]) -> anyhow::Result<Snapshot> {
    let snapshot = reader.finish();
    if snapshot.read.is_empty() {
        bail!(
            "nothing in {} is the output of a tool that rxlane knows; it reads ethtool, ip -d -s link, /proc/interrupts, \
             vmstat -i, netstat -Q, sysctl, dmesg and others (rxlane collect --script gathers them); a capture goes to --traffic, and a text has to be \
             UTF-8{}",
            files.iter().map(|file| file.as_ref().display().to_string()).collect::<Vec<_>>().join(", "),
            snapshot
                .unread
                .iter()
                .take(3)
                .map(|one| format!("; {}: {}", one.what, one.why))
                .collect::<String>()
        );
    }
    Ok(snapshot)
}
