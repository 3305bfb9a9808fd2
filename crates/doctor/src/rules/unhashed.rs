//! What the rules on frames that a device cannot hash both ask.

use crate::Case;
use crate::report::Evidence;
use explain::grouped;
use host::Interface;
use nic::spread::{self, Traffic, Verdict};

/// Whether the device hashes such traffic; `None` where no profile fits, one does not tell, or two differ.
/// `traffic` is spelt as for `rxlane nics --can`.
pub(super) fn is_hashed(case: &Case<'_>, interface: &Interface, traffic: &str) -> Option<bool> {
    let traffic: Traffic = traffic.parse().ok()?;
    case.agreed(interface, |profile| match spread::judge(profile, &traffic) {
        Verdict::Yes(_) => Some(true),
        Verdict::No(_) => Some(false),
        Verdict::Unknown(_) => None,
    })
}

/// Modes of the device in which it would, and that an unmodified driver can be told to use, in words.
pub(super) fn modes(case: &Case<'_>, interface: &Interface, traffic: &str) -> Vec<String> {
    let ([profile], Ok(traffic)) = (&case.profiles(interface)[..], traffic.parse::<Traffic>()) else {
        return Vec::new();
    };
    let answer = spread::answer(profile, &traffic);
    let available = answer.modes.into_iter().filter(|mode| mode.available == Some(true));
    available.map(|mode| format!("{}: {}", mode.title, mode.enable)).collect()
}

/// What the device is called in a sentence: by its profile where one fits, else by its driver.
pub(super) fn device(case: &Case<'_>, interface: &Interface) -> String {
    match (&case.profiles(interface)[..], &interface.driver) {
        ([profile], _) => profile.title().to_owned(),
        (_, Some(driver)) => format!("a device of the driver {}", driver.value),
        _ => "this device".to_owned(),
    }
}

/// The lines that say which device it is.
pub(super) fn identity(interface: &Interface) -> Vec<host::Quote> {
    [&interface.pci, &interface.model, &interface.driver]
        .into_iter()
        .flatten()
        .map(|fact| fact.quote.clone())
        .take(1)
        .collect()
}

/// Commands that tell which device it is.
pub(super) fn who(case: &Case<'_>, interface: &Interface) -> Vec<String> {
    match case.system() {
        Some(host::System::FreeBsd) => vec!["pciconf -lv".to_owned()],
        Some(host::System::NetBsd) => vec!["dmesg".to_owned()],
        _ => vec![format!("ethtool -i {}", crate::steering::name(interface)), "lspci -nn".to_owned()],
    }
}

/// The traffic sample as evidence that part of it is such.
pub(super) fn sampled(
    case: &Case<'_>,
    interface: &Interface,
    what: &str,
    share: Option<f64>,
) -> Option<Evidence> {
    let mix = case.mix(interface)?;
    let frames = grouped(mix.stacks.iter().map(|row| row.frames).sum());
    Some(Evidence {
        from: format!("traffic sample ({})", mix.source.files.join(", ")),
        text: format!("{what}: {:.0} % of {frames} frames", share? * 100.0),
    })
}
