//! Who may connect to a concentrator: the file that says it, read at the start and again when somebody asks for it.

use super::regular_file::RegularFile;
use crate::output::complain;
use anyhow::{Context, anyhow, bail};
use pppoe::concentrator::secrets::Secrets;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// What came of reading the file again: other secrets, or why there are none.
pub type Reread = Result<Secrets, String>;

/// A file of secrets, and whose it is.
#[derive(Clone, Debug)]
pub struct SubscribersFile {
    /// Where it is; `None`: there is none.
    pub path: Option<PathBuf>,
    /// Whether everybody is taken where there is none.
    pub anybody: bool,
    /// Name of the concentrator, for the second column of pppd's form.
    pub server: String,
    /// Its own address, which no subscriber can have.
    pub own: Option<Ipv4Addr>,
    /// Whether it is this process that says that others may read the file.
    pub warns: bool,
}

impl SubscribersFile {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// It cannot be read, or a line of it; what is wrong.
    pub fn read(&self) -> anyhow::Result<Secrets> {
        let Some(file) = &self.path else {
            if !self.anybody {
                bail!("who may connect? `--secrets FILE` says it, `--anybody` takes everybody");
            }
            return Ok(Secrets::default());
        };
        let named = || format!("cannot read {}", file.display());
        let opened = RegularFile::open(file).with_context(named)?;
        if opened.is_open_to_others() && self.warns {
            complain(&format!("others may read the passwords in {0}: `chmod 600 {0}`", file.display()));
        }
        let text = opened.read().with_context(named)?;
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

    /// Reads it again whenever one of the signals comes, in a thread of its own, since a file of tens of MiB takes seconds, in which
    /// subscribers want answers. `bell` is written to when there is something to be received.
    ///
    /// # Errors
    ///
    /// There are no more descriptors or threads.
    pub fn read_again(self, signals: &[i32], mut bell: UnixStream) -> io::Result<Receiver<Reread>> {
        let (mut asked, signal) = UnixStream::pair()?;
        let (read, received) = sync_channel(1);
        let read_again = move || {
            // However often it was asked for meanwhile, it is read once.
            let mut came = [0; 64];
            while asked.read(&mut came).is_ok_and(|count| count > 0) {
                let secrets = self.read();
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
