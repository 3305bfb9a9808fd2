//! The guest with its three namespaces, and the concentrators that are started in the one between.

use anyhow::{Context, Result};
use rxlane_lab::{Guest, Lab, Series, Spec};
use std::time::Duration;

/// Of the interfaces that frames are sent to, and of those that send them.
pub const LINE: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const UPLINK: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub const CORE: [u8; 6] = [2, 0, 0, 0, 0, 3];
/// An address behind the uplink.
pub const SERVER: [u8; 4] = [198, 51, 100, 2];
const OUTPUT: &str = "/tmp/concentrator.output";
const SECRETS: &str = "/run/secrets";
const CONFIGURATION: &str = "/run/accel-ppp.conf";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concentrator {
    Accel,
    Batch,
    Xdp,
}

impl Concentrator {
    pub const ALL: [Concentrator; 3] = [Concentrator::Accel, Concentrator::Batch, Concentrator::Xdp];

    pub const fn name(self) -> &'static str {
        match self {
            Concentrator::Accel => "accel-ppp",
            Concentrator::Batch => "serve, batch",
            Concentrator::Xdp => "serve, xdp",
        }
    }
}

pub struct Topology {
    pub guest: Guest,
    accel: String,
    rxlane: String,
}

impl Topology {
    pub fn new(lab: &Lab, accel: &str, sessions: u32) -> Result<Topology> {
        let guest = lab.boot(&Spec { cpus: 3, memory: 2048, counting: true, ..Spec::new(Series::V6_12) })?;
        let mac = |address: [u8; 6]| address.map(|byte| format!("{byte:02x}")).join(":");
        guest.sh(&format!(
            "modprobe -a tun veth pppoe; [ -c /dev/ppp ] || mknod /dev/ppp c 108 0; \
             for task in /proc/[0-9]*; do taskset -apc 2 ${{task#/proc/}} >/dev/null 2>&1 || true; done; \
             for irq in /proc/irq/*/smp_affinity; do echo 4 2>/dev/null >$irq || true; done; \
             echo 2 >/sys/devices/virtual/workqueue/cpumask; \
             for n in lines isp core; do ip netns add $n; ip -n $n link set lo up; \
             ip netns exec $n sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1; done; \
             ip link add wan0 netns lines type veth peer name line0 address {} netns isp; \
             ip link add core0 netns core address {} type veth peer name up0 address {} netns isp; \
             ip -n lines link set wan0 mtu 1508 up; ip -n isp link set line0 mtu 1508 up; \
             ip -n core link set core0 up; ip -n isp link set up0 up; \
             ip -n isp address add 198.51.100.1/24 dev up0; \
             ip -n isp neighbour add 198.51.100.2 lladdr {} dev up0 nud permanent; \
             ip netns exec isp sysctl -qw net.ipv4.ip_forward=1",
            mac(LINE),
            mac(CORE),
            mac(UPLINK),
            mac(CORE),
        ))?;
        let secrets: String = (0..sessions).map(|host| format!("user-{host} * secret-{host} *\n")).collect();
        guest.write(SECRETS, secrets.as_bytes())?;
        guest.write(CONFIGURATION, configuration().as_bytes())?;
        let rxlane = rxlane_lab::built::program("rxlane")?.display().to_string();
        Ok(Topology { guest, accel: accel.to_owned(), rxlane })
    }

    /// Starts a concentrator on CPU 1, waits until it serves, and has both of its interfaces received there.
    pub fn start(&self, concentrator: Concentrator) -> Result<u32> {
        let rxlane = format!(
            "{} pppoe serve line0 --secrets {SECRETS} --auth chap --local 100.64.0.1 --pool 100.64.16.1-100.64.31.254 \
             --ipv6 false --echo-interval 3600",
            self.rxlane
        );
        let command = match concentrator {
            Concentrator::Accel => format!("{} -c {CONFIGURATION}", self.accel),
            Concentrator::Batch => rxlane,
            Concentrator::Xdp => format!("{rxlane} --datapath xdp --uplink up0"),
        };
        self.receive_in_threads().context("threaded NAPI")?;
        let words = format!("taskset -c 1 ip netns exec isp {command}");
        let pid = self.guest.start(&words.split(' ').collect::<Vec<_>>(), OUTPUT)?;
        let is_ready = match concentrator {
            // A packet socket of the discovery stage (0x8863).
            Concentrator::Accel => format!("grep -qw 8863 /proc/{pid}/net/packet"),
            _ => format!("grep -q serves {OUTPUT}"),
        };
        let wait = format!("timeout 40 sh -c 'until {is_ready}; do sleep 0.1; done'");
        self.guest.sh(&wait).with_context(|| self.output())?;
        self.receive_in_threads().context("threaded NAPI")?;
        Ok(pid)
    }

    /// Before a start, since programs in XDP need interfaces that receive so; and behind it, since interfaces get other threads
    /// with a program.
    fn receive_in_threads(&self) -> Result<()> {
        for (namespace, interface, cpu) in
            [("lines", "wan0", 0), ("core", "core0", 0), ("isp", "line0", 1), ("isp", "up0", 1)]
        {
            self.guest.sh(&format!(
                "ip netns exec {namespace} sh -ec 'ethtool -K {interface} gro on tso off rxvlan off; \
                 echo 1 >/sys/class/net/{interface}/threaded'; \
                 for task in $(pgrep napi/{interface}); do taskset -pc {cpu} $task; done | grep -q list"
            ))?;
        }
        Ok(())
    }

    /// Ends it, and waits until all that it had is removed.
    pub fn end(&self, pid: u32) -> Result<()> {
        self.guest.signal(pid, libc::SIGTERM, false)?;
        let wait = "i=0; while [ -n \"$(ip netns pids isp)\" ]; do i=$((i+1)); \
                    [ $i != 40 ] || ip netns pids isp | xargs -r kill -9; sleep 0.5; done; \
                    while ip -n isp link | grep -q ppp; do sleep 0.5; done";
        let output =
            self.guest.run_with(&["timeout", "150", "sh", "-c", wait], &[], Duration::from_secs(160))?;
        anyhow::ensure!(output.status == 0, "it does not end: {}", self.output());
        Ok(())
    }

    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.guest.read(OUTPUT).unwrap_or_default()).into_owned()
    }

    /// What this program prints in a namespace, on CPU 0.
    pub fn run(&self, namespace: &str, words: &[&str], limit: Duration) -> Result<String> {
        let own = std::env::current_exe()?.display().to_string();
        let command = ["taskset", "-c", "0", "ip", "netns", "exec", namespace, &own];
        let command: Vec<&str> = command.into_iter().chain(words.iter().copied()).collect();
        let output = self.guest.run_with(&command, &[], limit)?;
        anyhow::ensure!(
            output.status == 0 && !output.timed_out,
            "{}: {}{}; {}",
            words.join(" "),
            output.text(),
            output.errors(),
            self.output()
        );
        Ok(output.text())
    }
}

/// Of accel-ppp: a thread for the one CPU, CHAP, no echo requests, nothing in a log.
fn configuration() -> String {
    format!(
        "[modules]\npppoe\nauth_chap_md5\nchap-secrets\nippool\n\
         [core]\nlog-error=/run/accel-ppp.log\nthread-count=1\n\
         [ppp]\nverbose=0\nmin-mtu=1280\nmtu=1492\nmru=1492\nccp=0\nipv4=require\nipv6=deny\nlcp-echo-interval=0\n\
         [pppoe]\nverbose=0\nac-name=accel\ncalled-sid=mac\ninterface=line0\n\
         [client-ip-range]\ndisable\n\
         [ip-pool]\ngw-ip-address=100.64.0.1\n100.64.16.0/20\n\
         [chap-secrets]\ngw-ip-address=100.64.0.1\nchap-secrets={SECRETS}\n"
    )
}
