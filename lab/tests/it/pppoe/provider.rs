//! The provider's end: `pppoe-server` of Debian in the namespace `isp`.

use super::tagged::Tagged;
use crate::limited;
use anyhow::{Context, Result};
use rxlane_lab::Guest;

/// Whom it knows.
pub const USER: &str = "subscriber";
pub const PASSWORD: &str = "secret word";

const OPTIONS: &str = "/etc/ppp/rxlane-provider";
const LOG: &str = "/tmp/provider";

/// What it demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    Pap,
    Chap,
    MsChapV2,
}

impl Login {
    const fn option(self) -> &'static str {
        match self {
            Login::Pap => "require-pap",
            Login::Chap => "require-chap",
            Login::MsChapV2 => "require-mschap-v2",
        }
    }
}

pub struct Provider<'a> {
    guest: &'a Guest,
    pid: Option<u32>,
    /// Its end of the line, as long as it serves.
    _line: Tagged<'a>,
}

/// What it said.
pub fn log(guest: &Guest) -> String {
    let read = |path: &str| String::from_utf8_lossy(&guest.read(path).unwrap_or_default()).into_owned();
    format!("{}{}", read(LOG), read("/tmp/provider.pppd"))
}

impl<'a> Provider<'a> {
    /// Serves on the line, whose tags are those of the encapsulation.
    pub fn start(guest: &'a Guest, tags: &str, login: Login) -> Result<Provider<'a>> {
        guest.sh("rm -rf /etc/ppp; mkdir -p /etc/ppp /var/run/ppp; rm -f /tmp/provider*")?;
        guest.write("/etc/ppp/options", b"")?;
        for file in ["pap-secrets", "chap-secrets"] {
            guest.write(&format!("/etc/ppp/{file}"), format!("{USER} * \"{PASSWORD}\" *\n").as_bytes())?;
        }
        let options = format!(
            "{}\nname provider\nlcp-echo-interval 2\nlcp-echo-failure 15\nms-dns 198.51.100.53\nms-dns 198.51.100.54\n\
             nodefaultroute\nnoproxyarp\nnobsdcomp\nnodeflate\n+ipv6\ndebug\nlogfile /tmp/provider.pppd\n",
            login.option()
        );
        guest.write(OPTIONS, options.as_bytes())?;
        let line = Tagged::over(guest, "isp", "line0", tags)?;
        let command = format!(
            "ip netns exec isp pppoe-server -F -C concentrator -S internet -N 4 -L 198.51.100.1 -R 198.51.100.10 -O {OPTIONS} \
             -I {}",
            line.device()
        );
        let words: Vec<&str> = command.split_whitespace().collect();
        Ok(Provider { guest, pid: Some(guest.start(&words, LOG)?), _line: line })
    }

    /// Ends it and its sessions.
    pub fn stop(mut self) -> Result<()> {
        self.end(libc::SIGTERM)
    }

    /// It dies, and its sessions with it, without a word.
    pub fn kill(mut self) -> Result<()> {
        // The sessions are processes of their own. Others may end while they are looked at.
        self.guest.sh("ip netns pids isp | while read pid; do \
             [ \"$(cat /proc/$pid/comm 2>/dev/null)\" != pppd ] || kill -9 $pid || :; done")?;
        self.end(libc::SIGKILL)
    }

    fn end(&mut self, signal: i32) -> Result<()> {
        let Some(pid) = self.pid.take() else { return Ok(()) };
        self.guest.signal(pid, signal, true)?;
        // rp-pppoe's program can wait for itself in its handler of SIGTERM (a lock of syslog(3)): SIGKILL after a while.
        let ended = self.guest.sh(&limited(
            "n=0; until [ -z \"$(ip netns pids isp)\" ]; do \
             [ $n -lt 100 ] && signal=TERM || signal=KILL; \
             ip netns pids isp | xargs -r kill -$signal 2>/dev/null; n=$((n + 1)); sleep 0.1; done",
        ));
        ended.map(drop).with_context(|| format!("{}{}", remaining(self.guest), log(self.guest)))
    }
}

/// What the processes in the namespace `isp` do, and what the kernel said last.
fn remaining(guest: &Guest) -> String {
    let script = "for p in $(ip netns pids isp); do cd /proc/$p || continue; tr '\\0' ' ' <cmdline; echo; \
                  grep -E 'State|PPid|Sig|Shd' status || :; cat wchan; echo; cat stack || :; done 2>&1; dmesg | tail -n 20";
    guest.sh(script).unwrap_or_else(|error| format!("{error:#}"))
}

impl Drop for Provider<'_> {
    fn drop(&mut self) {
        let _ = self.end(libc::SIGTERM);
    }
}
