//! The subscriber's end: Debian's `pppd`, with the kernel's PPPoE or with the program `pppoe` of rp-pppoe.

use super::await_lines;
use super::provider::USER;
use rxlane_lab::Guest;

/// How it carries PPP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `rp-pppoe.so` and the kernel's PPPoE.
    Kernel,
    /// `pppoe` behind a pseudo-terminal.
    User,
}

const LOG: &str = "/tmp/subscriber";

pub struct Subscriber<'a> {
    guest: &'a Guest,
    pid: Option<u32>,
}

impl<'a> Subscriber<'a> {
    /// Connects on a device in the namespace `home`.
    pub fn connect(
        guest: &'a Guest,
        mode: Mode,
        device: &str,
        password: &str,
        more: &[&str],
    ) -> Subscriber<'a> {
        guest.sh("rm -rf /etc/ppp; mkdir -p /etc/ppp /var/run/ppp; rm -f /tmp/subscriber*").expect("clean");
        guest.write("/etc/ppp/options", b"").expect("written");
        let pty = format!("pppoe -I {device} -T 60 -S internet");
        let line: Vec<&str> = match mode {
            Mode::Kernel => vec!["plugin", "rp-pppoe.so", device, "rp_pppoe_service", "internet"],
            Mode::User => vec!["pty", &pty, "mtu", "1492", "mru", "1492"],
        };
        let fixed = ["ip", "netns", "exec", "home", "pppd"];
        let login = ["nodetach", "debug", "noauth", "noipdefault", "nodefaultroute", "usepeerdns", "+ipv6"];
        let echoes = ["lcp-echo-interval", "2", "lcp-echo-failure", "5", "user", USER, "password", password];
        let pid = guest.start(&[&fixed[..], &line, &login, &echoes, more].concat(), LOG).expect("it starts");
        Subscriber { guest, pid: Some(pid) }
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.guest.read(LOG).unwrap_or_default()).into_owned()
    }

    pub fn await_said(&self, text: &str) {
        self.await_times(text, 1);
    }

    /// Waits until so many of its lines have the text.
    pub fn await_times(&self, text: &str, times: u32) {
        if await_lines(self.guest, LOG, text, times).is_err() {
            panic!("not `{text}` {times} times: {}", self.log());
        }
    }

    /// Waits until both protocols are up.
    pub fn await_addresses(&self) {
        self.await_said("local  IP address");
        self.await_said("remote LL address");
    }

    pub fn hang_up(mut self) {
        self.end();
    }

    /// It dies without a word.
    pub fn kill(mut self) {
        if let Some(pid) = self.pid.take() {
            self.guest.signal(pid, libc::SIGKILL, true).expect("dead");
        }
    }

    fn end(&mut self) {
        if let Some(pid) = self.pid.take() {
            let _ = self.guest.signal(pid, libc::SIGTERM, true);
        }
    }
}

impl Drop for Subscriber<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
