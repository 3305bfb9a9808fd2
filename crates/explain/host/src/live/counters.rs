//! The counters of one interface, read again and again: what a live view needs each second, at its cost.

use super::bundle::{Bundle, printable};
use super::ethtool::Ethtool;
use super::links::{self, Links};
use super::{Error, cpus, files, interrupts, machine_counters, monotonic_seconds, put_all, queues, sessions};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

/// Interfaces above and below the one that is watched whose counters are read, too: a concentrator has one for each
/// of thousands of subscribers.
const MOST_AROUND: usize = 64;

/// Reads an interface, those it stands on, and some of those that stand on it.
///
/// What does not count is written by [`Counters::settings`], what counts by [`Counters::sample`]; settings and two
/// samples, given to one [`crate::text::Reader`] one after the other, make a [`crate::Snapshot`] with the time between
/// them. It is the bundle of [`super::collect`] without what is dear or says nothing of a receive path: processes, the
/// log, indirection table and hash fields.
pub struct Counters {
    name: String,
    links: Links,
    chosen: BTreeSet<Vec<u8>>,
    device: Vec<u8>,
    ethtool: Ethtool,
    vectors: Option<BTreeSet<String>>,
}

impl Counters {
    /// Looks the interface up by its name, control characters in it as `\xNN`.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownInterface`].
    pub fn open(name: &str) -> Result<Counters, Error> {
        let (links, chosen) = look_up(name)?;
        let device = name.as_bytes().to_vec();
        Ok(Counters { name: name.to_owned(), links, chosen, device, ethtool: Ethtool::open(), vectors: None })
    }

    /// The device whose queues and statistics are read, by its name in the [`crate::Snapshot`]; the interface itself
    /// until something else is said. A VLAN or PPP interface has none of its own.
    pub fn set_device(&mut self, name: &str) {
        name.as_bytes().clone_into(&mut self.device);
    }

    /// Writes only these lines of `/proc/interrupts`, by vector; a large machine has a thousand. `None` writes all.
    pub fn set_vectors(&mut self, vectors: Option<BTreeSet<String>>) {
        self.vectors = vectors;
    }

    /// Interfaces around the one that is watched that are left out, since there are more than 64.
    pub fn left_out(&self) -> usize {
        self.links
            .around(std::slice::from_ref(&self.name))
            .map_or(0, |around| around.len().saturating_sub(self.chosen.len()))
    }

    /// Looks the interfaces up anew and writes what does not count.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownInterface`] where the interface was removed; [`Error::Write`].
    pub fn settings(&mut self, out: &mut impl Write) -> Result<(), Error> {
        (self.links, self.chosen) = look_up(&self.name)?;
        let interrupts = files::text(Path::new("/proc/interrupts"));
        let mut bundle = Bundle::begin(out)?;
        bundle.put("nproc", &cpus::nproc())?;
        bundle.put("lscpu", &cpus::lscpu())?;
        sessions::put(&mut bundle)?;
        let Some(device) = self.links.links.iter().find(|link| link.name == self.device) else {
            return bundle.end();
        };
        put_all(&mut bundle, &interrupts::affinities(interrupts.as_deref().ok(), &[device]))?;
        let is_cheap =
            |command: &str| !["ethtool -x ", "ethtool -n "].iter().any(|dear| command.starts_with(dear));
        let mut settings = self.ethtool.settings(&device.name, false);
        settings.retain(|(command, _)| is_cheap(command));
        put_all(&mut bundle, &settings)?;
        put_all(&mut bundle, &queues::read(device))?;
        bundle.end()
    }

    /// Writes what counts, as sample `number`.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownInterface`] where the interface was removed; [`Error::Write`].
    pub fn sample(&mut self, number: u32, out: &mut impl Write) -> Result<(), Error> {
        let at = monotonic_seconds();
        let interrupts = files::text(Path::new("/proc/interrupts")).map(|text| self.own_vectors(&text));
        let machine = machine_counters();
        let listing = match &self.links.names_only {
            None => {
                self.refresh()?;
                Ok(links::render(&self.links.links, &|link| self.chosen.contains(&link.name)))
            }
            Some(why) => {
                let why = why.clone();
                // Nothing but a list of names shows whether it is still there.
                look_up(&self.name)?;
                Err(why)
            }
        };
        let statistics = self.ethtool.statistics(&self.device);

        let mut bundle = Bundle::begin(out)?;
        bundle.sample(number, at)?;
        bundle.put("cat /proc/interrupts", &interrupts)?;
        put_all(&mut bundle, &machine)?;
        bundle.put("ip -d -s link", &listing)?;
        bundle.put(&statistics.0, &statistics.1)?;
        bundle.end()
    }

    /// Reads the chosen interfaces anew, one by one: a dump of thousands takes tens of milliseconds.
    fn refresh(&mut self) -> Result<(), Error> {
        let names: Vec<Vec<u8>> = self.chosen.iter().cloned().collect();
        for name in names {
            match self.links.refresh(&name) {
                Ok(()) => {}
                // One that stood on it went away; it is looked for again with the settings.
                Err(_) if printable(&name) != self.name => drop(self.chosen.remove(&name)),
                Err(_) => drop(look_up(&self.name)?),
            }
        }
        Ok(())
    }

    /// The heading and the lines of the chosen vectors.
    fn own_vectors(&self, text: &str) -> String {
        let Some(vectors) = &self.vectors else { return text.to_owned() };
        let is_own = |line: &&str| match line.split_once(':') {
            Some((vector, _)) => vectors.contains(vector.trim()),
            None => true,
        };
        text.split_inclusive('\n').filter(is_own).collect()
    }
}

/// All interfaces, and those around `name`, itself first among them where there are too many.
fn look_up(name: &str) -> Result<(Links, BTreeSet<Vec<u8>>), Error> {
    let links = Links::with_sessions();
    let around = links.around(&[name.to_owned()])?;
    let own = links.links.iter().filter(|link| link.display_name() == name);
    let others = links.links.iter().filter(|link| link.display_name() != name && around.contains(&link.name));
    let chosen = own.chain(others).take(MOST_AROUND + 1).map(|link| link.name.clone()).collect();
    Ok((links, chosen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Reader;

    #[test]
    fn two_samples_of_the_loopback_make_a_snapshot() {
        let mut counters = Counters::open("lo").expect("the loopback");
        let mut reader = Reader::new();
        let mut text = Vec::new();
        counters.settings(&mut text).expect("memory");
        reader.read("settings", text.as_slice()).expect("memory");
        for number in [1, 2] {
            let mut text = Vec::new();
            counters.sample(number, &mut text).expect("memory");
            reader.read("sample", text.as_slice()).expect("memory");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let snapshot = reader.finish();
        assert!(
            snapshot.interval.is_some_and(|interval| interval.as_millis() >= 15),
            "{:?}",
            snapshot.interval
        );
        let loopback = snapshot.interface("lo").expect("the loopback");
        let packets = loopback.totals.packets.as_ref().expect("counted");
        assert!(matches!(packets.delta(), crate::Delta::Counted(_)), "{packets:?}");
        assert!(snapshot.softnet.values().all(|row| row.processed.delta() != crate::Delta::OneSample));
        assert!(snapshot.cpu_count().is_some_and(|count| count > 0));
    }

    #[test]
    fn an_unknown_interface_is_an_error_with_the_known_ones() {
        let error = Counters::open("nothing0").err().expect("an error");
        assert!(
            error.to_string().starts_with("there is no interface nothing0 here; there are: lo"),
            "{error}"
        );
    }

    #[test]
    fn other_vectors_are_left_out() {
        let mut counters = Counters::open("lo").expect("the loopback");
        let text = "           CPU0\n  8:   5  IO-APIC  rtc0\n128:  7  PCI-MSI  eth0\nNMI:  0  x\n";
        assert_eq!(counters.own_vectors(text), text);
        counters.set_vectors(Some(["128".to_owned()].into()));
        assert_eq!(counters.own_vectors(text), "           CPU0\n128:  7  PCI-MSI  eth0\n");
    }
}
