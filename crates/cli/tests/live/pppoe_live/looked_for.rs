//! `pppoe-discovery`, which comes with Debian's `pppd`, looks for a concentrator. It takes neither PPP nor VLAN devices of the
//! kernel.

use super::line::{Line, WAN};
use crate::run::Ended;
use std::process::Output;
use testkit::{program, require};

#[test]
fn pppoe_discovery_sees_what_is_offered() {
    let Some(line) = Line::new() else { return };
    let Some(tool) = require("pppoe-discovery", program("pppoe-discovery")) else { return };
    let _serving = line.serve(&["--name", "bras1", "--service", "internet", "--service", "voice"]);
    let look = |arguments: &[&str]| -> Output {
        let mut command = line.near.command(&tool);
        command.args(["-I", WAN, "-a", "1", "-t", "1"]).args(arguments).output().expect("it runs")
    };
    let mac =
        line.far.run("cat", &["/sys/class/net/wan0/address"]).expect("an address").trim().to_uppercase();
    // For anybody; by names and with a Host-Uniq of its own, which the answer has to bring back.
    for arguments in [&[][..], &["-S", "internet", "-U"], &["-C", "bras1", "-W", "00ff0a"]] {
        let found = look(arguments);
        let text = found.is(&arguments, 0, "").text();
        for line in ["Access-Concentrator: bras1", "Service-Name: internet", "Service-Name: voice"] {
            assert_eq!(text.matches(line).count(), 1, "{arguments:?}: {text}");
        }
        assert!(text.contains("Got a cookie: "), "{arguments:?}: {text}");
        assert!(
            text.to_uppercase().contains(&format!("AC-ETHERNET-ADDRESS: {mac}")),
            "{arguments:?}: {text}"
        );
    }
    look(&["-S", "television"]).ends(1).omits("bras1");
    // It shows who else answered, and does not take it.
    look(&["-C", "bras2"]).omits("AC-Ethernet-Address");
}
