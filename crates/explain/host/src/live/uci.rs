//! OpenWrt's settings: the lines of `/etc/config` that matter, and no others.

use super::bundle::Output;
use super::files::{is_missing, text};
use crate::text::uci::{KEPT, section, unquoted};
use std::path::{Path, PathBuf};

/// A command for each file that is there, with what is kept of it. A machine without uci has none.
pub(super) fn read() -> Vec<(String, Output)> {
    let mut configs = KEPT.map(|[config, ..]| config).to_vec();
    configs.dedup();
    let files = configs.into_iter().map(|config| (config, Path::new("/etc/config").join(config)));
    files.filter(|(_, path)| !is_missing(path)).map(|(config, path)| of(config, path)).collect()
}

fn of(config: &str, path: PathBuf) -> (String, Output) {
    (super::files::cat(&path), text(&path).map(|file| kept(config, &file)))
}

fn kept(config: &str, file: &str) -> String {
    let mut out = String::new();
    let mut kind = None;
    for line in file.lines().map(str::trim) {
        if let Some(next) = section(line) {
            kind = Some(next);
            if KEPT.iter().any(|[of, known, _]| [*of, *known] == [config, next]) {
                out.push_str(&format!("config {next}\n"));
            }
        } else if let (Some(kind), Some(rest)) = (kind, line.strip_prefix("option "))
            && let Some((option, value)) = rest.trim().split_once(char::is_whitespace)
            && KEPT.contains(&[config, kind, unquoted(option)])
        {
            out.push_str(&format!("\toption {} '{}'\n", unquoted(option), unquoted(value)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let file = "\nconfig defaults\n\toption input 'REJECT'\n\toption flow_offloading \"1\"\n\n\
                    config zone\n\toption name 'private'\n\toption flow_offloading '0'\n";
        assert_eq!(kept("firewall", file), "config defaults\n\toption flow_offloading '1'\n");
        assert_eq!(kept("network", file), "");
    }
}
