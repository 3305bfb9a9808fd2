//! A script that NetworkManager runs when it has activated an interface (NetworkManager-dispatcher(8): owned by root, writable
//! by nobody else, executable).

use super::script::{self, SEARCH_PATH, Vectors};
use crate::plan::Plan;
use crate::{File, Lasting, Origin};
use host::setting::{InterfaceName, quoted};

/// The interface of the event may be one that stands on this one (`ppp0`, a VLAN), so every event counts; a value that is
/// set already is not set again by the kernel.
pub(crate) fn file(plan: &mut Plan, name: &InterfaceName, settings: &[&Lasting], origin: &Origin) {
    let folder = quoted(&format!("/sys/class/net/{name}"));
    let text = format!(
        "#!/bin/sh\n# {}\n\
         [ \"$2\" = up ] && [ -d {folder} ] || exit 0\n\
         {SEARCH_PATH}{}[ -z \"$failed\" ]\n",
        origin.line(),
        script::commands(settings, Vectors::AreThere)
    );
    plan.files.push(File::text(format!("/etc/NetworkManager/dispatcher.d/90-rxlane-{name}"), 0o755, text));
}
