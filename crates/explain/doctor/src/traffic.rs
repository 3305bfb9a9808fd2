//! A sample of traffic, and how a device distributes it.

use crate::{Case, Device};
use explain::report::Steered;
use explain::{Options, Report as Mix};
use host::Interface;
use nic::{Profile, Receiver, Setup};

/// Opens the sample anew: each question reads it once.
type Open = Box<dyn Fn() -> Vec<capture::Capture>>;

/// A sample of traffic: captures, which can be read again.
pub struct Traffic {
    open: Open,
    interface: Option<String>,
    cpus: u16,
}

impl Traffic {
    /// `open` gives the captures, from their beginning; `interface` is where they were taken, `None` where that is
    /// not known (then they count for every device); `cpus` is how many steering would spread to.
    pub fn new(
        open: impl Fn() -> Vec<capture::Capture> + 'static,
        interface: Option<String>,
        cpus: u16,
    ) -> Traffic {
        Traffic { open: Box::new(open), interface, cpus: cpus.max(1) }
    }

    /// Whether there is any frame in it.
    pub(crate) fn has_frames(&self) -> bool {
        (self.open)().iter_mut().any(|capture| capture.next_frame().is_some())
    }

    /// Whether the sample was taken on this device, or on something that stands on it.
    pub(crate) fn is_about(&self, device: &Device<'_>, case: &Case<'_>) -> bool {
        self.interface.as_deref().is_none_or(|taken| case.snapshot().physical(taken) == device.name)
    }

    /// How the device distributes the sample as it is set up now; and whether that is known: where no single profile
    /// fits, or its hash function is none that is computed here, the queues mean nothing.
    pub(crate) fn on(&self, device: &Interface, case: &Case<'_>) -> Option<(Mix, bool)> {
        self.over(device, case, self.cpus)
    }

    /// What spreading its flows over so many CPUs comes to.
    pub(crate) fn steered(&self, device: &Interface, case: &Case<'_>, cpus: u16) -> Option<Steered> {
        self.over(device, case, cpus).map(|(mix, _)| mix.steered)
    }

    fn over(&self, device: &Interface, case: &Case<'_>, cpus: u16) -> Option<(Mix, bool)> {
        let function = device.reta.as_ref().and_then(|reta| reta.get().function.as_deref());
        let is_computed = function.is_none_or(|function| function == "toeplitz");
        if let ([profile], true) = (&case.profiles(device)[..], is_computed)
            && let Some(mix) = self.counted(profile, &setup(device, case), cpus)
        {
            return Some((mix, true));
        }
        let mix = self.counted(case.any_profile()?, &Setup::default(), cpus)?;
        Some((mix, false))
    }

    /// How a device would distribute it under another setup. `None` where the device refuses the setup.
    pub(crate) fn with(&self, profile: &Profile, setup: &Setup) -> Option<Mix> {
        self.counted(profile, setup, self.cpus)
    }

    fn counted(&self, profile: &Profile, setup: &Setup, cpus: u16) -> Option<Mix> {
        let receiver = Receiver::new(profile.clone(), setup).ok()?;
        let options = Options { cpus, workers: 1, nic_assumed: false };
        explain::explain((self.open)(), &receiver, &options).ok()
    }
}

/// A device's settings, as far as the snapshot knows them.
pub fn setup(device: &Interface, case: &Case<'_>) -> Setup {
    let reta = device.reta.as_ref().map(|seen| seen.get());
    Setup {
        queues: case.queue_count(device).and_then(|count| u16::try_from(count).ok()),
        key: reta.and_then(|reta| reta.key.clone()),
        table: reta.and_then(|reta| reta.entries.iter().map(|&queue| u16::try_from(queue).ok()).collect()),
        fields: device
            .hash_fields
            .iter()
            .filter_map(|(flow, fields)| format!("{flow}={}", fields.get()).parse().ok())
            .collect(),
    }
}
