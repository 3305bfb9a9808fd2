//! OpenWrt: `uci` for RPS, which its own service would overwrite, and a hotplug script for the rest.

use super::script::{self, SEARCH_PATH, Vectors};
use crate::machine::OpenWrt;
use crate::plan::Plan;
use crate::{File, Lasting, Origin};
use host::setting::{Setting, quoted};

/// `packet_steering` has the value 2, all CPUs for each device, from 24.10 on; there 1 gives each device one CPU
/// (`packet-steering.uc`, package netifd). Before, 1 is all CPUs and nothing else is known (`packet-steering.sh`).
fn packet_steering(release: Option<(u32, u32)>) -> u32 {
    if release.is_some_and(|release| release < (24, 10)) { 1 } else { 2 }
}

/// The service `packet_steering` writes the RPS masks of all devices whenever an interface changes, so that masks of a script
/// would not last.
pub(crate) fn files(plan: &mut Plan, settings: &[Lasting], openwrt: &OpenWrt, origin: &Origin) {
    let is_sysctl = |one: &&Lasting| matches!(one.setting, Setting::Sysctl { .. });
    let (masks, rest): (Vec<&Lasting>, Vec<&Lasting>) = settings
        .iter()
        .filter(|one| !is_sysctl(one))
        .filter(|one| !matches!(one.setting, Setting::IrqAffinity { .. }) || one.vector.is_some())
        .partition(|one| matches!(one.setting, Setting::Rps { .. }));
    if masks.iter().any(|one| !matches!(&one.setting, Setting::Rps { cpus, .. } if cpus.is_empty())) {
        let commands = [
            format!("uci set network.globals.packet_steering='{}'", packet_steering(openwrt.release)),
            "uci commit network".to_owned(),
            "/etc/init.d/packet_steering restart".to_owned(),
        ];
        plan.commands.extend(commands);
        let former = match &openwrt.packet_steering {
            Some(value) => format!("uci set network.globals.packet_steering={}", quoted(value)),
            None => "uci delete network.globals.packet_steering".to_owned(),
        };
        plan.undo.extend([
            former,
            "uci commit network".to_owned(),
            "/etc/init.d/packet_steering restart".to_owned(),
        ]);
    }
    if rest.is_empty() {
        return;
    }
    let text = format!(
        "#!/bin/sh\n# {}\n[ \"$ACTION\" = ifup ] || exit 0\n{SEARCH_PATH}{}[ -z \"$failed\" ]\n",
        origin.line(),
        script::commands(&rest, Vectors::AreThere)
    );
    plan.files.push(File::text("/etc/hotplug.d/iface/99-rxlane", 0o755, text));
}
