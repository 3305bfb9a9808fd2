//! TCP from one end of a pair to the other, by `iperf3`.

use super::pair::{ADDRESSES, Pair};
use super::program::{Running, output};
use super::{Error, Tools};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Payload, bit/s.
    pub bits_per_second: f64,
    /// Payload, bytes.
    pub bytes: f64,
}

/// Over so many connections at once, from the near end to the far, or back. `iperf3` takes whole seconds: what is requested is
/// rounded up.
pub fn tcp(pair: &Pair, is_back: bool, flows: u16, tools: &Tools<'_>) -> Result<Transfer, Error> {
    // Written at once, so that whoever waits for it sees that it listens.
    let mut server = pair.far.command("iperf3");
    let _server = Running::ready(server.args(["-s", "-1", "--forceflush"]), "Server listening", tools.stop)?;
    let seconds = tools.seconds.as_secs_f64().ceil().to_string();
    let mut client = pair.near.command("iperf3");
    client.args(["-c", &ADDRESSES[1].to_string(), "-J", "-t", &seconds, "-P", &flows.to_string()]);
    client.args(["--connect-timeout", "10000"]);
    if is_back {
        client.arg("-R");
    }
    read(&output(&mut client, tools.seconds, tools.stop)?.stdout)
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
