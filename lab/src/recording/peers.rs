//! Provider and subscriber: `pppoe-server`, which serves in user mode, and `pppd` with the kernel's PPPoE.

use crate::lines::Line;
use anyhow::{Context, Result};
use rxlane_lab::Guest;

/// How the subscriber proves who he is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
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
pub(crate) fn set_up(guest: &Guest) -> Result<()> {
    guest.sh("modprobe -a pppoe ppp_async; [ -c /dev/ppp ] || mknod /dev/ppp c 108 0; rm -rf /etc/ppp")?;
    guest.write("/etc/ppp/options", b"")?;
    guest.write("/etc/ppp/pap-secrets", b"subscriber * secret *\n")?;
    guest.write("/etc/ppp/chap-secrets", b"subscriber provider secret *\n")
}

/// The provider's end.
pub(crate) struct Server<'a> {
    guest: &'a Guest,
    pid: u32,
}

impl<'a> Server<'a> {
    /// Serves on the lines; the first subscriber gets 198.51.100.10.
    pub(crate) fn start(guest: &'a Guest, lines: &[Line], login: Login) -> Result<Server<'a>> {
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
        let pid = guest.start(&command, "/tmp/server")?;
        Ok(Server { guest, pid })
    }

    pub(crate) fn stop(self) -> Result<()> {
        self.guest.signal(self.pid, TERM, true)?;
        Ok(())
    }
}

/// The subscriber's end: interface `pppUNIT`.
pub(crate) struct Subscriber<'a> {
    guest: &'a Guest,
    unit: u32,
    pid: u32,
}

impl<'a> Subscriber<'a> {
    pub(crate) fn start(guest: &'a Guest, line: Line, unit: u32, password: &str) -> Result<Subscriber<'a>> {
        let near = line.near();
        let (number, log) = (unit.to_string(), log(unit));
        let mtu = guest.sh(&format!("cat /sys/class/net/{near}/mtu"))?;
        // Header of PPPoE and PPP protocol: eight octets.
        let mtu = (mtu.trim().parse::<u32>().context("MTU")?.min(1508) - 8).to_string();
        let command = [
            &["pppd", "plugin", "rp-pppoe.so", &near, "rp_pppoe_service", "internet", "unit", &number][..],
            &["nodetach", "debug", "noauth", "user", "subscriber", "password", password, "usepeerdns"],
            &["noipdefault", "nodefaultroute", "+ipv6", "ipv6", "::2,::1", "mtu", &mtu, "mru", &mtu],
            &["lcp-echo-interval", "2", "lcp-echo-failure", "5"],
        ]
        .concat();
        let pid = guest.start(&command, &log)?;
        Ok(Subscriber { guest, unit, pid })
    }

    /// Waits until both ends have addresses of both versions, and adds global ones for IPv6.
    pub(crate) fn await_addresses(&self) -> Result<()> {
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
    pub(crate) fn await_refusal(&self) -> Result<()> {
        let log = log(self.unit);
        self.guest
            .sh(&format!(
                "timeout 50 sh -c 'until grep -q \"authentication failed\" {log}; do sleep 0.1; done'"
            ))
            .with_context(|| self.log())?;
        let pid = self.pid;
        self.guest
            .sh(&format!("timeout 50 sh -c 'while grep -q ^State:.[^Z] /proc/{pid}/status 2>/dev/null; do sleep 0.1; done'"))
            .with_context(|| self.log())
            .map(drop)
    }

    /// LCP ends the link, PADT the session.
    pub(crate) fn hang_up(&self) -> Result<()> {
        self.guest.signal(self.pid, TERM, true)?;
        Ok(())
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
