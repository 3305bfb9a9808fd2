//! Two network namespaces with a veth pair between them, and links over it.

pub use crate::machine::WAN as PARENT;
use crate::machine::{speak_ipv6, tun, two_ends};
use crate::process::Process;
use crate::run::{BINARY, Ended};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use testkit::netns::Namespace;
use testkit::require;
use wire::emit::Encapsulation;
use wire::ethernet::MacAddress;
use wire::{IpVersion, ipv4};

/// The link, at either end.
pub const LINK: &str = "sub0";

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Near,
    Far,
}

impl Side {
    pub fn other(self) -> Side {
        if self == Side::Near { Side::Far } else { Side::Near }
    }

    /// Its IPv4 and IPv6 address on the link.
    pub fn addresses(self) -> [&'static str; 2] {
        if self == Side::Near { ["10.9.0.1", "fd00::1"] } else { ["10.9.0.2", "fd00::2"] }
    }
}

pub struct Ends {
    near: Namespace,
    far: Namespace,
    folder: tempfile::TempDir,
    /// Options of links beyond those that a test gives.
    data_path: &'static [&'static str],
}

impl Ends {
    /// `None` where it cannot be made. The pair has this MTU.
    pub fn new(mtu: u32) -> Option<Ends> {
        require("tun", tun())?;
        let (near, far) = two_ends(mtu, 1)?;
        for namespace in [&near, &far] {
            speak_ipv6(namespace);
        }
        let folder = tempfile::tempdir().expect("a folder");
        Some(Ends { near, far, folder, data_path: &[] })
    }

    /// The same once for each data path; none where it cannot be made.
    pub fn of_each_data_path(mtu: u32) -> impl Iterator<Item = Ends> {
        const DATA_PATHS: [&[&str]; 3] = [
            &["--datapath", "simple"],
            &["--datapath", "batch", "--workers", "1", "--io", "af-xdp"],
            &["--datapath", "batch", "--workers", "3"],
        ];
        DATA_PATHS.into_iter().map_while(move |data_path| Some(Ends { data_path, ..Ends::new(mtu)? }))
    }

    /// Whether its links take a queue of their parent for themselves.
    pub fn take_a_queue(&self) -> bool {
        self.data_path.contains(&"af-xdp")
    }

    pub fn namespace(&self, side: Side) -> &Namespace {
        if side == Side::Near { &self.near } else { &self.far }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn state(&self) -> String {
        self.folder.path().join("state").display().to_string()
    }

    pub fn ip(&self, side: Side, arguments: &[&str]) -> String {
        self.namespace(side).run("ip", arguments).expect("ip")
    }

    /// The MAC address of the parent.
    pub fn mac(&self, side: Side) -> String {
        let links: Value =
            serde_json::from_str(&self.ip(side, &["-j", "link", "show", PARENT])).expect("JSON");
        links[0]["address"].as_str().expect("an address").to_owned()
    }

    /// A frame of the link to the near end, with an IPv4 packet of nothing but its header, which the kernel drops for want of a
    /// checksum. `None` for the source: the far end.
    pub fn frame(&self, link: &str, source: Option<MacAddress>, address: [u8; 4]) -> Vec<u8> {
        let mac = |side| {
            let text = self.mac(side);
            let bytes = text.split(':').map(|part| u8::from_str_radix(part, 16).expect("hexadecimal"));
            MacAddress(bytes.collect::<Vec<u8>>().try_into().expect("six bytes"))
        };
        let encapsulation: Encapsulation = self.named(Side::Far, link).parse().expect("an encapsulation");
        let mut frame = vec![0; 100];
        let source = source.unwrap_or_else(|| mac(Side::Far));
        let length =
            encapsulation.emit(mac(Side::Near), source, IpVersion::V4, ipv4::Header::LENGTH, &mut frame);
        frame.truncate(length.expect("room"));
        frame.extend([0x45, 0, 0, 20, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend(address);
        frame.extend([10, 9, 0, 1]);
        frame
    }

    /// What ip(8) shows of the link.
    pub fn show(&self, side: Side) -> Value {
        let links: Value = serde_json::from_str(&self.ip(side, &["-j", "link", "show", LINK])).expect("JSON");
        links[0].clone()
    }

    pub fn has(&self, side: Side, interface: &str) -> bool {
        self.namespace(side).run("ip", &["link", "show", interface]).is_ok()
    }

    /// An encapsulation with the address of its peer.
    pub fn named(&self, side: Side, link: &str) -> String {
        link.replace("PEER", &self.mac(side.other()))
    }

    pub fn rxlane(&self, side: Side, arguments: &[&str]) -> Output {
        let mut command = self.namespace(side).command(BINARY);
        command.arg("link").args(arguments).args(["--state", &self.state()]).env("COLUMNS", "80");
        command.output().expect("it runs")
    }

    pub fn status(&self, side: Side) -> Value {
        self.rxlane(side, &["status", LINK, "--json", "--interval", "0"]).ends(0).json()
    }

    /// Frames that were dropped at one end for a reason.
    pub fn drops(&self, side: Side, reason: &str) -> u64 {
        let status = self.status(side);
        let rows = status["drops"].as_array().expect("a list");
        rows.iter()
            .find(|row| row["reason"] == reason)
            .map_or(0, |row| row["frames"].as_u64().expect("a number"))
    }

    /// `link up` with the addresses of the side.
    pub fn up_command(&self, side: Side, link: &str, more: &[&str]) -> Command {
        let [ipv4, ipv6] = side.addresses();
        let mut command = self.plain_up(side);
        command.args(["--name", LINK, "--encap", &self.named(side, link)]);
        command.args(["--address", &format!("{ipv4}/24"), "--address", &format!("{ipv6}/64")]).args(more);
        command
    }

    /// `link up` over the parent, without anything else.
    pub fn plain_up(&self, side: Side) -> Command {
        self.plain_up_over(side, PARENT)
    }

    /// The same over another one.
    pub fn plain_up_over(&self, side: Side, parent: &str) -> Command {
        let mut command = self.namespace(side).command(BINARY);
        command.args(["link", "up", "--parent", parent, "--state", &self.state()]);
        command.args(self.data_path);
        command
    }

    /// Starts it and waits until the link is up.
    pub fn up(&self, side: Side, link: &str, more: &[&str]) -> Process {
        let mut up = Process::start(&mut self.up_command(side, link, more));
        assert!(up.says_before_its_end("is up over"), "{link}: {}", up.said());
        up
    }

    /// The same of one with other arguments.
    pub fn up_with(&self, side: Side, arguments: &[&str]) -> Process {
        let up = Process::start(self.plain_up(side).args(arguments));
        up.hear("is up over", 1);
        up
    }

    /// One that does not come up.
    pub fn up_refused(&self, side: Side, link: &str, more: &[&str]) -> Output {
        self.up_command(side, link, more).output().expect("it runs")
    }

    /// Neither interfaces nor sockets of links.
    pub fn assert_nothing_left(&self) {
        for side in [Side::Near, Side::Far] {
            assert!(!self.has(side, LINK), "{side:?}");
        }
        let left = std::fs::read_dir(self.state()).map(Iterator::count).unwrap_or_default();
        assert_eq!(left, 0);
    }
}
