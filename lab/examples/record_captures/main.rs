//! Records the project's own test captures: stock peers on emulated adapters talk to each other in a guest, and what
//! passes the cable between the adapters is written down.
//!
//! ```console
//! $ cargo run -p rxlane-lab --example record_captures -- captures/ [NAME…]
//! ```
//!
//! Each `NAME.pcap` gets a `NAME.pcap.expected.json` next to it, in which tshark says what is in it, and `VERSIONS` says
//! which programs talked. Ids, ports, cookies, challenges and times differ from recording to recording
//! (`captures/README.md`).

#![allow(clippy::print_stdout)]

use anyhow::{Context, Result, ensure};
use rxlane_lab::Lab;
use rxlane_lab::recording::stage::{self, Stage};
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().context("usage: record_captures FOLDER [NAME…]")?);
    let requested: Vec<String> = arguments.collect();
    for name in &requested {
        ensure!(stage::names().any(|known| known == name), "there is no capture {name}");
    }
    let tshark = testkit::program("tshark").map_err(|missing| anyhow::anyhow!("{missing}"))?;
    let lab = Lab::prepare().map_err(|missing| anyhow::anyhow!("{missing}"))?;
    fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    stage::staged(&lab, |stage| {
        let mut failed = Vec::new();
        for name in
            stage::names().filter(|name| requested.is_empty() || requested.iter().any(|it| it == name))
        {
            // The others are worth having all the same.
            if let Err(error) = record(stage, name, &folder, &tshark) {
                eprintln!("{name}: {error:#}");
                failed.push(name);
            }
        }
        ensure!(failed.is_empty(), "not recorded: {}", failed.join(", "));
        if requested.is_empty() {
            fs::write(folder.join("VERSIONS"), stage.versions(&tshark)?).context("VERSIONS")?;
        }
        Ok(())
    })
}

/// A capture takes the place of the former one once it is whole.
fn record(stage: &Stage<'_>, name: &str, folder: &Path, tshark: &Path) -> Result<()> {
    let own = tempfile::tempdir_in(folder).with_context(|| format!("{}", folder.display()))?;
    let file = format!("{name}.pcap");
    let expected = stage.record(name, &own.path().join(&file), tshark)?;
    let text = serde_json::to_string_pretty(&expected)? + "\n";
    fs::write(folder.join(format!("{file}.expected.json")), text)?;
    fs::rename(own.path().join(&file), folder.join(&file))?;
    println!("{}: {} frames", folder.join(&file).display(), expected["frames"]);
    Ok(())
}
