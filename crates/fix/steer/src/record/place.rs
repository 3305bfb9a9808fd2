//! The name under which records are filed.

use std::path::Path;
use xdp::{Attachment, Dead};

/// Where the pins of an attachment are, under which its records are filed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub namespace: u64,
    /// The interface as it was called then. A space and the index follow where a renamed one had that name before.
    pub name: String,
}

impl Place {
    pub fn new(namespace: u64, interface: &str) -> Place {
        Place { namespace, name: interface.to_owned() }
    }

    pub fn of(attachment: &Attachment) -> Place {
        let interface = attachment.interface();
        Place::of_folder(&attachment.folder())
            .unwrap_or_else(|| Place::new(interface.namespace, attachment.attached_as()))
    }

    pub fn of_dead(dead: &Dead) -> Place {
        Place::of_folder(&dead.folder).unwrap_or_else(|| Place::new(dead.namespace, &dead.interface))
    }

    /// `…/NAMESPACE/INTERFACE`, with colons for the dots of the name.
    fn of_folder(folder: &Path) -> Option<Place> {
        let name = folder.file_name()?.to_str()?.replace(':', ".");
        let namespace = folder.parent()?.file_name()?.to_str()?.parse().ok()?;
        Some(Place { namespace, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_bear_the_names_of_pins() {
        let place = |folder: &str| Place::of_folder(Path::new(folder));
        let steer = "/sys/fs/bpf/rxlane/steer/4026531840";
        assert_eq!(place(&format!("{steer}/wan0")), Some(Place::new(4_026_531_840, "wan0")));
        assert_eq!(place(&format!("{steer}/eth0:35 9")), Some(Place::new(4_026_531_840, "eth0.35 9")));
        assert_eq!(place("/sys/fs/bpf/rxlane/steer"), None);
    }
}
