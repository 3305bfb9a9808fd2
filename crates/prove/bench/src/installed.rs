//! Programs of others that do a part of the work, and the packages that have them.

use std::os::unix::fs::PermissionsExt;

/// Program, and its package on Debian.
const PACKAGES: [(&str, &str); 8] = [
    ("ethtool", "ethtool"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("mount", "mount"),
    ("ping", "iputils-ping"),
    ("pppd", "ppp"),
    ("pppoe", "pppoe"),
    ("sh", "dash"),
];

/// What is said of a program that is not on the path; `None`: it is.
pub fn missing(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |file: std::path::PathBuf| {
        file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') || std::env::split_paths(&path).any(|folder| is_program(folder.join(program))) {
        return None;
    }
    let package = PACKAGES.iter().find(|(known, _)| *known == program);
    let remedy = package.map(|(_, package)| format!(" (Debian: apt install {package})"));
    Some(format!("the program {program} is missing{}", remedy.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        assert_eq!(missing("/nowhere/at-all"), None);
        assert_eq!(missing("no-such-program").as_deref(), Some("the program no-such-program is missing"));
    }
}
