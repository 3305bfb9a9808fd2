//! Which vectors serve which interface, and where they may go.

use super::bundle::{Output, Unread};
use super::files::{cat, text};
use super::links::Link;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What belongs to an interface's device.
struct Device {
    /// Names that its vectors may bear: the interface's, and that of a virtio device.
    names: Vec<Vec<u8>>,
    /// Its vectors, as sysfs lists them.
    vectors: BTreeSet<u32>,
}

/// Commands with outputs: which vectors each interface's device has, and the affinity of those and of the ones
/// that `/proc/interrupts` (its text) names after an interface.
pub(super) fn affinities(interrupts: Option<&str>, links: &[&Link]) -> Vec<(String, Output)> {
    let mut outputs = Vec::new();
    let mut devices = Vec::new();
    for link in links {
        let (device, listing) = device(link);
        outputs.extend(listing);
        devices.push(device);
    }
    let mut vectors: BTreeSet<u32> =
        devices.iter().flat_map(|device| device.vectors.iter().copied()).collect();
    let names: Vec<&[u8]> =
        devices.iter().flat_map(|device| device.names.iter().map(Vec::as_slice)).collect();
    for (vector, action) in interrupts.into_iter().flat_map(actions) {
        if names.iter().any(|name| mentions(action.as_bytes(), name)) {
            vectors.insert(vector);
        }
    }
    for vector in vectors {
        for file in ["smp_affinity_list", "effective_affinity_list"] {
            let path = PathBuf::from(format!("/proc/irq/{vector}/{file}"));
            match text(&path) {
                // Vectors that nobody requested are listed and have no folder; the second file is from Linux 4.12.
                Err(Unread(why)) if why == "No such file or directory" => {}
                output => outputs.push((cat(&path), output)),
            }
        }
    }
    outputs
}

/// Number and action of each line of `/proc/interrupts` that has a number: the action is what stands behind the
/// counts, the chip included.
fn actions(interrupts: &str) -> impl Iterator<Item = (u32, &str)> {
    interrupts.lines().filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let action = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c.is_ascii_whitespace());
        Some((number.trim().parse().ok()?, action))
    })
}

/// Whether `action` contains `name` as a word of its own: `eth0` in `i40e-eth0-TxRx-1`, not in `eth01-rx`.
fn mentions(action: &[u8], name: &[u8]) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    !name.is_empty()
        && action.windows(name.len()).enumerate().any(|(at, window)| {
            window == name
                && !is_part(at.checked_sub(1).and_then(|before| action.get(before)))
                && !is_part(action.get(at + name.len()))
        })
}

/// The device of an interface, and the command that lists its vectors, where it has a list.
fn device(link: &Link) -> (Device, Option<(String, Output)>) {
    let folder = link.folder().join("device");
    let mut device = Device { names: vec![link.name.clone()], vectors: BTreeSet::new() };
    let (Ok(()), Ok(target)) = (link.is_in_sysfs(), fs::canonicalize(&folder)) else { return (device, None) };
    let mut list = folder.join("msi_irqs");
    if let Some(name) = target.file_name().filter(|name| name.as_bytes().starts_with(b"virtio")) {
        // Vectors bear a virtio device's name and belong to the PCI device above it.
        device.names.push(name.as_bytes().to_vec());
        list = folder.join("../msi_irqs");
    }
    let found: Result<Vec<OsString>, Unread> = match fs::read_dir(&list) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.file_name()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            device.vectors.extend(line_interrupt(&folder));
            return (device, None);
        }
        Err(error) => Err(error.into()),
    };
    let numbers = |names: Vec<OsString>| -> BTreeSet<u32> {
        names.into_iter().filter_map(|name| name.to_str()?.parse().ok()).collect()
    };
    let found = found.map(numbers);
    if let Ok(vectors) = &found {
        device.vectors.extend(vectors);
    }
    let command = cat(&list).replacen("cat", "ls", 1);
    let output = found.map(|vectors| vectors.iter().map(|vector| format!("{vector}\n")).collect());
    (device, Some((command, output)))
}

/// The interrupt line of a PCI device without message-signalled interrupts; 0 is none.
fn line_interrupt(folder: &Path) -> Option<u32> {
    text(&folder.join("irq")).ok()?.trim().parse().ok().filter(|&line| line > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two CPUs; the chips and actions that kernels 4.19 to 6.12 print.
    const INTERRUPTS: &str = "           CPU0       CPU1
 16:          5          0   IO-APIC  16-fasteoi   ehci_hcd:usb1
128:       1000       2000   PCI-MSI 524288-edge      eth0-rx-0
129:          1          2  PCI-MSIX-0000:03:00.0   1-edge      i40e-eth0-TxRx-1
130:          1          2  PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
131:          1          2   PCI-MSI 1-edge      eth01-rx-0
NMI:          0          0   Non-maskable interrupts
";

    #[test]
    fn an_action_names_its_interface_as_a_word() {
        let of = |name: &[u8]| -> Vec<u32> {
            actions(INTERRUPTS)
                .filter(|(_, action)| mentions(action.as_bytes(), name))
                .map(|(n, _)| n)
                .collect()
        };
        assert_eq!(of(b"eth0"), [128, 129]);
        assert_eq!(of(b"virtio2"), [130]);
        assert_eq!((of(b"virtio"), of(b"")), (vec![], vec![]));
    }

    #[test]
    fn a_line_without_a_number_or_an_action_is_passed_over() {
        assert_eq!(actions(INTERRUPTS).count(), 5);
        assert_eq!(actions("no colon\n:\n 7:\n").collect::<Vec<_>>(), [(7, "")]);
    }
}
