//! Which distribution and board it is: `/etc/os-release`, OpenWrt's `/etc/openwrt_release`, `ubus call system board` and
//! the lines that its shell greets with.

use super::{Line, Outcome, Section, Tool};
use crate::{Architecture, Distribution, Fact, Quote, Snapshot, System};

pub(super) static RELEASE: Tool = Tool {
    name: "/etc/openwrt_release",
    command: |command| {
        ["/etc/openwrt_release", "/etc/os-release", "/usr/lib/os-release"]
            .iter()
            .any(|path| command.reads(path))
    },
    heading: |line| line.starts_with("DISTRIB_ID=") || line.starts_with("OPENWRT_RELEASE="),
    open: |_| Box::new(release),
};

pub(super) static BOARD: Tool = Tool {
    name: "ubus call system board",
    command: |command| command.program == "ubus" && command.text.contains("system board"),
    heading: |line| line.starts_with("\"board_name\":") || line.starts_with("\"rootfs_type\":"),
    open: |_| Box::new(Board { is_whole: false }),
};

pub(super) static GREETING: Tool = Tool {
    name: "OpenWrt",
    command: |_| false,
    heading: |line| greeting(line).is_some(),
    open: |_| {
        Box::new(|line: &Line<'_>, snapshot: &mut Snapshot| match greeting(line.trimmed()) {
            Some((name, release)) => {
                note(snapshot, name, Some(release), &line.quote());
                Outcome::Taken
            }
            None => Outcome::Over,
        })
    },
};

/// `swconfig dev switch0 show`, the switches of kernels before DSA; OpenWrt alone has it (package swconfig, cli.c).
pub(super) static SWITCH: Tool = Tool {
    name: "swconfig",
    command: |command| command.program == "swconfig",
    heading: |line| line.starts_with("link: port:") && line.contains(" link:"),
    open: |_| {
        Box::new(|line: &Line<'_>, snapshot: &mut Snapshot| {
            let text = line.trimmed();
            let is_heading = text.ends_with(':')
                && ["Global attr", "Port ", "VLAN "].iter().any(|one| text.starts_with(one));
            if !is_heading && !text.contains(": ") {
                return if text.is_empty() { Outcome::Skipped } else { Outcome::Over };
            }
            infer(snapshot, &line.quote());
            Outcome::Taken
        })
    },
};

/// ` OpenWrt 23.05.3, r23809-234f1a2efa`, `ImmortalWrt 24.10.1, r33000-…` (`/etc/banner`).
fn greeting(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(' ')?;
    let (release, revision) = rest.split_once(", r")?;
    let is_release = release.starts_with(|c: char| c.is_ascii_digit()) || release == "SNAPSHOT";
    let is_revision = revision.starts_with(|c: char| c.is_ascii_digit()) && !revision.contains(' ');
    (is_openwrt(name) && is_release && is_revision && !release.contains(' ')).then_some((name, release))
}

/// Whether a distribution is OpenWrt or made of it (ImmortalWrt, X-WRT).
fn is_openwrt(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("wrt")
}

/// Notes that only OpenWrt prints such, where nothing says more.
pub(super) fn infer(snapshot: &mut Snapshot, quote: &Quote) {
    if snapshot.distribution.is_none() {
        note(snapshot, "OpenWrt", None, quote);
    }
}

/// Notes the distribution; a release that is known stays.
fn note(snapshot: &mut Snapshot, name: &str, release: Option<&str>, quote: &Quote) {
    let known = snapshot.distribution.as_ref().and_then(|known| known.value.release.clone());
    let release = release.filter(|release| !release.is_empty()).map(str::to_owned).or(known);
    let found = Distribution { name: name.to_owned(), release, is_openwrt: is_openwrt(name) };
    snapshot.distribution = Some(Fact::new(found, quote.clone()));
    snapshot.system.get_or_insert_with(|| Fact::new(System::Linux, quote.clone()));
}

/// Lines `NAME=value`, `NAME='value'`, `NAME="value"`.
fn release(line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let text = line.trimmed();
    let Some((name, value)) = text.split_once('=') else {
        return if text.is_empty() { Outcome::Skipped } else { Outcome::Over };
    };
    if name.is_empty() || !name.bytes().all(|c| c.is_ascii_uppercase() || c == b'_' || c.is_ascii_digit()) {
        return Outcome::Over;
    }
    let value = value.trim_matches(['\'', '"']);
    let quote = line.quote();
    let known = snapshot.distribution.as_ref().map(|known| known.value.name.clone());
    match name {
        "DISTRIB_ID" | "NAME" => note(snapshot, value, None, &quote),
        "DISTRIB_RELEASE" | "VERSION_ID" => note(snapshot, &known.unwrap_or_default(), Some(value), &quote),
        "DISTRIB_TARGET" | "OPENWRT_BOARD" => {
            snapshot.board.get_or_insert_with(|| line.fact(value.to_owned()));
        }
        "DISTRIB_ARCH" | "OPENWRT_ARCH" => snapshot.note_architecture(Architecture::named(value), &quote),
        _ => {}
    }
    Outcome::Taken
}

/// JSON as `ubus` prints it, a value a line.
struct Board {
    is_whole: bool,
}

impl Section for Board {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if self.is_whole {
            return Outcome::Over;
        }
        let field = text.strip_prefix('"').and_then(|rest| rest.split_once("\":"));
        let Some((name, value)) = field else {
            self.is_whole = line.text.starts_with('}');
            let is_bracket = text.is_empty() || text.bytes().all(|c| b"{}[],".contains(&c));
            return if is_bracket { Outcome::Skipped } else { Outcome::Over };
        };
        let value = value.trim().trim_end_matches(',').trim_matches('"');
        let quote = line.quote();
        let known = snapshot.distribution.as_ref().map_or("OpenWrt", |known| &known.value.name).to_owned();
        match name {
            "kernel" => snapshot.kernel = Some(line.fact(value.to_owned())),
            "model" => snapshot.board = Some(line.fact(value.to_owned())),
            "distribution" => note(snapshot, value, None, &quote),
            "version" => note(snapshot, &known, Some(value), &quote),
            _ => infer(snapshot, &quote),
        }
        Outcome::Taken
    }
}
