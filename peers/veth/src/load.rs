//! Load between two namespaces by `ping` and `iperf3`.

use anyhow::{Context, bail};
use rxlane_testkit::netns::Namespace;
use serde_json::Value;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// Round trips that are averaged, and seconds between them.
const PINGS: &str = "300";
const INTERVAL: &str = "0.002";

/// Mean round trip to an address, microseconds.
pub fn round_trip(from: &Namespace, to: &str) -> anyhow::Result<f64> {
    let ping = |count: &str| from.run("ping", &["-q", "-c", count, "-i", INTERVAL, to]).context("ping");
    // Neighbours have to be resolved first.
    ping("20")?;
    let said = ping(PINGS)?;
    // rtt min/avg/max/mdev = 0.022/0.026/0.120/0.009 ms
    let times =
        said.lines().find_map(|line| line.strip_prefix("rtt ")?.split_once("= ")).context("no time")?;
    let mean = times.1.split('/').nth(1).context("no mean")?;
    Ok(mean.parse::<f64>()? * 1e3)
}

/// What `iperf3` says of a transfer from the first namespace to an address of the second.
pub fn iperf(ends: &[Namespace; 2], to: &str, more: &[&str], seconds: u32) -> anyhow::Result<Value> {
    let mut server = ends[1]
        .command("iperf3")
        .args(["-s", "-1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("iperf3")?;
    sleep(Duration::from_millis(250));
    let mut client = ends[0].command("iperf3");
    client.args(["-c", to, "-J", "-t", &seconds.to_string(), "--connect-timeout", "3000"]).args(more);
    let output = client.output();
    let _ = server.kill();
    let _ = server.wait();
    let answer: Value =
        serde_json::from_slice(&output.context("iperf3")?.stdout).context("what iperf3 says")?;
    if let Some(error) = answer["error"].as_str() {
        bail!("iperf3: {error}");
    }
    Ok(answer)
}

/// Bit/s of TCP payload that arrived in a transfer, and its bytes.
pub fn arrived(answer: &Value) -> anyhow::Result<(f64, f64)> {
    let sum = &answer["end"]["sum_received"];
    let figure =
        |name: &str| sum[name].as_f64().with_context(|| format!("iperf3 reports no {name}: {answer}"));
    Ok((figure("bits_per_second")?, figure("bytes")?))
}
