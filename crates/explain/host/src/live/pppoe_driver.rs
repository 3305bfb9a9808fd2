//! Functions of the kernel's PPPoE driver, which say whether it coalesces: its BTF, else the kernel's symbols.

use super::Error;
use super::bundle::{Bundle, Output, Unread};
use super::files::{bytes, is_missing, of_this_namespace};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// What the driver's own functions begin with (drivers/net/ppp/pppoe.c).
const PREFIX: &str = "pppoe_";
/// The function that every such driver has.
const RECEIVES: &str = "pppoe_rcv";

/// Writes the names; nothing where the kernel has no such driver, or has not loaded it.
pub(super) fn put(bundle: &mut Bundle<'_, impl Write>) -> Result<(), Error> {
    if is_missing(&of_this_namespace("pppoe")) {
        return Ok(());
    }
    read(Path::new("/")).iter().try_for_each(|(command, output)| bundle.put(command, output))
}

/// The command that shows the names below a root folder, with what it prints. The BTF of a module is small, that of a kernel that has
/// the driver built in takes milliseconds, and the symbols of a kernel are a hundred times as slow.
fn read(root: &Path) -> Vec<(String, Output)> {
    for btf in ["sys/kernel/btf/pppoe", "sys/kernel/btf/vmlinux"] {
        let names = bytes(&root.join(btf)).map(|btf| names_in(&btf)).unwrap_or_default();
        if names.iter().any(|name| name == RECEIVES) {
            return vec![(format!("strings /{btf} | grep {PREFIX}"), Ok(names.join("\n") + "\n"))];
        }
    }
    vec![(format!("grep {PREFIX} /proc/kallsyms"), symbols(&root.join("proc/kallsyms")))]
}

/// Names in the string section of BTF, which ends each with a zero (Documentation/bpf/btf.rst).
fn names_in(btf: &[u8]) -> Vec<String> {
    let strings = btf.split(|&byte| byte == 0);
    let names = strings.filter(|string| string.starts_with(PREFIX.as_bytes()));
    names.filter_map(|name| Some(std::str::from_utf8(name).ok()?.to_owned())).collect()
}

/// Functions among the symbols, without their addresses: whoever knows one knows where the kernel lies.
fn symbols(path: &Path) -> Output {
    let mut out = String::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line.map_err(Unread::from)?;
        let Some((address, rest)) = line.split_once(' ') else { continue };
        let Some(name) = rest.strip_prefix("t ").or_else(|| rest.strip_prefix("T ")) else { continue };
        if name.starts_with(PREFIX) {
            let _ = writeln!(out, "{:0>1$} {rest}", "", address.len());
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PppoeDriver, Symbols};
    use std::fs;

    const DRIVER: [&str; 9] = [
        "pppoe_rcv",
        "pppoe_connect",
        "pppoe_create",
        "pppoe_getname",
        "pppoe_init_net",
        "pppoe_ioctl",
        "pppoe_release",
        "pppoe_sendmsg",
        "pppoe_xmit",
    ];

    fn symbols_of(names: &[&str]) -> String {
        let lines = names.iter().map(|name| format!("ffffffffc09a{:04x} t {name}\t[pppoe]\n", name.len()));
        let others = "ffffffff81000000 T _stext\nffffffffc09b0000 d pppoe_proto\t[pppoe]\n".to_owned();
        lines.fold(others, |text, line| text + &line)
    }

    fn btf_of(names: &[&str]) -> Vec<u8> {
        let magic = [0x9f, 0xeb, 1, 0];
        let strings = names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat());
        magic.into_iter().chain(strings).collect()
    }

    /// What a machine with these files says, and the commands that its bundle has.
    fn of(files: &[(&str, Vec<u8>)]) -> (Option<PppoeDriver>, String) {
        let root = tempfile::tempdir().expect("a folder");
        for (path, bytes) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, bytes).expect("a file");
        }
        let mut text = Vec::new();
        let mut bundle = Bundle::begin(&mut text).expect("memory");
        for (command, output) in read(root.path()) {
            bundle.put(&command, &output).expect("memory");
        }
        let text = String::from_utf8(text).expect("UTF-8");
        (crate::text::read(&text).pppoe_driver.map(|fact| fact.value), text)
    }

    #[test]
    fn the_driver_is_probed_by_btf_then_by_symbols() {
        let with = [&DRIVER[..], &["pppoe_gro_receive", "pppoe_gro_complete"]].concat();
        let (btf, builtin, kallsyms) = ("sys/kernel/btf/pppoe", "sys/kernel/btf/vmlinux", "proc/kallsyms");
        let symbols_of = |names: &[&str]| symbols_of(names).into_bytes();
        for (files, expected) in [
            (vec![(btf, btf_of(&with)), (kallsyms, symbols_of(&DRIVER))], Some((true, Symbols::Btf))),
            (vec![(btf, btf_of(&DRIVER)), (builtin, btf_of(&with))], Some((false, Symbols::Btf))),
            (vec![(builtin, btf_of(&with))], Some((true, Symbols::Btf))),
            (
                vec![(builtin, btf_of(&["ppp_input"])), (kallsyms, symbols_of(&with))],
                Some((true, Symbols::Kallsyms)),
            ),
            (vec![(kallsyms, symbols_of(&DRIVER))], Some((false, Symbols::Kallsyms))),
            // Not loaded.
            (vec![(kallsyms, symbols_of(&[]))], None),
            (vec![], None),
        ] {
            let names: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
            let (found, bundle) = of(&files);
            let expected = expected.map(|(coalesces, symbols)| PppoeDriver { coalesces, symbols });
            assert_eq!(found, expected, "{names:?}: {bundle}");
            assert!(!bundle.contains("ffff"), "{bundle}");
        }
    }

    #[test]
    fn symbols_that_cannot_be_read_say_so() {
        let (_, bundle) = of(&[]);
        assert!(bundle.contains("$ grep pppoe_ /proc/kallsyms\n# not read: No such file"), "{bundle}");
    }
}
