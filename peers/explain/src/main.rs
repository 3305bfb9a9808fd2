//! `rxlane explain --json` against a loop that only parses (pcap-parser and etherparse), tcpdump -n and tshark -n.
//!
//! Whole processes, wall clock, files in the page cache, strictly in turn. tcpdump and tshark read a slice, and
//! the time that they take for a capture without frames is subtracted; the others are charged with their start.
//!
//! `bench-explain RXLANE PARSE-ONLY FOLDER [MEGABYTES [ROUNDS]]`

mod generate;

use nix::sys::resource::{UsageWho, getrusage};
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

type Failure = Box<dyn Error>;

/// Megabytes of the slices that the slow tools read.
const SLICE: u64 = 20;

/// What a run took.
#[derive(Clone, Copy)]
struct Run {
    seconds: f64,
    cpu: f64,
    peak_kib: i64,
}

/// In a process of its own, so that the peak memory of all its children is that of one: runs the command, prints
/// seconds, CPU seconds and KiB.
fn measure_child(command: &[OsString]) -> Result<(), Failure> {
    let (program, arguments) = command.split_first().ok_or("nothing to run")?;
    let start = Instant::now();
    let status =
        Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let seconds = start.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let cpu = time(usage.user_time()) + time(usage.system_time());
    // explain says with 1 that it found something.
    if !matches!(status.code(), Some(0 | 1)) {
        return Err(format!("{program:?}: {status}").into());
    }
    println!("{seconds} {cpu} {}", usage.max_rss());
    Ok(())
}

struct Contender {
    name: &'static str,
    command: Vec<OsString>,
    /// Reads the slice instead of the whole file.
    slice: bool,
}

impl Contender {
    fn run(&self, file: &Path) -> Result<Run, Failure> {
        let mut arguments = vec![OsString::from("--measure")];
        arguments.extend(self.command.iter().map(|word| match word.to_str() {
            Some("FILE") => file.as_os_str().to_owned(),
            _ => word.clone(),
        }));
        let output =
            Command::new(std::env::current_exe()?).args(arguments).stderr(Stdio::inherit()).output()?;
        let text = String::from_utf8(output.stdout)?;
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [seconds, cpu, peak] => Ok(Run { seconds, cpu, peak_kib: peak as i64 }),
            _ => Err(format!("{} failed", self.name).into()),
        }
    }
}

fn contenders(rxlane: &Path, parse_only: &Path) -> Vec<Contender> {
    let words = |program: &Path, rest: &[&str]| {
        [program.as_os_str().to_owned()].into_iter().chain(rest.iter().map(OsString::from)).collect()
    };
    let mut all = vec![
        Contender {
            name: "rxlane explain",
            command: words(rxlane, &["explain", "FILE", "--json"]),
            slice: false,
        },
        Contender {
            name: "rxlane, 1 worker",
            command: words(rxlane, &["explain", "FILE", "--json", "--workers", "1"]),
            slice: false,
        },
        Contender { name: "pcap-parser+etherparse", command: words(parse_only, &["FILE"]), slice: false },
    ];
    for (name, program) in [("tcpdump -n", "tcpdump"), ("tshark -n", "tshark")] {
        let path = std::env::var_os("PATH").unwrap_or_default();
        match std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()) {
            Some(file) => {
                all.push(Contender { name, command: words(&file, &["-n", "-r", "FILE"]), slice: true });
            }
            None => println!("{program} is not installed (make deps installs it): not compared"),
        }
    }
    all
}

/// Median and range, as text.
fn spread(values: impl Iterator<Item = f64>, digits: usize) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (median, least, most) = (values[values.len() / 2], values[0], values[values.len() - 1]);
    format!("{median:.digits$} [{least:.digits$}-{most:.digits$}]")
}

fn megabytes(file: &Path) -> Result<f64, Failure> {
    Ok(fs::metadata(file)?.len() as f64 / 1e6)
}

fn compare(
    name: &str,
    contenders: &[Contender],
    folder: &Path,
    size: u64,
    flows: u64,
    rounds: usize,
) -> Result<(), Failure> {
    let path = |what: &str| folder.join(format!("{name}-{what}.pcap"));
    let (whole, slice, empty) = (path("whole"), path("slice"), path("empty"));
    let frames = generate::generate(&whole, size * 1_000_000, flows)?;
    generate::generate(&slice, SLICE.min(size) * 1_000_000, flows)?;
    generate::generate(&empty, 0, 1)?;
    let (whole_mb, slice_mb) = (megabytes(&whole)?, megabytes(&slice)?);
    let kinds = if flows == 0 { "every frame a flow".to_owned() } else { format!("{flows} flows") };
    println!("\n{kinds}: {frames} frames, {whole_mb:.0} MB (tcpdump and tshark: {slice_mb:.0} MB)");
    println!("{:<24} {:>24} {:>22} {:>10} {:>12}", "", "MB/s", "rxlane is faster by", "CPU s/GB", "peak MiB");
    let mut runs: Vec<Vec<(f64, Run)>> = vec![Vec::new(); contenders.len()];
    // The round before the first warms the page cache and is thrown away.
    for round in 0..=rounds {
        for (contender, runs) in contenders.iter().zip(&mut runs) {
            let mut run = contender.run(if contender.slice { &slice } else { &whole })?;
            let mut size = whole_mb;
            if contender.slice {
                let start = contender.run(&empty)?;
                (run.seconds, run.cpu) = (run.seconds - start.seconds, run.cpu - start.cpu);
                size = slice_mb;
            }
            if round > 0 {
                runs.push((size / run.seconds, run));
            }
        }
    }
    for (contender, own) in contenders.iter().zip(&runs) {
        let speed = spread(own.iter().map(|(speed, _)| *speed), if contender.slice { 1 } else { 0 });
        let ratio = spread(runs[0].iter().zip(own).map(|((rxlane, _), (peer, _))| rxlane / peer), 2);
        let size = if contender.slice { slice_mb } else { whole_mb };
        let cpu = own.iter().map(|(_, run)| run.cpu).fold(f64::INFINITY, f64::min) / size * 1e3;
        let peak = own.iter().map(|(_, run)| run.peak_kib).max().unwrap_or(0) as f64 / 1024.0;
        println!("{:<24} {speed:>24} {ratio:>21}x {cpu:>10.2} {peak:>12.1}", contender.name);
    }
    for file in [whole, slice, empty] {
        fs::remove_file(file)?;
    }
    Ok(())
}

fn bench(arguments: &[OsString]) -> Result<(), Failure> {
    let [rxlane, parse_only, folder, numbers @ ..] = arguments else {
        return Err("usage: bench-explain RXLANE PARSE-ONLY FOLDER [MEGABYTES [ROUNDS]]".into());
    };
    let number = |at: usize, default: u64| match numbers.get(at) {
        Some(text) => text.to_str().and_then(|text| text.parse().ok()).ok_or("a number was expected"),
        None => Ok(default),
    };
    let (size, rounds) = (number(0, 200)?, number(1, 7)?.max(1) as usize);
    let folder = PathBuf::from(folder);
    fs::create_dir_all(&folder)?;
    let contenders = contenders(Path::new(rxlane), Path::new(parse_only));
    println!("median [least-most] of {rounds} rounds; rxlane explain uses every CPU, the others one");
    compare("flows", &contenders, &folder, size, 4096, rounds)?;
    compare("distinct", &contenders, &folder, size, 0, rounds)
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let result = match arguments.split_first() {
        Some((first, command)) if first == "--measure" => measure_child(command),
        _ => bench(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-explain: {error}");
            ExitCode::FAILURE
        }
    }
}
