//! Which frames a device lets in, as a table: by length, tags, and MTU of the device.

use crate::nics::{HEAD, paragraph, table};
use crate::output::Output;
use anstyle::Style;
use nic::Profile;
use nic::admission::{FrameClass, USUAL_MTU, frame_classes, limit_key, longest_at};
use nic::stacked::Stack;
use nic::{Key, schema};
use std::io::{self, Write};

pub const LARGE_MTU: u32 = 9000;

/// The frame that the stack itself makes of a packet of the usual MTU, where it has a head, and then the classes.
pub fn classes(stack: &Stack) -> Vec<FrameClass> {
    let own = FrameClass {
        name: "full frame of this stack",
        tpids: stack.tpids().to_vec(),
        length: stack.frame(USUAL_MTU),
    };
    let plain = stack.tpids().is_empty() && !stack.has_pppoe();
    std::iter::once(own).filter(|_| !plain).chain(frame_classes()).collect()
}

/// Whether a frame is let in, and the limit; or the claim that is missing.
pub fn admitted(profile: &Profile, class: &FrameClass, mtu: u32) -> Result<(bool, u32), Key> {
    longest_at(profile, &class.tpids, mtu).map(|limit| (class.length <= limit, limit))
}

/// The smallest MTU of the device at which the frame is let in; `None` where it is let in anyway, at none up to 65535, or
/// where that is unknown.
pub fn mtu_needed(profile: &Profile, class: &FrameClass) -> Option<u32> {
    let fits = |mtu| matches!(admitted(profile, class, mtu), Ok((true, _)));
    let known = |mtu| admitted(profile, class, mtu).is_ok();
    if fits(USUAL_MTU) || !known(USUAL_MTU) {
        return None;
    }
    // A limit never sinks as the MTU grows.
    let (mut low, mut high) = (USUAL_MTU, 65_535);
    if !fits(high) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

pub fn print(out: &mut Output, stack: &Stack, profile: &Profile, is_verbose: bool) -> io::Result<()> {
    let large = format!("MTU {LARGE_MTU}");
    let mut rows =
        vec![["frames let in", "bytes", "MTU 1500", &large, "needs MTU"].map(str::to_owned).to_vec()];
    // By default the frame of the stack, and what is refused or unknown at one of the MTUs.
    let is_plain = |class: &FrameClass| {
        [USUAL_MTU, LARGE_MTU].iter().all(|mtu| matches!(admitted(profile, class, *mtu), Ok((true, _))))
    };
    let classes = classes(stack).into_iter().enumerate();
    for (_, class) in classes.filter(|(place, class)| is_verbose || *place == 0 || !is_plain(class)) {
        let cell = |mtu| match admitted(profile, &class, mtu) {
            Ok((true, _)) => "yes".to_owned(),
            Ok((false, 0)) => "no".to_owned(),
            Ok((false, limit)) => format!("no, >{limit}"),
            Err(_) => "?".to_owned(),
        };
        rows.push(vec![
            class.name.to_owned(),
            class.length.to_string(),
            cell(USUAL_MTU),
            cell(LARGE_MTU),
            mtu_needed(profile, &class).map_or(String::new(), |mtu| mtu.to_string()),
        ]);
    }
    table(out, &rows)?;
    remarks(out, stack, profile, is_verbose)
}

fn remarks(out: &mut Output, stack: &Stack, profile: &Profile, is_verbose: bool) -> io::Result<()> {
    if is_verbose {
        limits(out, stack, profile)?;
    }
    let own = classes(stack).into_iter().next();
    if let Some(mtu) = own.as_ref().and_then(|own| mtu_needed(profile, own)) {
        let remedy = format!(
            "A full frame of this stack is let in at MTU {mtu}: ip link set IFACE mtu {mtu}. Untagged frames may then \
             be longer, too; a lower MTU of the VLAN device does not shorten what is received."
        );
        writeln!(out)?;
        paragraph(out, "  ", &remedy, HEAD)?;
    }
    Ok(())
}

/// What the limits follow, and what is recorded of them.
fn limits(out: &mut Output, stack: &Stack, profile: &Profile) -> io::Result<()> {
    if let Some(follows) = profile.text(schema::FRAME_FOLLOWS) {
        writeln!(out)?;
        paragraph(out, "  ", &format!("The limits follow {follows}."), Style::new())?;
    }
    let limit = limit_key(profile, stack.tpids());
    if let Some(note) = profile.claim(limit).and_then(|claim| claim.note.as_deref()) {
        writeln!(out)?;
        paragraph(out, "  ", &format!("{}: {note}", limit.label), Style::new())?;
    }
    Ok(())
}
