//! PPPoE sessions of the kernel, without the stations' addresses.

use super::Error;
use super::bundle::{Bundle, Output};
use super::files::{bytes, is_missing, of_this_namespace, text};
use crate::redact;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

/// Where `drivers/net/ppp/pppoe.c` lists them: id (as it stands on the wire, printed as a number of this machine's
/// byte order), station, interface.
fn path() -> PathBuf {
    of_this_namespace("pppoe")
}

/// Writes the list; nothing where the kernel has no such file.
pub(super) fn put(bundle: &mut Bundle<'_, impl Write>) -> Result<(), Error> {
    if is_missing(&path()) { Ok(()) } else { bundle.put("cat /proc/net/pppoe", &read()) }
}

fn read() -> Output {
    Ok(without_stations(&text(&path())?))
}

/// The interfaces that sessions use.
pub(super) fn interfaces() -> Vec<Vec<u8>> {
    let list = bytes(&path()).unwrap_or_default();
    let device =
        |line: &[u8]| line.split(u8::is_ascii_whitespace).rfind(|word| !word.is_empty()).map(<[u8]>::to_vec);
    let mut devices: Vec<Vec<u8>> = list.split(|&c| c == b'\n').skip(1).filter_map(device).collect();
    devices.sort();
    devices.dedup();
    devices
}

fn without_stations(list: &str) -> String {
    let mut out = String::new();
    for line in list.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [id, station, device] if station.contains(':') => {
                let _ = writeln!(out, "{id} {:<17} {device:>8}", redact::MAC);
            }
            ["Id", ..] => {
                let _ = writeln!(out, "{line}");
            }
            // Not a line of this list as it is known: nothing of it can be distinguished from an address.
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the format of pppoe_seq_show: "%08X %pM %8s".
    const LIST: &str =
        "Id       Address              Device\n00000D00 02:00:5e:00:53:01     eth0\nodd line 02:00\n";

    #[test]
    fn stations_are_left_out() {
        assert_eq!(
            without_stations(LIST),
            "Id       Address              Device\n00000D00 (mac)                 eth0\n"
        );
    }
}
