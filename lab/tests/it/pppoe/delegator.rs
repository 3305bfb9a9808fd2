//! What an operator has for IPv6 behind a session: Dibbler, a DHCPv6 server that delegates prefixes, and radvd, on the interface that
//! pppd has for the subscriber, in the namespace `isp`.

use crate::until;
use anyhow::Result;
use rxlane_lab::Guest;

/// The operator's address on the line, which its advertisements have the prefix of.
pub const OPERATOR: &str = "2001:db8:1::1";
/// What every delegated prefix begins with.
pub const DELEGATED: &str = "2001:db8:ff";

const DHCP: &str = "log-level 8\nlog-mode short\niface \"ppp0\" {\n  class { pool 2001:db8:1::1000-2001:db8:1::ffff }\n  pd-class {\n    pd-pool 2001:db8:ff00::/40\n    pd-length 56\n  }\n}\n";
const ADVERTISED: &str = "interface ppp0 {\n  AdvSendAdvert on;\n  MaxRtrAdvInterval 10;\n  AdvOtherConfigFlag on;\n\
    prefix 2001:db8:1::/64 { AdvOnLink on; AdvAutonomous on; };\n};\n";

pub struct Delegator<'a> {
    guest: &'a Guest,
    /// Their process ids, and what ends them.
    pids: Vec<(u32, i32)>,
}

impl<'a> Delegator<'a> {
    /// Serves the session that is open.
    pub fn start(guest: &'a Guest) -> Result<Delegator<'a>> {
        guest.write("/etc/dibbler/server.conf", DHCP.as_bytes())?;
        guest.write("/tmp/delegator/radvd.conf", ADVERTISED.as_bytes())?;
        // Dibbler takes the other end's address for its own where an address has one.
        guest.sh(&format!(
            "rm -rf /var/lib/dibbler; mkdir -p /var/lib/dibbler; ip netns exec isp sysctl -qw net.ipv6.conf.all.forwarding=1; \
             {}; \
             set -- $(ip -n isp -6 -o addr show dev ppp0 scope link | sed 's/.* inet6 //'); \
             ip -n isp addr del $1 peer $3 dev ppp0; ip -n isp addr add $1/64 dev ppp0 nodad; \
             ip -n isp addr add {OPERATOR}/64 dev ppp0 nodad; ip -n isp route replace 2001:db8:ff00::/40 dev ppp0",
            until("ip -n isp -6 addr show dev ppp0 | grep -q fe80")
        ))?;
        let mut delegator = Delegator { guest, pids: Vec::new() };
        for (command, output, signal) in [
            // Its handler of SIGTERM asks for the local time, and waits for itself where the signal comes while it does so for a
            // line of its log.
            ("dibbler-server run", "dibbler", libc::SIGKILL),
            (
                "radvd -n -d 2 -m stderr -C /tmp/delegator/radvd.conf -p /tmp/delegator/radvd.pid",
                "radvd",
                libc::SIGTERM,
            ),
        ] {
            let words: Vec<&str> =
                ["ip", "netns", "exec", "isp"].into_iter().chain(command.split(' ')).collect();
            delegator.pids.push((guest.start(&words, &format!("/tmp/delegator/{output}"))?, signal));
        }
        Ok(delegator)
    }

    /// What both said.
    pub fn log(&self) -> String {
        self.guest.sh("tail -n 25 /tmp/delegator/dibbler /tmp/delegator/radvd").unwrap_or_default()
    }
}

impl Drop for Delegator<'_> {
    fn drop(&mut self) {
        for (pid, signal) in self.pids.drain(..) {
            let _ = self.guest.signal(pid, signal, true);
        }
    }
}
