//! Settings of a NIC that a cell asks for: made before it is measured, restored behind it.
//!
//! They are changed through the journal of crate `service`, which is held for the whole run, so that nobody changes them meanwhile
//! and a killed run leaves what it takes to put them back ([`Settings::open`] of the next, [`undo`]).

use super::super::design::levels;
use super::super::report::Levels;
use super::super::{Error, level};
use super::placement::{self, Placement};
use host::setting::{self, ChannelKind, InterfaceName, Setting, Tree};
use service::StateDir;
use service::journal::{self, Applied, Journal, Undone};
use std::cell::RefCell;
use std::io;
use std::path::Path;

/// Who changes them, for the reader of the journal.
const BY: &str = "bench pps";
/// The level that leaves a setting alone.
pub const FOUND: &str = "as-found";
/// Factors that are settings, in the order in which they are made: a new number of queues sets rings and table anew.
pub const FACTORS: [&str; 5] = ["queues", "ring", "hash", "table", "usecs"];

/// The settings of an interface, as they were found or as a cell has them.
#[derive(Debug)]
pub struct Settings {
    interface: InterfaceName,
    journal: RefCell<Journal>,
    placement: Placement,
    /// What makes a receive queue: cards have channels of both kinds, or some of each.
    channels: ChannelKind,
}

impl Settings {
    /// Opens the journal in `directory`, and restores what a killed run left.
    pub fn open(interface: &str, directory: &Path) -> Result<Settings, Error> {
        let interface: InterfaceName =
            interface.parse().map_err(|error: setting::ParseError| Error::Wrong(error.to_string()))?;
        let mut journal = Journal::open(&StateDir::at(directory), &Tree::live()).map_err(unusable)?;
        restore(&mut journal).map_err(|error| Error::Lacks(error.to_string()))?;
        let placement = Placement::of(interface.as_str());
        let journal = RefCell::new(journal);
        let mut settings = Settings { interface, journal, placement, channels: ChannelKind::Combined };
        if settings.present("queues").is_none() {
            settings.channels = ChannelKind::Rx;
        }
        Ok(settings)
    }

    /// The command for a level, for as many receive queues as there are now; `None` for [`FOUND`].
    fn command(&self, factor: &str, level: &str) -> Option<String> {
        command(self.interface.as_str(), factor, level, (self.channels, self.queues()))
    }

    /// Makes the settings of a cell.
    /// [`Error::Refused`] with the setting's level: the driver does not do that. Whatever the error, all is as it was found.
    pub fn enter(&self, cell: &Levels) -> Result<(), Error> {
        // What could not be restored behind the last cell would be measured under a wrong name.
        restore(&mut self.journal.borrow_mut())?;
        let made = FACTORS.iter().try_for_each(|factor| self.make(factor, cell));
        if let Err(error) = made {
            self.leave()?;
            return Err(error);
        }
        self.placement.restore();
        Ok(())
    }

    fn make(&self, factor: &str, cell: &Levels) -> Result<(), Error> {
        let level = level(cell, factor);
        match factor {
            // Where the driver changes the interval by itself, the one that is set would mean nothing.
            "usecs" if level != FOUND => {
                self.try_to(&format!("ethtool -C {} adaptive-rx off", self.interface))
            }
            // The kernel lets no queue go that a table names which somebody has set.
            "queues" if level.parse().is_ok_and(|count: usize| count < self.queues()) => {
                self.try_to(&format!("ethtool -X {} default", self.interface));
            }
            _ => {}
        }
        let Some(command) = self.command(factor, level) else { return Ok(()) };
        let setting: Setting =
            command.parse().map_err(|error| Error::Failed(format!("{command}: {error}")))?;
        match self.journal.borrow_mut().apply(&setting, BY) {
            Ok(Applied::Already) => Ok(()),
            Ok(Applied::Changed { after, .. }) if after.in_effect => Ok(()),
            // Measured under a wrong name it would be worth nothing.
            Ok(Applied::Changed { after, .. }) => Err(Error::Refused {
                levels: refused(factor, cell),
                why: format!("{command}: the driver makes {} of it", after.to_text()),
            }),
            Err(journal::Error::Setting(error)) if is_refusal(&error) => {
                Err(Error::Refused { levels: refused(factor, cell), why: format::with_causes(&error) })
            }
            Err(error) => Err(unusable(error)),
        }
    }

    /// Makes what a setting takes on some devices. Others have no such thing, and what is in its way there, it says itself.
    fn try_to(&self, command: &str) {
        if let Ok(setting) = command.parse::<Setting>() {
            let _ = self.journal.borrow_mut().apply(&setting, BY);
        }
    }

    fn queues(&self) -> usize {
        placement::queues(self.interface.as_str())
    }

    pub fn leave(&self) -> Result<(), Error> {
        let restored = restore(&mut self.journal.borrow_mut());
        self.placement.restore();
        restored
    }

    /// What a setting is now, as a command; `None` where the driver does not report it.
    pub fn present(&self, factor: &str) -> Option<String> {
        // What the present value is read with matters, not the requested value.
        let any = match factor {
            "queues" | "ring" | "usecs" => "1",
            "hash" => "sd",
            _ => "one",
        };
        let setting: Setting = self.command(factor, any)?.parse().ok()?;
        Some(setting.read(&Tree::live()).ok()?.to_text())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // Whoever can say something has called `leave`.
        let _ = self.leave();
    }
}

/// Restores what a killed run changed; what became of each.
pub fn undo(directory: &Path, force: bool) -> Result<Vec<Undone>, Error> {
    let mut journal = Journal::open(&StateDir::at(directory), &Tree::live()).map_err(unusable)?;
    journal.undo_by(BY, force).map_err(unusable)
}

fn restore(journal: &mut Journal) -> Result<(), Error> {
    let undone = journal.undo_by(BY, false).map_err(unusable)?;
    let Some(kept) = Undone::kept(&undone) else { return Ok(()) };
    Err(Error::Failed(format!(
        "settings are not as they were found: {kept}; rxlane bench pps --undo tries again, with --force whatever is there now"
    )))
}

fn command(
    interface: &str,
    factor: &str,
    level: &str,
    (channels, queues): (ChannelKind, usize),
) -> Option<String> {
    if level == FOUND || level.is_empty() {
        return None;
    }
    Some(match factor {
        "queues" => format!("ethtool -L {interface} {} {level}", channels.name()),
        "ring" => format!("ethtool -G {interface} rx {level}"),
        "hash" => format!("ethtool -N {interface} rx-flow-hash udp4 {level}"),
        "usecs" => format!("ethtool -C {interface} rx-usecs {level}"),
        _ => match level {
            "one" => format!("ethtool -X {interface} equal 1"),
            "equal" => format!("ethtool -X {interface} equal {}", queues.max(1)),
            _ => format!("ethtool -X {interface} weight{}", " 1".repeat(queues.max(1))),
        },
    })
}

/// The levels that make a refusal: what is a table's depends on the number of queues.
fn refused(factor: &str, cell: &Levels) -> Levels {
    let mut levels = levels(&format!("{factor}={}", level(cell, factor)));
    if factor == "table" {
        levels.insert("queues".to_owned(), level(cell, "queues").to_owned());
    }
    levels
}

/// Whether it is the device that says no, and not a missing program or privilege.
fn is_refusal(error: &setting::Error) -> bool {
    use io::ErrorKind::{NotFound, PermissionDenied};
    !matches!(error, setting::Error::Missing { .. } | setting::Error::OtherSysfs { .. })
        && !error.io().is_some_and(|cause| matches!(cause.kind(), NotFound | PermissionDenied))
}

fn unusable(error: journal::Error) -> Error {
    Error::Lacks(format::with_causes(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_a_command_that_can_be_undone() {
        for (factor, level, expected) in [
            ("queues", "2", "ethtool -L wan combined 2"),
            ("ring", "4096", "ethtool -G wan rx 4096"),
            ("hash", "sdfn", "ethtool -N wan rx-flow-hash udp4 sdfn"),
            ("usecs", "0", "ethtool -C wan rx-usecs 0"),
            ("table", "one", "ethtool -X wan equal 1"),
            ("table", "equal", "ethtool -X wan equal 4"),
            ("table", "blocks", "ethtool -X wan weight 1 1 1 1"),
        ] {
            let command = command("wan", factor, level, (ChannelKind::Combined, 4)).expect("a command");
            assert_eq!(command, expected);
            assert_eq!(command.parse::<Setting>().expect("a setting").command(), expected);
        }
        let of_rx = |factor, level| command("wan", factor, level, (ChannelKind::Rx, 4));
        assert_eq!(of_rx("queues", "2").as_deref(), Some("ethtool -L wan rx 2"));
        assert_eq!(of_rx("usecs", FOUND), None);
    }

    #[test]
    fn a_table_is_refused_for_its_number_of_queues() {
        let cell = levels("queues=1 table=blocks usecs=3");
        assert_eq!(refused("usecs", &cell), levels("usecs=3"));
        assert_eq!(refused("table", &cell), levels("queues=1 table=blocks"));
    }
}
