//! Provider and subscriber: `pppoe-server`, which serves in user mode, and `pppd` with the kernel's PPPoE.

use super::lines::Line;
use crate::Guest;
use anyhow::{Context, Result};

/// How the subscriber proves who he is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Login {
    Pap,
    Chap,
}

impl Login {
    fn option(self) -> &'static str {
        match self {
            Login::Pap => "require-pap",
            Login::Chap => "require-chap",
        }
    }
}

const TERM: i32 = 15;
/// Where the provider's options are.
const OPTIONS: &str = "/etc/ppp/rxlane-server";

/// Secrets, and nothing of the machine's own configuration.
pub(super) fn set_up(guest: &Guest) -> Result<()> {
    guest.sh("modprobe -a pppoe ppp_async; [ -c /dev/ppp ] || mknod /dev/ppp c 108 0; rm -rf /etc/ppp")?;
    guest.write("/etc/ppp/options", b"")?;
    guest.write("/etc/ppp/pap-secrets", b"subscriber * secret *\n")?;
    guest.write("/etc/ppp/chap-secrets", b"subscriber provider secret *\n")
}

/// A program in the guest that ends with this, so that one whose exchange failed does not speak in the next.
struct Program<'a> {
    guest: &'a Guest,
    pid: Option<u32>,
}

impl<'a> Program<'a> {
    fn start(guest: &'a Guest, command: &[&str], output: &str) -> Result<Program<'a>> {
        Ok(Program { guest, pid: Some(guest.start(command, output)?) })
    }

    /// Asks it to end and waits until it has.
    fn end(&mut self) -> Result<()> {
        match self.pid.take() {
            Some(pid) => self.guest.signal(pid, TERM, true).map(drop),
            None => Ok(()),
        }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("lab: {error:#}");
        }
    }
}

/// The provider's end.
pub(super) struct Server<'a>(Program<'a>);

impl<'a> Server<'a> {
    /// Serves on the lines; the first subscriber gets 198.51.100.10.
    pub(super) fn start(guest: &'a Guest, lines: &[Line], login: Login) -> Result<Server<'a>> {
        let options = format!(
            "{}\nname provider\nlcp-echo-interval 2\nlcp-echo-failure 5\nms-dns 198.51.100.53\n\
             ms-dns 198.51.100.54\nnodefaultroute\nnoproxyarp\n+ipv6\nipv6 ::1,::2\n",
            login.option()
        );
        guest.write(OPTIONS, options.as_bytes())?;
        let far: Vec<String> = lines.iter().map(|line| line.far()).collect();
        let mut command: Vec<&str> =
            "ip netns exec far pppoe-server -F -C concentrator -S internet -N 4 -L 198.51.100.1 -R 198.51.100.10 -O"
                .split(' ')
                .collect();
        command.push(OPTIONS);
        for device in &far {
            command.extend(["-I", device]);
        }
        Program::start(guest, &command, "/tmp/server").map(Server)
    }

    pub(super) fn stop(mut self) -> Result<()> {
        self.0.end()
    }
}

/// The subscriber's end: interface `pppUNIT`.
pub(super) struct Subscriber<'a> {
    guest: &'a Guest,
    unit: u32,
    program: Program<'a>,
}

impl<'a> Subscriber<'a> {
    pub(super) fn start(guest: &'a Guest, line: Line, unit: u32, password: &str) -> Result<Subscriber<'a>> {
        let near = line.near();
        let (number, log) = (unit.to_string(), log(unit));
        let mtu = guest.sh(&format!("cat /sys/class/net/{near}/mtu"))?;
        // Header of PPPoE and PPP protocol: eight bytes.
        let mtu = (mtu.trim().parse::<u32>().context("MTU")?.min(1508) - 8).to_string();
        let command = [
            &["pppd", "plugin", "rp-pppoe.so", &near, "rp_pppoe_service", "internet", "unit", &number][..],
            &["nodetach", "debug", "noauth", "user", "subscriber", "password", password, "usepeerdns"],
            &["noipdefault", "nodefaultroute", "+ipv6", "ipv6", "::2,::1", "mtu", &mtu, "mru", &mtu],
            &["lcp-echo-interval", "2", "lcp-echo-failure", "5"],
        ]
        .concat();
        Ok(Subscriber { guest, unit, program: Program::start(guest, &command, &log)? })
    }

    /// Waits until both ends have addresses of both versions, and adds global ones for IPv6.
    pub(super) fn await_addresses(&self) -> Result<()> {
        let unit = self.unit;
        let ready = format!(
            "until ip -4 addr show dev ppp{unit} | grep -q peer && \
             ip -6 addr show dev ppp{unit} | grep -q fe80; do sleep 0.1; done"
        );
        let script = format!(
            "timeout 50 sh -c '{ready}'; timeout 50 ip netns exec far sh -c '{ready}' 2>/dev/null\n\
             ip -6 addr add 2001:db8:{unit}::2/64 dev ppp{unit} nodad\n\
             ip -n far -6 addr add 2001:db8:{unit}::1/64 dev ppp{unit} nodad"
        );
        self.guest.sh(&script).with_context(|| self.log()).map(drop)
    }

    /// Waits until the provider has refused it, which ends the program.
    pub(super) fn await_refusal(&mut self) -> Result<()> {
        let log = log(self.unit);
        self.guest
            .sh(&format!(
                "timeout 50 sh -c 'until grep -q \"authentication failed\" {log}; do sleep 0.1; done'"
            ))
            .with_context(|| self.log())?;
        self.program.end()
    }

    /// LCP ends the link, PADT the session.
    pub(super) fn hang_up(mut self) -> Result<()> {
        self.program.end()
    }

    fn log(&self) -> String {
        let read = |path: &str| self.guest.read(path).unwrap_or_default();
        let (near, far) = (read(&log(self.unit)), read("/tmp/server"));
        format!("pppd: {}\npppoe-server: {}", String::from_utf8_lossy(&near), String::from_utf8_lossy(&far))
    }
}

fn log(unit: u32) -> String {
    format!("/tmp/subscriber{unit}")
}
