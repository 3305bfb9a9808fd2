//! `/etc/sysctl.d/99-rxlane.conf` (sysctl.d(5)): read at boot by systemd-sysctl, by `sysctl --system` of other systems, and by
//! OpenWrt's `/etc/init.d/sysctl`.

use crate::machine::{Machine, System};
use crate::plan::{Plan, Reason};
use crate::{File, Lasting, Origin};
use host::setting::Setting;
use std::fmt::Write;

pub(crate) const NAME: &str = "99-rxlane.conf";

pub(crate) fn file(plan: &mut Plan, settings: &[Lasting], machine: &Machine, origin: &Origin) {
    let mut text = String::new();
    for lasting in settings {
        let Setting::Sysctl { name, value } = &lasting.setting else { continue };
        let later = machine.later_sysctls.iter().find(|(later, _)| later == name);
        match (&machine.system, later) {
            (System::Namespace, _) => plan.exclude(&lasting.setting, Reason::OtherNamespace),
            (_, Some((_, path))) => plan.exclude(&lasting.setting, Reason::SetLater(path.clone())),
            (_, None) => {
                let _ = writeln!(text, "{name} = {value}");
            }
        }
    }
    if !text.is_empty() {
        let text = format!("# {}\n{text}", origin.line());
        plan.files.push(File::text(format!("/etc/sysctl.d/{NAME}"), 0o644, text));
    }
}
