//! The package for Debian, in a guest whose process 1 is systemd. `RXLANE_DEB` names it; `make dist packages` makes it.

use crate::LONG;
use crate::steer::{assert_nothing_left, status};
use rxlane_lab::{First, Guest, Lab, Model, Nic, Series, Spec};
use std::path::PathBuf;
use testkit::{Missing, require};

const PROGRAM: &str = "/usr/bin/rxlane";

fn package() -> Option<PathBuf> {
    let named = std::env::var_os("RXLANE_DEB").map(PathBuf::from);
    let missing = || Missing("RXLANE_DEB names no package (make dist packages makes one)".to_owned());
    require("package", named.filter(|path| path.is_file()).ok_or_else(missing))
}

/// Files of the system that have the name.
fn files(guest: &Guest) -> String {
    // Where a package puts something, and no deeper: an emulated machine takes minutes for all of /usr.
    let folders = "/etc /run /usr/bin /usr/lib/systemd/system /usr/share/man/man1 /usr/share/doc /usr/share/lintian \
                   /usr/share/bash-completion /usr/share/zsh /usr/share/fish /var/lib/dpkg/info /var/lib/systemd";
    // udev's note of the port through which the guest is commanded comes at its own time.
    let script = format!(
        "for f in {folders}; do [ ! -d $f ] || find $f -maxdepth 3 -name '*rxlane*' -not -path '/run/udev/*'; done | sort"
    );
    guest.sh(&script).expect("a list")
}

#[test]
#[ignore = "make nightly"]
fn the_package_answers_steers_and_is_removed_without_a_trace() {
    let (Some(lab), Some(package)) = (Lab::require(), package()) else { return };
    let nics = vec![Nic::new("wan", Model::Igb)];
    let guest = lab.boot(&Spec { nics, first: First::Systemd, ..Spec::new(Series::V6_12) }).expect("a guest");
    // Where this file is, a package with a manual has the index of all manuals made anew: an emulated machine takes minutes for that.
    guest.sh("rm -f /var/lib/man-db/auto-update").expect("no index of manuals");
    // An image for containers forbids packages to stop services (policy-rc.d); nobody's router does.
    guest.sh("rm -f /usr/sbin/policy-rc.d").expect("no policy");
    let before = files(&guest);
    let dpkg = |words: &str| {
        let argv: Vec<&str> = ["dpkg"].into_iter().chain(words.split(' ')).collect();
        let done = guest.run_with(&argv, &[], LONG).expect("it runs");
        assert_eq!(done.status, 0, "{}{}", done.text(), done.errors());
    };
    dpkg(&format!("--install {}", package.display()));

    let paste = include_bytes!("../../../crates/cli/src/demo/router.txt");
    guest.write("/tmp/router.txt", paste).expect("a text");
    let report = guest.run(&["rxlane", "doctor", "--from", "/tmp/router.txt"]).expect("it runs");
    assert!(report.text().starts_with("Bottleneck: parse (the NIC's parser) of enp1s0"), "{}", report.text());
    let live = guest.run(&["rxlane", "doctor", "--json"]).expect("it runs");
    assert!(
        live.text().contains("\"name\": \"wan\"") || live.text().contains("\"name\":\"wan\""),
        "{}",
        live.text()
    );
    guest.sh("test -s /usr/share/man/man1/rxlane-steer-up.1.gz").expect("a page of the manual");
    guest
        .sh("bash -c '. /usr/share/bash-completion/completions/rxlane; complete -p rxlane'")
        .expect("completions");

    guest.sh("ip link set wan promisc on up").expect("up");
    guest.await_carrier("wan").expect("a carrier");
    guest.write("/etc/rxlane/steer-wan.conf", b"OPTIONS=--seconds 0\n").expect("options");
    guest.sh("systemctl enable --now rxlane-steer@wan").expect("enabled");
    assert_eq!(status(&guest, PROGRAM, "wan")["mode"], "native");
    let kept = guest.sh(&format!("cp {PROGRAM} /tmp/still && chmod 755 /tmp/still")).map(|_| "/tmp/still");
    dpkg("--purge rxlane");
    assert_nothing_left(&guest, kept.expect("a copy"), "wan");
    assert_eq!(files(&guest), before);
}
