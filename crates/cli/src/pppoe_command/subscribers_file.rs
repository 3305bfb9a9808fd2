//! Who may connect to a concentrator: the file that says it, read at the start and again when somebody asks for it.

use super::LARGEST;
use crate::output::{Lacks, complain};
use anyhow::{Context, anyhow, bail};
use format::{plural, printable, quoted};
use kernel::file::Regular;
use pppoe::concentrator::pool::NamedRange;
use pppoe::concentrator::secrets::{Address, Secrets, Subscriber};
use service::memory;
use std::fs;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// What came of reading the file again: other secrets, or why there are none.
pub type Reread = Result<Secrets, String>;

/// What a concentrator has to give to its subscribers.
#[derive(Clone, Copy, Debug)]
pub struct Means<'a> {
    pub name: &'a str,
    /// Whether it has an IPv4 address.
    pub has_local: bool,
    /// Its pools.
    pub pools: &'a [NamedRange],
    /// Whether RADIUS authenticates who is not named.
    pub asks: bool,
}

impl Means<'_> {
    /// Who gets nothing, or no IPv4 address, and why; `None`: everybody gets what they should.
    pub fn unserved(&self, secrets: &Secrets, anybody: bool) -> Option<String> {
        let has_pool = self.pools.iter().any(|pool| pool.name.is_none());
        let lacks = |subscriber: &Subscriber| match subscriber.profile.address {
            Address::None => false,
            Address::Fixed(_) => !self.has_local,
            Address::Pool => !self.has_local || !has_pool && subscriber.profile.pool.is_none(),
        };
        let option = if self.has_local { "--pool" } else { "--local" };
        let count = secrets.iter().filter(|(_, subscriber)| lacks(subscriber)).count();
        let everybody = secrets.everybody().is_some_and(lacks) || anybody && !(self.has_local && has_pool);
        let is_nobody = secrets.is_empty() && !anybody && !self.asks;
        let mut said = Vec::new();
        if is_nobody {
            said.push("nobody can connect".to_owned());
        }
        if count > 0 {
            let have = if count == 1 { "has" } else { "have" };
            said.push(format!("{count} of them {have} no IPv4 address, since there is no {option}"));
        }
        if everybody {
            said.push(format!("who is not named has no IPv4 address, since there is no {option}"));
        }
        for name in secrets.pools() {
            if !self.pools.iter().any(|pool| pool.name.as_deref() == Some(name)) {
                let name = printable(name);
                said.push(format!("the pool \"{name}\" is named, and there is no --pool {name}=FIRST-LAST"));
            }
        }
        match secrets.for_others() {
            0 => {}
            1 => said.push(format!("1 line is for another server than {} (--name)", self.name)),
            others => said.push(format!("{others} lines are for other servers than {} (--name)", self.name)),
        }
        let subscribers = plural(secrets.len() as u64, "subscriber");
        (!said.is_empty()).then(|| format!("{subscribers}; {}", said.join("; ")))
    }
}

/// A file of secrets, and whose it is.
#[derive(Clone, Debug)]
pub struct SubscribersFile {
    pub path: Option<PathBuf>,
    /// Whether there need be none: everybody is taken, or RADIUS authenticates.
    pub anybody: bool,
    /// Name of the concentrator, for the second column of pppd's form.
    pub server: String,
    /// Its own address, which no subscriber can have.
    pub own: Option<Ipv4Addr>,
    /// Whether it is this process that says that others may read the file.
    pub warns: bool,
}

/// All that is in a file with passwords; `warns` where others may read it.
pub fn passwords(file: &Path, warns: bool) -> anyhow::Result<Vec<u8>> {
    let named = || format!("cannot read {}", file.display());
    let opened = Regular::open_trusted(file).with_context(named)?;
    if opened.is_readable_by_others() && warns {
        complain(&format!(
            "others may read the passwords in {}: `chmod 600 {}`",
            file.display(),
            quoted(&file.to_string_lossy())
        ));
    }
    opened.read(LARGEST).with_context(named)
}

impl SubscribersFile {
    pub fn read(&self) -> anyhow::Result<Secrets> {
        let Some(file) = &self.path else {
            if !self.anybody {
                bail!(
                    "who may connect? `--secrets FILE` says it, or `--radius FILE` whom to ask; `--anybody` takes everybody"
                );
            }
            return Ok(Secrets::default());
        };
        let text = passwords(file, self.warns)?;
        let memory = memory::expect(Secrets::memory(&text));
        memory.map_err(|error| Lacks(format!("cannot read {}: {error}", file.display())))?;
        let secrets = Secrets::parse(&text, self.server.as_bytes(), self.own);
        let secrets = secrets.map_err(|error| anyhow!("{}: {error}", file.display()))?;
        if secrets.is_empty() && self.warns {
            complain(&format!(
                "there is no subscriber in {}: nobody can connect until there is one",
                file.display()
            ));
        }
        Ok(secrets)
    }

    /// Whether there is nothing in the file: it was cut, or is being written. Nobody means to end all subscribers by that.
    fn is_empty(&self) -> bool {
        self.path
            .as_ref()
            .is_some_and(|path| fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0))
    }

    /// Reads it again whenever one of the signals comes, in a thread of its own, since a file of tens of MiB takes seconds, in which
    /// subscribers want answers. `bell` is written to when there is something to be received.
    pub fn read_again(self, signals: &[i32], mut bell: UnixStream) -> io::Result<Receiver<Reread>> {
        let (mut requests, signal) = UnixStream::pair()?;
        let (read, received) = sync_channel(1);
        let read_again = move || {
            // However often it was requested meanwhile, it is read once.
            let mut came = [0; 64];
            while requests.read(&mut came).is_ok_and(|count| count > 0) {
                let secrets = if self.is_empty() {
                    Err(anyhow!("the file of the secrets is empty"))
                } else {
                    self.read()
                };
                let secrets = secrets.map_err(|error| format!("{error:#}; the secrets stay as they were"));
                if read.send(secrets).is_err() {
                    return;
                }
                let _ = bell.write(&[0]);
            }
        };
        thread::Builder::new().name("secrets".to_owned()).spawn(read_again)?;
        for number in signals {
            signal_hook::low_level::pipe::register(*number, signal.try_clone()?)?;
        }
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gets_nothing_is_reported() {
        let pool: NamedRange = "192.0.2.1-192.0.2.9".parse().expect("a pool");
        let unserved = |text: &[u8], has_local, has_pool| {
            let secrets = Secrets::parse(text, b"rxlane", None).expect("secrets");
            let pools = if has_pool { std::slice::from_ref(&pool) } else { &[] };
            Means { name: "rxlane", has_local, pools, asks: false }.unserved(&secrets, false)
        };
        let both = b"alice * a *\nbob * b 192.0.2.7\n";
        assert_eq!(unserved(both, true, true), None);
        let said = |text: &[u8], has_local| unserved(text, has_local, false).expect("somebody");
        assert_eq!(
            said(both, true),
            "2 subscribers; 1 of them has no IPv4 address, since there is no --pool"
        );
        assert_eq!(
            said(both, false),
            "2 subscribers; 2 of them have no IPv4 address, since there is no --local"
        );
        assert_eq!(
            said(b"alice other a *\n", true),
            "0 subscribers; nobody can connect; 1 line is for another server than rxlane (--name)"
        );
        assert_eq!(
            unserved(b"[[vlan]]\nvlans = \"7.*\"\npool = \"gold\"\n[[subscriber]]\nuser = \"a\"\npassword = \"b\"\n", true, true),
            Some("1 subscriber; the pool \"gold\" is named, and there is no --pool gold=FIRST-LAST".to_owned())
        );
        let anybody = Means { name: "rxlane", has_local: true, pools: &[], asks: false };
        let said = anybody.unserved(&Secrets::default(), true).expect("somebody");
        assert_eq!(said, "0 subscribers; who is not named has no IPv4 address, since there is no --pool");
    }
}
