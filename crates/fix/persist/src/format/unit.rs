//! A script of settings, and the unit of systemd that runs it when the device is there.

use super::script::{self, SEARCH_PATH, Vectors};
use crate::plan::Plan;
use crate::{File, Lasting, Origin};
use host::setting::InterfaceName;

/// Where units of the machine's administrator are (systemd.unit(5)).
pub(crate) const UNITS: &str = "/etc/systemd/system";

/// As `systemd-escape` writes it: `-` and what is no letter, digit, `:`, `_` or `.` is `\xNN` (systemd.unit(5), "String Escaping
/// for Inclusion in Unit Names").
pub(crate) fn escaped(name: &str) -> String {
    let escape = |(place, byte): (usize, u8)| match byte {
        b'/' => "-".to_owned(),
        b'.' if place == 0 => "\\x2e".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b":_.".contains(&byte) => char::from(byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    name.bytes().enumerate().map(escape).collect()
}

/// The script, for who runs it at boot.
pub(crate) fn script_file(
    name: &InterfaceName,
    settings: &[&Lasting],
    vectors: Vectors,
    origin: &Origin,
) -> File {
    let commands = script::commands(settings, vectors);
    let text = format!("#!/bin/sh\n# {}\n{SEARCH_PATH}{commands}[ -z \"$failed\" ]\n", origin.line());
    File::text(script_path(name), 0o755, text)
}

pub(crate) fn script_path(name: &InterfaceName) -> String {
    format!("/etc/rxlane/settings-{name}")
}

/// The unit, its script, and the link that has systemd start it with the device (`systemctl enable` would make the same).
///
/// The shell is named, so that it does not matter whether a file below `/etc` may be executed (`noexec`, SELinux).
pub(crate) fn files(plan: &mut Plan, name: &InterfaceName, settings: &[&Lasting], origin: &Origin) {
    if settings.is_empty() {
        return;
    }
    plan.files.push(script_file(name, settings, Vectors::Wait, origin));
    let escaped = escaped(name.as_str());
    let unit = format!("rxlane-settings@{escaped}.service");
    let device = format!("sys-subsystem-net-devices-{escaped}.device");
    let text = format!(
        "# {}\n\
         [Unit]\n\
         Description=Receive settings of {name}\n\
         BindsTo={device}\n\
         After={device} network.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart=/bin/sh {}\n\
         \n\
         [Install]\n\
         WantedBy={device}\n",
        origin.line(),
        script_path(name)
    );
    plan.files.push(File::text(format!("{UNITS}/{unit}"), 0o644, text));
    plan.files.push(File::link(format!("{UNITS}/{device}.wants/{unit}"), format!("../{unit}")));
}
