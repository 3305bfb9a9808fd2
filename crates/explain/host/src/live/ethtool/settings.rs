//! `ethtool` without an option: speed, duplex, modes, whether there is a link.

use super::link_modes::{Class, LinkModes};
use super::{Ethtool, on_off};
use crate::live::bundle::{Output, Unread, printable};
use kernel::ethtool::{Command, Generic, Get, Ioctl, StringSet, bits, short, word, words};
use kernel::netlink::Attributes;
use std::fmt::Write as _;
use std::io;

/// What is known of a link; `None` where the driver or the kernel does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Settings {
    modes: Option<Modes>,
    /// Mbit/s; 0, 0xffff and 0xffff_ffff are unknown.
    speed: Option<u32>,
    lanes: Option<u32>,
    duplex: Option<u8>,
    autoneg: Option<u8>,
    port: Option<u8>,
    transceiver: Option<u8>,
    link: Option<bool>,
    /// `ETHTOOL_LINK_EXT_STATE_*`: why there is no link.
    reason: Option<u8>,
    /// Times that the link was lost.
    downs: Option<u32>,
}

/// Modes of both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Modes {
    supported: LinkModes,
    advertised: LinkModes,
    partner: LinkModes,
}

impl Ethtool {
    pub(super) fn link_settings(&mut self, name: &[u8], display_name: &str) -> Output {
        let settings = self.either(|generic| by_netlink(generic, name), |ioctl| by_ioctl(ioctl, name))?;
        if settings == Settings::default() {
            return Err(Unread("No data available".to_owned()));
        }
        Ok(render(display_name, &settings))
    }
}

/// Three requests, of which a driver may answer some. Where it answers none, its reason for the first is reported.
fn by_netlink(generic: &mut Generic, name: &[u8]) -> Result<Settings, Unread> {
    let answers = [Get::LinkModes, Get::LinkInfo, Get::LinkState].map(|get| generic.get(get, name));
    // Of what was not answered there are no attributes.
    let answers = match answers {
        [Err(why), Err(_), Err(_)] => return Err(why.into()),
        answers => answers.map(Result::unwrap_or_default),
    };
    let [modes, info, state] = answers.each_ref().map(|answer| Attributes::new(answer));
    let mut settings = Settings {
        // ETHTOOL_A_LINKINFO_PORT, _TRANSCEIVER.
        port: info.u8(2),
        transceiver: info.u8(6),
        // ETHTOOL_A_LINKSTATE_LINK, _EXT_STATE, _EXT_DOWN_CNT.
        link: state.u8(2).map(|link| link != 0),
        reason: state.u8(5),
        downs: state.u32(7),
        ..Settings::default()
    };
    link_modes(modes, &mut settings);
    Ok(settings)
}

/// ETHTOOL_A_LINKMODES_*.
fn link_modes(attributes: Attributes<'_>, settings: &mut Settings) {
    settings.autoneg = attributes.u8(2);
    settings.speed = attributes.u32(5);
    settings.duplex = attributes.u8(6);
    settings.lanes = attributes.u32(9);
    settings.modes = attributes.nest(3).map(|ours| {
        let ours = bits(ours);
        let partner = attributes.nest(4).map(bits).unwrap_or_default();
        Modes {
            supported: LinkModes::of(&ours, |_| true),
            advertised: LinkModes::of(&ours, |bit| bit.set),
            partner: LinkModes::of(&partner, |bit| bit.set),
        }
    });
}

/// `ETHTOOL_GLINKSETTINGS` (Linux 4.6) and `ETHTOOL_GLINK`.
fn by_ioctl(ioctl: &mut Ioctl, name: &[u8]) -> Result<Settings, Unread> {
    let link =
        ioctl.numbers(name, Command::Link, &[], 1).map(|link| link.first().is_some_and(|&link| link != 0));
    let settings = match (glinksettings(ioctl, name), &link) {
        (Err(why), Err(_)) => return Err(why.into()),
        (settings, _) => settings.unwrap_or_default(),
    };
    Ok(Settings { link: link.ok(), ..settings })
}

fn glinksettings(ioctl: &mut Ioctl, name: &[u8]) -> io::Result<Settings> {
    const STRUCTURE: usize = 48;
    // The byte at 15 says how many words each mask has; queried with another number, the kernel answers with the
    // negative of the right one and nothing else.
    let question = |count: u8| [0, 0, u32::from_ne_bytes([0, 0, 0, count])];
    let byte = |bytes: &[u8], at: usize| bytes.get(at).copied();
    let handshake = ioctl.bytes(name, Command::LinkSettings, &question(0), STRUCTURE)?;
    let count = byte(handshake, 15).map(|count| i8::from_ne_bytes([count])).ok_or_else(short)?;
    let count = u8::try_from(count.saturating_neg()).map_err(|_| short())?;
    let size = usize::from(count) * 4;
    let answer = ioctl.bytes(name, Command::LinkSettings, &question(count), STRUCTURE + 3 * size)?;
    if byte(answer, 15) != Some(count) {
        return Err(short());
    }
    let masks: Vec<Vec<u32>> = match size {
        0 => Vec::new(),
        size => answer.get(STRUCTURE..).unwrap_or_default().chunks(size).map(words).collect(),
    };
    let mut settings = Settings {
        speed: word(answer, 4),
        duplex: byte(answer, 8),
        port: byte(answer, 9),
        autoneg: byte(answer, 11),
        transceiver: byte(answer, 16),
        ..Settings::default()
    };
    let names = ioctl.strings(name, StringSet::LinkModes).unwrap_or_default();
    let names: Vec<String> = names.iter().map(|name| printable(name)).collect();
    let mode =
        |place: usize| masks.get(place).map(|mask| LinkModes::of_mask(mask, &names)).unwrap_or_default();
    settings.modes = Some(Modes { supported: mode(0), advertised: mode(1), partner: mode(2) });
    Ok(settings)
}

fn render(display_name: &str, settings: &Settings) -> String {
    let mut text = format!("Settings for {display_name}:\n");
    if let Some(modes) = &settings.modes {
        push_modes(modes, &mut text);
    }
    let mut line = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "\t{label}: {value}");
        }
    };
    line("Speed", settings.speed.map(speed));
    line("Lanes", settings.lanes.map(|lanes| lanes.to_string()));
    line("Duplex", settings.duplex.map(|duplex| named(&["Half", "Full"], duplex)));
    line("Auto-negotiation", settings.autoneg.map(|autoneg| on_off(autoneg != 0).to_owned()));
    line("Port", settings.port.map(port));
    line("Transceiver", settings.transceiver.map(|kind| named(&["internal", "external"], kind)));
    line("Link detected", settings.link.map(|link| detected(link, settings.reason)));
    line("Link Down Events", settings.downs.map(|downs| downs.to_string()));
    text
}

fn push_modes(modes: &Modes, text: &mut String) {
    let yes_no = |yes| if yes { "Yes" } else { "No" };
    let fec = |modes: &LinkModes| match modes.line(Class::Fec) {
        none if none.is_empty() => "Not reported".to_owned(),
        some => some,
    };
    let Modes { supported, advertised, partner } = modes;
    let _ = writeln!(text, "\tSupported ports: [ {} ]", supported.line(Class::Port));
    text.push_str(&supported.paragraph("Supported link modes:   "));
    let _ = writeln!(text, "\tSupported pause frame use: {}", supported.pause());
    let _ = writeln!(text, "\tSupports auto-negotiation: {}", yes_no(supported.autoneg()));
    let _ = writeln!(text, "\tSupported FEC modes: {}", fec(supported));
    for (side, modes) in [("Advertised", advertised), ("Link partner advertised", partner)] {
        if side.starts_with("Link") && modes.is_empty() {
            continue;
        }
        text.push_str(&modes.paragraph(&format!("{side} link modes:  ")));
        let _ = writeln!(text, "\t{side} pause frame use: {}", modes.pause());
        let _ = writeln!(text, "\t{side} auto-negotiation: {}", yes_no(modes.autoneg()));
        let _ = writeln!(text, "\t{side} FEC modes: {}", fec(modes));
    }
}

fn speed(mbits: u32) -> String {
    match mbits {
        0 | 0xffff | u32::MAX => "Unknown!".to_owned(),
        mbits => format!("{mbits}Mb/s"),
    }
}

fn port(port: u8) -> String {
    match port {
        0xef => "None".to_owned(),
        0xff => "Other".to_owned(),
        port => named(&["Twisted Pair", "AUI", "MII", "FIBRE", "BNC", "Direct Attach Copper"], port),
    }
}

fn named(names: &[&str], value: u8) -> String {
    names.get(usize::from(value)).map_or_else(|| format!("Unknown! ({value})"), |&name| name.to_owned())
}

fn detected(link: bool, reason: Option<u8>) -> String {
    const REASONS: [&str; 11] = [
        "Autoneg",
        "Link training failure",
        "Logical mismatch",
        "Bad signal integrity",
        "No cable",
        "Cable issue",
        "EEPROM issue",
        "Calibration failure",
        "Power budget exceeded",
        "Overheat",
        "Module",
    ];
    let known = |reason: u8| {
        REASONS.get(usize::from(reason)).map_or_else(|| reason.to_string(), |&why| why.to_owned())
    };
    let answer = if link { "yes" } else { "no" };
    reason.map_or_else(|| answer.to_owned(), |reason| format!("{answer} ({})", known(reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_below_what_both_ends_can_shows_both() {
        let gigabit = LinkModes::of_mask(&[0x60ef], &[]);
        let settings = Settings {
            modes: Some(Modes { supported: gigabit.clone(), advertised: gigabit.clone(), partner: gigabit }),
            speed: Some(100),
            duplex: Some(0),
            autoneg: Some(1),
            port: Some(0),
            link: Some(true),
            ..Settings::default()
        };
        let text = render("eth0", &settings);
        assert!(text.starts_with("Settings for eth0:\n\tSupported ports: [ TP ]\n"), "{text}");
        assert!(
            text.contains("\tLink partner advertised link modes:  10baseT/Half 10baseT/Full\n"),
            "{text}"
        );
        let end = "\tSpeed: 100Mb/s\n\tDuplex: Half\n\tAuto-negotiation: on\n\tPort: Twisted Pair\n\tLink detected: yes\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn what_a_driver_does_not_say_is_not_printed() {
        assert_eq!(render("tun0", &Settings::default()), "Settings for tun0:\n");
        let down = Settings {
            speed: Some(u32::MAX),
            duplex: Some(255),
            link: Some(false),
            reason: Some(4),
            ..Settings::default()
        };
        assert_eq!(
            render("eth0", &down),
            "Settings for eth0:\n\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tLink detected: no (No cable)\n"
        );
    }
}
