//! A rule of udev that runs the script of settings, for machines without systemd (eudev).

use super::script::Vectors;
use super::unit::{script_file, script_path};
use crate::plan::{Plan, Reason};
use crate::{File, Lasting, Origin};
use host::setting::{InterfaceName, Setting};

/// An interface that is renamed has its name in the event `move`.
pub(crate) fn files(plan: &mut Plan, name: &InterfaceName, settings: &[&Lasting], origin: &Origin) {
    let (vectors, others): (Vec<&Lasting>, Vec<&Lasting>) =
        settings.iter().partition(|lasting| matches!(lasting.setting, Setting::IrqAffinity { .. }));
    for lasting in vectors {
        plan.exclude(&lasting.setting, Reason::BeforeUp);
    }
    if others.is_empty() {
        return;
    }
    plan.files.push(script_file(name, &others, Vectors::AreThere, origin));
    let text = format!(
        "# {}\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", ENV{{INTERFACE}}==\"{name}\", RUN+=\"/bin/sh {}\"\n",
        origin.line(),
        script_path(name)
    );
    plan.files.push(File::text(format!("/etc/udev/rules.d/90-rxlane-{name}.rules"), 0o644, text));
}
