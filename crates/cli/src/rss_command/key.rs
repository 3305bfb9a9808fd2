//! `rxlane rss key`.

use super::key_name;
use crate::arguments::device;
use crate::output::{CommandResult, Outcome, Output};
use anyhow::bail;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rss::HashKey;
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane rss key random --bytes 52
  rxlane rss key symmetric
  rxlane rss key 6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa

The key is the first line, so that ethtool -X eth0 hkey $(rxlane rss key symmetric | head -1) sets it.")]
pub struct KeyArguments {
    /// microsoft, symmetric (6d:5a repeated), random, or a key to check: colon form or hexadecimal digits
    key: String,

    /// Bytes of a symmetric or random key [default: 40]
    #[arg(long, alias = "octets", value_name = "N")]
    bytes: Option<usize>,

    /// Seed of a random key; without one the operating system's random numbers are used
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Print JSON (schema rxlane.rss-key/1)
    #[arg(long)]
    json: bool,
}

impl KeyArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let key = self.key()?;
        let covered = key.covered();
        let symmetry = key.symmetry();
        if self.json {
            let value = json!({
                "schema": "rxlane.rss-key/1",
                "key": key.to_string(),
                "name": key_name(&key),
                "octets": key.bytes().len(),
                "input_octets": covered,
                "input_bits": covered * 8,
                "symmetric": {"ipv4": symmetry.ipv4, "ipv6": symmetry.ipv6},
            });
            out.json(&value)?;
            return Ok(Outcome::Success);
        }
        writeln!(out, "{key}")?;
        if let Some(name) = key_name(&key) {
            writeln!(out, "name       {name}")?;
        }
        writeln!(out, "length     {} bytes", key.bytes().len())?;
        writeln!(out, "covers     inputs of {} bytes ({} bits): {}", covered, covered * 8, reach(covered))?;
        let both = match (symmetry.ipv4, symmetry.ipv6) {
            (true, true) => "yes: both directions of a connection get the same hash",
            (true, false) => "for IPv4 only",
            (false, true) => "for IPv6 only",
            (false, false) if covered < 12 => "unknown: the key covers no addresses with ports",
            (false, false) => "no: the two directions of a connection get different hashes",
        };
        writeln!(out, "symmetric  {both}")?;
        Ok(Outcome::Success)
    }

    fn key(&self) -> anyhow::Result<HashKey> {
        let bytes = self.bytes.unwrap_or(HashKey::USUAL_LENGTH);
        if self.seed.is_some() && self.key != "random" {
            bail!("--seed belongs to a random key");
        }
        match (self.key.as_str(), self.seed) {
            ("random", Some(seed)) => {
                Ok(HashKey::random(bytes, &mut Xoshiro256PlusPlus::seed_from_u64(seed))?)
            }
            ("random", None) => {
                let mut seed = [0; 32];
                File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut seed))?;
                Ok(HashKey::random(bytes, &mut Xoshiro256PlusPlus::from_seed(seed))?)
            }
            ("symmetric", _) => Ok(HashKey::symmetric(bytes)?),
            (key, _) => {
                if self.bytes.is_some() {
                    bail!("--bytes belongs to a symmetric or random key; this one has a length of its own");
                }
                Ok(device::key(key)?)
            }
        }
    }
}

/// What of the usual inputs a key covers.
fn reach(covered: usize) -> &'static str {
    match covered {
        36.. => "addresses and ports of IPv4 and IPv6",
        32.. => "addresses and ports of IPv4, addresses of IPv6",
        12.. => "addresses and ports of IPv4, nothing of IPv6",
        8.. => "addresses of IPv4 alone",
        _ => "not even the addresses of IPv4",
    }
}
