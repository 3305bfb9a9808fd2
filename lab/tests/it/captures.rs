//! The project's own captures still are what the lab records: exchanges recorded anew have the shape of the committed
//! ones.

use rxlane_lab::Lab;
use rxlane_lab::recording::{shape, stage};
use std::path::{Path, PathBuf};
use testkit::{captures, program, require};

/// Between them they have every part that an exchange can have.
const RECORDED: [&str; 2] = ["qinq_pppoe", "vlan_ip"];

fn committed(name: &str) -> PathBuf {
    captures::own().join(format!("{name}.pcap"))
}

#[test]
#[ignore = "make nightly"]
fn exchanges_recorded_anew_have_the_shape_of_the_committed_captures() {
    let (Some(lab), Some(tshark)) = (Lab::require(), require("tshark", program("tshark"))) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    stage::staged(&lab, |stage| {
        for name in RECORDED {
            let path = folder.path().join(format!("{name}.pcap"));
            let summary = stage.record(name, &path, &tshark)?;
            assert_eq!(summary["frames_malformed_by_tshark"], 0, "{name}");
            let of = |path: &Path| shape::of(&tshark, path);
            let (now, then) = (of(&path)?, of(&committed(name))?);
            assert_eq!(now, then, "{name}: recorded now, and committed");
        }
        Ok(())
    })
    .expect("recorded");
}

/// Else the comparison would not see that one exchange was recorded for another.
#[test]
fn each_committed_capture_has_a_shape_of_its_own() {
    let Some(tshark) = require("tshark", program("tshark")) else { return };
    let shapes: Vec<(&str, Vec<String>)> =
        stage::names().map(|name| (name, shape::of(&tshark, &committed(name)).expect("a shape"))).collect();
    for (place, (name, shape)) in shapes.iter().enumerate() {
        assert!(shape.len() > 4, "{name}: {shape:#?}");
        for (other, other_shape) in &shapes[..place] {
            assert_ne!(shape, other_shape, "{name} and {other}");
        }
    }
}
