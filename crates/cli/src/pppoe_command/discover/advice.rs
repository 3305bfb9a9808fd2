//! What to do when nobody answered, and what to know when somebody did.

use super::report::Report;
use format::quoted;
use kernel::netlink::Link;
use link::frame_size::needed_mtu;
use pppoe::discovery::PLAIN_PAYLOAD;
use wire::Vlans;
use wire::emit::{Encapsulation, PppoeSession};

/// Sentences, the likeliest first.
pub fn advice(report: &Report, parent: &Link, vlans: Vlans) -> Vec<String> {
    let mut advice = Vec::new();
    if !report.has_answers() {
        silence(report, parent, vlans, &mut advice);
    } else if !report.is_answered() {
        none_fits(report, &mut advice);
    } else {
        payload(report, parent, vlans, &mut advice);
    }
    advice
}

fn silence(report: &Report, parent: &Link, vlans: Vlans, advice: &mut Vec<String>) {
    if !parent.works() {
        advice.push(format!(
            "{} has no carrier: look at the cable, and whether the modem or ONT at its other end is on",
            parent.name
        ));
        // Nothing else can be the reason, nor be seen.
        return;
    }
    if !report.elsewhere.is_empty() {
        let seen = report.elsewhere.join(", ");
        let with = match report.elsewhere.first().and_then(|first| short(first)) {
            Some(vids) => format!("`--vlan {vids}`"),
            None => "without `--vlan`".to_owned(),
        };
        advice.push(format!("discovery packets were seen with other tags ({seen}): try {with}"));
    }
    if vlans == Vlans::NONE {
        advice.push(
            "many lines want a VLAN tag: try the one that the operator names (`--vlan 7`, `--vlan 35`, `--vlan 100.200`)"
                .to_owned(),
        );
    } else {
        advice.push(
            "try without `--vlan`: the modem may put the tag on, and then none is wanted here".to_owned(),
        );
    }
    if !report.asked.service.is_empty() {
        advice.push(format!(
            "try without `--service`: a concentrator that does not serve \"{}\" says nothing",
            report.asked.service
        ));
    }
    advice.push(
        "the modem has to be bridging and in sync (its own dial-up off), and some operators answer only MAC addresses that \
         they know, or a line that has no other session"
            .to_owned(),
    );
}

fn none_fits(report: &Report, advice: &mut Vec<String>) {
    let service = Some(&report.asked.service).filter(|service| !service.is_empty());
    advice.push(match (&report.asked.ac, service) {
        (Some(ac), Some(service)) => format!(
            "none that answered is \"{ac}\" and serves \"{service}\": `--ac` takes a name or a MAC address of the table, `--service` \
             one of its services"
        ),
        (Some(ac), None) => {
            format!("none that answered is \"{ac}\": `--ac` takes a name or a MAC address of the table")
        }
        (None, Some(service)) if !report.has_errors() => {
            format!("none that answered serves \"{service}\": `--service` takes one of the table's services")
        }
        (None, _) => "ask the operator, and quote what the concentrators say".to_owned(),
    });
}

fn payload(report: &Report, parent: &Link, vlans: Vlans, advice: &mut Vec<String>) {
    let Some(requested) = report.asked.max_payload else { return };
    let Some(agreed) = report.larger_payload() else {
        advice.push(format!(
            "nobody answered to PPP-Max-Payload {requested} (RFC 4638): packets of this line are no longer than {PLAIN_PAYLOAD} bytes"
        ));
        return;
    };
    let session = PppoeSession { session: None, peer: None };
    let encapsulation = vlans
        .tags()
        .try_fold(Encapsulation::NONE, Encapsulation::with_tag)
        .and_then(|tags| tags.with_pppoe(session));
    let Ok(encapsulation) = encapsulation else { return };
    let needed = needed_mtu(agreed.into(), &encapsulation);
    if needed > parent.mtu {
        advice.push(format!(
            "packets of {agreed} bytes need an MTU of {needed} on {name}, which has {}: `ip link set {quoted_name} mtu {needed}`",
            parent.mtu,
            name = parent.name, quoted_name = quoted(&parent.name)));
    }
}

/// `100.200` of `ad:100,q:200`; `None` without tags.
fn short(vlans: &str) -> Option<String> {
    let vids: Vec<&str> = vlans.split(',').filter_map(|tag| Some(tag.split_once(':')?.1)).collect();
    (!vids.is_empty()).then(|| vids.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_written_as_the_option_takes_them() {
        assert_eq!(short("none"), None);
        assert_eq!(short("q:7").as_deref(), Some("7"));
        assert_eq!(short("ad:100,q:200").as_deref(), Some("100.200"));
    }
}
