//! What the rules on frames that a device cannot hash both ask.

use super::one_flow;
use crate::report::{Evidence, Remedy};
use crate::{Carries, Case, steering};
use format::thousands;
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

/// Part of the sample's frames below which such frames are no load.
const MINOR: f64 = 0.1;

/// Whether the sample shows that few of the frames are such. A sample without any of what the machine says to carry
/// was taken elsewhere, and shows nothing.
pub(super) fn is_minor(carries: &Carries) -> bool {
    carries.share.is_some_and(|share| share < MINOR) && !is_elsewhere(carries)
}

/// Whether the sample holds none of the frames that the machine says to carry.
pub(super) fn is_elsewhere(carries: &Carries) -> bool {
    carries.share == Some(0.0) && !carries.quotes.is_empty()
}

/// Whether such frames are one flow's, by a sample that holds them.
pub(super) fn is_undivided(case: &Case<'_>, interface: &Interface, carries: &Carries) -> bool {
    !is_elsewhere(carries) && one_flow::is_undivided(case, interface)
}

/// What dealing such frames by flow would bring, which a sample without them does not tell.
pub(super) fn expected(case: &Case<'_>, interface: &Interface, carries: &Carries) -> String {
    if is_elsewhere(carries) {
        return "Cannot tell from a traffic sample without such frames: as many CPUs as there are busy flows can share \
                the work; one flow stays on one CPU."
            .to_owned();
    }
    steering::expected(case, interface)
}

/// RPS for such frames of a queue.
pub(super) fn rps(case: &Case<'_>, interface: &Interface, queue: u32, carries: &Carries) -> Remedy {
    let mut rps = steering::rps(case, interface, &[queue]);
    if is_elsewhere(carries) {
        rps.expected = expected(case, interface, carries);
        rps.modelled = None;
    }
    rps
}

/// Steering of such frames of a queue.
pub(super) fn xdp(case: &Case<'_>, interface: &Interface, queue: u32, carries: &Carries) -> Option<Remedy> {
    // The model would take the flows of another line's sample.
    if is_elsewhere(carries) {
        steering::xdp(case, interface)
    } else {
        steering::xdp_of(case, interface, queue)
    }
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
    let share = share.filter(|share| *share > 0.0)?;
    let mix = case.mix(interface)?;
    let frames = thousands(mix.stacks.iter().map(|row| row.frames).sum());
    Some(Evidence {
        from: format!("traffic sample ({})", mix.source.files.join(", ")),
        text: format!("{what}: {:.0} % of {frames} frames", share * 100.0),
    })
}
