//! Interrupt moderation of NICs in a namespace, and back.

use super::Error;
use crate::namespace::{Folder, Namespace, SETTINGS};
use host::setting::{Setting, Tree};
use service::StateDir;
use service::journal::{self, Journal, Undone};

/// Which command changed a setting, for the reader of the journal.
const BY: &str = "bench";

/// Levels of `rx-usecs`, as on the APU of the field report.
pub const USECS: [(&str, &str); 5] = [
    ("0", "rx-usecs 0"),
    ("3", "rx-usecs 3"),
    ("10", "rx-usecs 10"),
    ("50", "rx-usecs 50"),
    ("100", "rx-usecs 100"),
];

/// Settings that were changed; restored by [`Moderation::restore`], when this is dropped, or, of a killed process, before the next one's
/// first namespace.
#[derive(Debug)]
pub struct Moderation<'n> {
    namespace: &'n Namespace,
    /// `None` when all is restored.
    folder: Option<Folder>,
}

impl<'n> Moderation<'n> {
    /// Lets interfaces interrupt at most once in so many microseconds (`rx-usecs`; what 0 to 9 mean the driver says).
    /// Where the driver refuses it, what was changed is restored.
    pub fn set(
        namespace: &'n Namespace,
        interfaces: &[&str],
        microseconds: &str,
    ) -> Result<Moderation<'n>, Error> {
        let moderation = Moderation { namespace, folder: Some(Folder::new()?) };
        for interface in interfaces {
            // An interval that the driver chooses itself is none that was set.
            if queried(namespace, interface)?.contains("Adaptive RX: on") {
                moderation.apply(&format!("ethtool -C {interface} adaptive-rx off"))?;
            }
            moderation.apply(&format!("ethtool -C {interface} rx-usecs {microseconds}"))?;
        }
        Ok(moderation)
    }

    fn apply(&self, command: &str) -> Result<(), Error> {
        let setting = command.parse::<Setting>();
        let setting = setting.map_err(|error| Error::Failed(format!("{command}: {error}")))?;
        let applied = self.journal(|journal| journal.apply(&setting, BY).map(drop))?;
        applied.map_err(|error| Error::Failed(format!("{command}: {error}")))
    }

    fn journal<T: Send>(
        &self,
        work: impl FnOnce(&mut Journal) -> Result<T, journal::Error> + Send,
    ) -> Result<Result<T, journal::Error>, Error> {
        let Some(folder) = &self.folder else {
            return Err(Error::Failed("all is restored already".to_owned()));
        };
        let path = folder.path().join(SETTINGS);
        Ok(self.namespace.inside(|| {
            Journal::open(&StateDir::at(path), &Tree::live()).and_then(|mut journal| work(&mut journal))
        })?)
    }

    /// Restores all of it; the error is what could not be restored, as the command that does.
    pub fn restore(mut self) -> Result<(), Error> {
        self.undo()
    }

    fn undo(&mut self) -> Result<(), Error> {
        let undone = self.journal(|journal| journal.undo(false))?;
        let undone = undone.map_err(|error| Error::Failed(format!("settings are not restored: {error}")))?;
        self.folder = None;
        Undone::kept(&undone).map_or(Ok(()), |kept| Err(Error::Failed(format!("not restored: {kept}"))))
    }
}

impl Drop for Moderation<'_> {
    fn drop(&mut self) {
        if self.folder.is_some() {
            // Whoever wants to know asks `restore`.
            let _ = self.undo();
        }
    }
}

/// What `ethtool -c` says.
fn queried(namespace: &Namespace, interface: &str) -> Result<String, Error> {
    namespace.run("ethtool", &["-c", interface]).map_err(|error| {
        Error::Failed(format!("{interface}: its driver says nothing of interrupt moderation ({error})"))
    })
}
