//! What is shipped with the program: units of systemd, scripts, the package of OpenWrt.

use crate::run::{BINARY, Ended};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{program, require};

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

#[test]
fn the_units_are_such_that_systemd_takes() {
    let Some(analyze) = require("systemd-analyze", program("systemd-analyze")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let units = fs::read_dir(packaging().join("systemd")).expect("units");
    let mut verified = 0;
    for unit in units.map(|unit| unit.expect("a unit").path()) {
        let Some(name) = unit.file_stem().and_then(|name| name.to_str()) else { continue };
        if unit.extension().is_none_or(|extension| extension != "service") {
            continue;
        }
        // It is not installed where systemd looks, nor are its manual pages.
        let text = fs::read_to_string(&unit).expect("a unit");
        let text = text.replace("=rxlane ", &format!("={BINARY} "));
        let text = text.replace("=-rxlane ", &format!("=-{BINARY} "));
        let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("Documentation=")).collect();
        let path = folder.path().join(format!("{}@wan0.service", name.trim_end_matches('@')));
        fs::write(&path, text.join("\n")).expect("a unit");
        let done = Command::new(&analyze).arg("verify").arg(&path).output();
        done.expect("it starts").omits("wan0.service");
        verified += 1;
    }
    assert!(verified >= 6, "{verified} units");
}

#[test]
fn shellcheck_finds_nothing_in_the_scripts() {
    let Some(shellcheck) = require("shellcheck", program("shellcheck")) else { return };
    for (shell, scripts) in [
        ("bash", &["packaging/dist", "packaging/packages"][..]),
        (
            "sh",
            &[
                "packaging/debian/rxlane.postinst",
                "packaging/debian/rxlane.prerm",
                "packaging/debian/rxlane.postrm",
            ],
        ),
        // BusyBox's, which has local variables as well.
        ("dash", &["packaging/openwrt/rxlane/files/rxlane.init"]),
    ] {
        let mut command = Command::new(&shellcheck);
        command
            .args(["--external-sources", "--shell", shell])
            .args(scripts)
            .current_dir(packaging().join(".."));
        let output = command.output().expect("it starts");
        let found = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{found}");
    }
}

#[test]
fn the_package_of_openwrt_has_the_version_of_the_program() {
    let makefile = fs::read_to_string(packaging().join("openwrt/rxlane/Makefile")).expect("a makefile");
    assert!(makefile.contains(concat!("\nPKG_VERSION:=", env!("CARGO_PKG_VERSION"), "\n")));
}
