//! Shell commands for settings (POSIX sh, as dash and BusyBox have it).

use crate::Lasting;
use host::setting::{Setting, quoted};
use std::fmt::Write;

/// Where ethtool and ip are, whatever the search path of who runs the script.
pub(crate) const SEARCH_PATH: &str = "PATH=/usr/sbin:/usr/bin:/sbin:/bin\n";

/// Seconds that a script waits for the interface to come up and request its interrupts.
const PATIENCE: u32 = 60;

/// Whether a script waits for interrupts, which many drivers request when the interface comes up (`ndo_open`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vectors {
    Wait,
    AreThere,
}

/// In the order in which drivers forget nothing: the number of channels and the rings first, since many drivers reset the RETA
/// with them.
fn rank(setting: &Setting) -> u8 {
    match setting {
        Setting::Channels { .. } => 0,
        Setting::Ring { .. } => 1,
        Setting::IrqAffinity { .. } => 3,
        _ => 2,
    }
}

/// The commands, each of which is tried whatever happened to those before; `$failed` is not empty where one failed.
pub(crate) fn commands(settings: &[&Lasting], vectors: Vectors) -> String {
    let mut sorted = settings.to_vec();
    sorted.sort_by_key(|lasting| rank(&lasting.setting));
    let mut text = String::from("failed=\n");
    let mut is_waiting = vectors == Vectors::Wait;
    for lasting in sorted {
        let Setting::IrqAffinity { cpus, .. } = &lasting.setting else {
            let _ = writeln!(text, "{} || failed=1", lasting.setting.command());
            continue;
        };
        let Some(vector) = &lasting.vector else { continue };
        let name = quoted(&vector.name);
        if std::mem::take(&mut is_waiting) {
            let _ = write!(
                text,
                "# The driver requests its interrupts when the interface comes up.\n\
                 seconds=0\n\
                 until ls -d /proc/irq/*/{name} > /dev/null 2>&1 || [ \"$seconds\" -ge {PATIENCE} ]; do\n    \
                     sleep 1\n    \
                     seconds=$((seconds + 1))\n\
                 done\n"
            );
        }
        let _ = write!(
            text,
            "for vector in /proc/irq/*/{name}; do\n    \
                 echo {} > \"${{vector%/*}}/smp_affinity_list\" || failed=1\n\
             done\n",
            cpus.list()
        );
    }
    text
}
