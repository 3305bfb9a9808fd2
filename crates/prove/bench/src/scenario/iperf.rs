//! TCP from one end of a pair to the other, by `iperf3`.

use super::pair::{ADDRESSES, Pair};
use super::program::{Running, output};
use super::{Error, Tools};
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// Where it listens, and how long that may take: on an emulated machine that others load, many seconds.
const PORT: u16 = 5201;
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Payload, bit/s.
    pub bits_per_second: f64,
    /// Payload, bytes.
    pub bytes: f64,
}

/// Over so many connections at once, from the near end to the far, or back. `iperf3` takes whole seconds: what is asked for is
/// rounded up.
pub fn tcp(pair: &Pair, is_back: bool, flows: u16, tools: &Tools<'_>) -> Result<Transfer, Error> {
    let _server = Running::start(pair.far.command("iperf3").args(["-s", "-1"]))?;
    listening(pair, tools)?;
    let seconds = tools.seconds.as_secs_f64().ceil().to_string();
    let mut client = pair.near.command("iperf3");
    client.args(["-c", &ADDRESSES[1].to_string(), "-J", "-t", &seconds, "-P", &flows.to_string()]);
    client.args(["--connect-timeout", "10000"]);
    if is_back {
        client.arg("-R");
    }
    read(&output(&mut client, tools.seconds, tools.stop)?)
}

fn listening(pair: &Pair, tools: &Tools<'_>) -> Result<(), Error> {
    // State 0A is LISTEN (include/net/tcp_states.h).
    let port = format!(":{PORT:04X}");
    let listens = || {
        let files = ["tcp", "tcp6"].map(|file| format!("/proc/thread-self/net/{file}"));
        let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some("0A")
        })
    };
    let seconds = PATIENCE.as_secs();
    tools
        .wait_for(PATIENCE, || Ok(pair.far.inside(listens)?.then_some(())))?
        .ok_or_else(|| Error::Failed(format!("iperf3 -s does not listen on port {PORT} after {seconds} s")))
}

fn read(said: &[u8]) -> Result<Transfer, Error> {
    let answer: Value = serde_json::from_slice(said)
        .map_err(|error| Error::Failed(format!("what iperf3 -J says is no JSON: {error}")))?;
    if let Some(error) = answer["error"].as_str() {
        return Err(Error::Failed(format!("iperf3: {error}")));
    }
    let sum = &answer["end"]["sum_received"];
    let figure = |name: &str| {
        let figure = sum[name].as_f64().filter(|figure| *figure > 0.0);
        figure.ok_or_else(|| Error::Failed(format!("iperf3 reports no {name} of what was received")))
    };
    Ok(Transfer { bits_per_second: figure("bits_per_second")?, bytes: figure("bytes")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iperf3_says_is_read() {
        let good = br#"{"end": {"sum_received": {"bits_per_second": 8e9, "bytes": 1000000000}}}"#;
        assert_eq!(read(good).expect("figures"), Transfer { bits_per_second: 8e9, bytes: 1e9 });
        for (bad, expected) in [
            (&br#"{"error": "unable to connect"}"#[..], "iperf3: unable to connect"),
            (b"{}", "no bits_per_second"),
            (br#"{"end": {"sum_received": {"bits_per_second": 0}}}"#, "no bits_per_second"),
            (b"", "no JSON"),
        ] {
            let error = read(bad).expect_err("no figures").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
