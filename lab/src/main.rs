//! The program of the lab: on the machine it prepares and tries, in the guest it is the agent.

mod server;

use anyhow::{Context, Result, bail, ensure};
use rxlane_lab::session::Session;
use rxlane_lab::transfer::{self, End};
use rxlane_lab::{First, Lab, Model, Nic, Series, Spec, agent, packages::Cache};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use wire::emit::Encapsulation;

const USAGE: &str = "usage: rxlane-lab prepare                        fetch tools and the kernel of most experiments (others when they are booted)
       rxlane-lab run [5.10|6.1|6.12|7] [igb|e1000e] [systemd] COMMAND…
                                                 boot a guest with two adapters, wan and lan, run a command in it
       rxlane-lab agent                          in a guest: execute what the harness asks
       rxlane-lab session IFACE ID MAC           in a guest: a PPPoE session without negotiation, until killed
       rxlane-lab transfer BYTES SIZE,… NETNS ADDRESS,… NETNS ADDRESS,…
                                                 in a guest: checked TCP and UDP between two network namespaces";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["version"] => say(env!("CARGO_PKG_VERSION")).map(|()| ExitCode::SUCCESS),
        ["prepare"] => prepare(),
        ["agent"] => server::serve().map(|()| ExitCode::SUCCESS),
        ["session", interface, number, peer] => session(interface, number, peer),
        ["transfer", bytes, sizes, one, addresses, other, far] => {
            transferred(bytes, sizes, (one, addresses), (other, far))
        }
        ["run", words @ ..] if !words.is_empty() => run(words),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("rxlane-lab: {error:#}");
        ExitCode::from(3)
    })
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("standard output")
}

fn lab() -> Result<Lab> {
    Lab::prepare().map_err(|missing| anyhow::anyhow!("{missing}"))
}

fn prepare() -> Result<ExitCode> {
    lab()?;
    let cache = Cache::place();
    for kernel in Series::ALL.into_iter().filter_map(|series| cache.kernel(series)) {
        say(&format!("Linux {}", kernel.release))?;
    }
    say(&format!("in {}", cache.root().display()))?;
    Ok(ExitCode::SUCCESS)
}

fn session(interface: &str, number: &str, peer: &str) -> Result<ExitCode> {
    let encapsulation: Encapsulation = format!("pppoe:{number}@{peer}").parse()?;
    let pppoe = encapsulation.pppoe().and_then(|pppoe| pppoe.session.zip(pppoe.peer));
    let (number, peer) = pppoe.context("session id and MAC address")?;
    let session = Session::new(interface, number, peer)?;
    say(&session.interface())?;
    loop {
        std::thread::park();
    }
}

/// For each pair of addresses, one of each end, in their order.
fn transferred(bytes: &str, sizes: &str, one: (&str, &str), other: (&str, &str)) -> Result<ExitCode> {
    let bytes = bytes.parse().with_context(|| format!("{bytes}: no number of bytes"))?;
    let sizes = sizes.split(',').map(|size| size.parse().with_context(|| format!("{size}: no size")));
    let sizes = sizes.collect::<Result<Vec<usize>>>()?;
    let (near, far) = (End::listed(one.0, one.1)?, End::listed(other.0, other.1)?);
    ensure!(near.len() == far.len(), "one end has {} addresses, the other {}", near.len(), far.len());
    for (near, far) in near.iter().zip(&far) {
        transfer::stream(near, far, bytes).with_context(|| format!("TCP, {near} and {far}"))?;
        transfer::datagrams(near, far, &sizes).with_context(|| format!("UDP, {near} and {far}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run(mut words: &[&str]) -> Result<ExitCode> {
    let (mut kernel, mut model, mut process_1) = (Series::V6_12, Model::Igb, First::Agent);
    while let [first, rest @ ..] = words {
        match *first {
            "igb" => model = Model::Igb,
            "e1000e" => model = Model::E1000e,
            "systemd" => process_1 = First::Systemd,
            name => match Series::named(name) {
                Some(series) => kernel = series,
                None => break,
            },
        }
        words = rest;
    }
    if words.is_empty() {
        bail!("no command; {USAGE}");
    }
    let nics = vec![Nic::new("wan", model), Nic::new("lan", model)];
    let guest = lab()?.boot(&Spec { nics, first: process_1, ..Spec::new(kernel) })?;
    eprintln!("QEMU is process {}", guest.pid());
    let output = guest.run_with(words, &[], agent::TIMEOUT.max(Duration::from_secs(600)))?;
    std::io::stdout().write_all(&output.stdout)?;
    std::io::stderr().write_all(&output.stderr)?;
    Ok(ExitCode::from(u8::try_from(output.status).unwrap_or(1)))
}
