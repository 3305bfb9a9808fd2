//! Sessions: clients of several kinds, each with `rxlane pppoe serve`.

use super::super::pair::{ADDRESSES, Pair, WAN};
use super::super::program::Running;
use super::super::report::{LeftOut, Levels};
use super::super::{Error, Tools};
use super::{KERNEL, USER};
use crate::installed::missing;
use crate::namespace::{Folder, Namespace};
use rustix::net::{AddressFamily, SocketType, socket};
use std::fs::{self, File};
use std::time::Duration;

/// The interface that `pppd` makes, the first of its namespace.
const SESSION: &str = "ppp0";
const PATIENCE: Duration = Duration::from_secs(40);
/// Lines of its words that an error quotes.
const QUOTED: usize = 5;
/// Folders of plugins, by version of `pppd`.
const PLUGINS: &str = "/usr/lib/pppd";
const PLUGIN: &str = "rp-pppoe.so";
/// Runs a program with files of its own where the machine's `pppd` has options, scripts and process numbers: what is measured neither
/// depends on them nor changes them. `ip netns exec` has made a mount namespace for it. First the file for its words.
const APART: &str = "exec >\"$1\" 2>&1; shift; mount -t tmpfs tmpfs /etc/ppp && : >/etc/ppp/options && \
                     mount -t tmpfs tmpfs /run && mkdir -p /run/ppp /run/pppd /run/lock && exec \"$@\"";

/// A session over the pair: the client at the near end has the first address, the concentrator the second.
pub struct Session {
    /// Ended first.
    _client: Running,
    serve: Running,
    _folder: Folder,
}

impl Session {
    pub fn open(pair: &Pair, path: &str, tools: &Tools<'_>) -> Result<Session, Error> {
        let folder = Folder::new()?;
        let [client, concentrator] = ADDRESSES.map(|address| address.to_string());
        let start = |end: &Namespace, words: &[&str], ready: &'static str| {
            let mut command = end.command(&tools.rxlane);
            command
                .arg("pppoe")
                .args(words)
                .args(["--ipv6=false", "--state"])
                .arg(folder.path().join(end.name()));
            Running::ready(&mut command, ready, tools.stop)
        };
        let pool = format!("{client}-{client}");
        let serve = ["serve", WAN, "--anybody", "--local", &concentrator, "--pool", &pool];
        let serve = start(&pair.far, &serve, "serves")?;
        let client = match path {
            KERNEL | USER => pppd(pair, path, &folder, tools)?,
            _ => start(&pair.near, &["connect", WAN, "--datapath", path], ": open")?,
        };
        Ok(Session { _client: client, serve, _folder: folder })
    }

    pub fn client_memory(&self, near: &Namespace) -> Option<f64> {
        near.pids().into_iter().map(memory).sum()
    }

    /// Of the concentrator, bytes.
    pub fn serve_memory(&self) -> Option<f64> {
        memory(self.serve.pid())
    }
}

fn words(path: &str) -> Vec<String> {
    let usual = "nodetach noauth noipdefault nodefaultroute nodeflate nobsdcomp noccp mtu 1492 mru 1492";
    let mut words = vec!["pppd".to_owned()];
    if path == KERNEL {
        words.extend(["plugin", PLUGIN, WAN].map(str::to_owned));
    }
    words.extend(usual.split(' ').map(str::to_owned));
    if path == USER {
        // What rp-pppoe's own script pppoe-connect has.
        let user = "default-asyncmap noaccomp nopcomp novj novjccomp pty";
        words.extend(user.split(' ').map(str::to_owned));
        words.push(format!("pppoe -I {WAN} -T 80"));
    }
    words
}

fn pppd(pair: &Pair, path: &str, folder: &Folder, tools: &Tools<'_>) -> Result<Running, Error> {
    let said = folder.path().join("pppd");
    let mut command = pair.near.command("sh");
    command.args(["-c", APART, "sh"]).arg(&said).args(words(path));
    let pppd = Running::start(&mut command)?;
    let failed = || {
        let text = fs::read_to_string(&said).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.get(lines.len().saturating_sub(QUOTED)..).unwrap_or_default();
        Error::Failed(format!("pppd has no session: {}", last.join("; ")))
    };
    let has_session = || match fs::read_to_string(&said) {
        Ok(text) if text.contains("Exit.") => Err(failed()),
        _ => Ok(has_address(&pair.near).then_some(())),
    };
    tools.wait_for(PATIENCE, has_session)?.ok_or_else(failed)?;
    Ok(pppd)
}

fn has_address(near: &Namespace) -> bool {
    let addresses = near.run("ip", &["-4", "-o", "addr", "show", "dev", SESSION]);
    addresses.is_ok_and(|addresses| addresses.contains(&format!("inet {} ", ADDRESSES[0])))
}

pub fn left_out() -> Vec<LeftOut> {
    let left =
        |path: &str, why| LeftOut { levels: Levels::from([("path".to_owned(), path.to_owned())]), why };
    let kernel = lacks_kernel_pppoe().map(|why| left(KERNEL, why));
    let user = lacks_pppd().or_else(lacks_rp_pppoe).map(|why| left(USER, why));
    kernel.into_iter().chain(user).collect()
}

fn lacks_pppd() -> Option<String> {
    if let Some(why) = ["pppd", "sh", "mount"].into_iter().find_map(missing) {
        return Some(why);
    }
    let error = File::open("/dev/ppp").err()?;
    Some(format!("no PPP in the kernel: /dev/ppp: {error} (modprobe ppp_generic)"))
}

fn lacks_kernel_pppoe() -> Option<String> {
    if let Some(why) = lacks_pppd() {
        return Some(why);
    }
    if let Err(error) = socket(AddressFamily::PPPOX, SocketType::STREAM, None) {
        return Some(format!("no PPPoE in the kernel: {error} (modprobe pppoe)"));
    }
    let mut folders = fs::read_dir(PLUGINS).into_iter().flatten().flatten();
    let has_plugin = folders.any(|folder| folder.path().join(PLUGIN).exists());
    (!has_plugin).then(|| format!("pppd has no plugin {PLUGIN} below {PLUGINS}"))
}

fn lacks_rp_pppoe() -> Option<String> {
    missing("pppoe")
}

/// What a person types at the client's end; `None`: nothing is to be set up.
pub fn steps(path: &str) -> Option<String> {
    let of_pppd = |needs: &str| {
        let quoted = |word: String| if word.contains(' ') { format!("'{word}'") } else { word };
        let command = words(path).into_iter().map(quoted).collect::<Vec<_>>().join(" ");
        Some(format!("{needs}, 1 command: {command}"))
    };
    match path {
        "simple" | "batch" => Some(format!("1 command: rxlane pppoe connect {WAN} --datapath {path}")),
        KERNEL => of_pppd("package ppp, kernel modules ppp_generic and pppoe"),
        USER => of_pppd("packages ppp and pppoe, kernel modules ppp_generic and ppp_async"),
        _ => None,
    }
}

fn memory(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_line_that_a_shell_takes() {
        assert_eq!(steps("bare"), None);
        let user = steps(USER).expect("steps");
        assert!(user.ends_with("novjccomp pty 'pppoe -I wan0 -T 80'"), "{user}");
        let kernel = steps(KERNEL).expect("steps");
        assert!(kernel.contains("pppd plugin rp-pppoe.so wan0 nodetach"), "{kernel}");
    }
}
