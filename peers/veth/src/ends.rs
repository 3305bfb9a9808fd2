//! Two namespaces with a veth pair between them, and the programs that run there.

use anyhow::{Context, bail};
use rxlane_testkit::netns::{Namespace, Veth};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::spawn;

/// The pair's name at both ends.
pub const WAN: &str = "wan0";

/// Both ends. Programs end before the namespaces go.
pub struct Ends {
    programs: Vec<Child>,
    pub namespaces: [Namespace; 2],
    state: tempfile::TempDir,
}

impl Ends {
    /// Makes both.
    pub fn new(mtu: u32) -> anyhow::Result<Ends> {
        let namespaces = [Namespace::new()?, Namespace::new()?];
        namespaces[0].veth(&Veth { mtu, peer: Some(&namespaces[1]), ..Veth::pair(WAN, WAN) })?;
        Ok(Ends { programs: Vec::new(), namespaces, state: tempfile::tempdir()? })
    }

    /// Gives the pair addresses of one network.
    pub fn give_addresses(&self, addresses: [&str; 2]) -> anyhow::Result<()> {
        for (end, address) in self.namespaces.iter().zip(addresses) {
            end.run("ip", &["addr", "add", &format!("{address}/24"), "dev", WAN])?;
        }
        Ok(())
    }

    /// Turns off what the pair would leave undone: segmentation, and putting segments together.
    pub fn without_offloads(&self) -> anyhow::Result<()> {
        for end in &self.namespaces {
            end.run("ethtool", &["-K", WAN, "tso", "off", "gso", "off", "gro", "off"])?;
        }
        Ok(())
    }

    /// A folder for the state of a program at an end.
    pub fn state(&self, end: usize) -> PathBuf {
        self.state.path().join(end.to_string())
    }

    /// Starts a program at an end, and waits until it says `ready`.
    pub fn start(&mut self, end: usize, program: &Path, words: &[&str], ready: &str) -> anyhow::Result<()> {
        let mut command = self.namespaces[end].command(program);
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().with_context(|| program.display().to_string())?;
        let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
        self.programs.push(child);
        let mut said = String::new();
        for line in lines.by_ref() {
            said.push_str(&line?);
            if said.contains(ready) {
                // It may say more, and must not wait for a reader.
                spawn(move || lines.for_each(drop));
                return Ok(());
            }
        }
        bail!("{} {}: {said}", program.display(), words.join(" "))
    }

    /// Process ids of the programs, in the order of their start. ip-netns(8) becomes the program that it starts.
    pub fn pids(&self) -> Vec<u32> {
        self.programs.iter().map(Child::id).collect()
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        for mut program in self.programs.drain(..).rev() {
            // SIGTERM, so that nothing of it is left.
            let _ = Command::new("kill").arg(program.id().to_string()).status();
            let _ = program.wait();
        }
    }
}
