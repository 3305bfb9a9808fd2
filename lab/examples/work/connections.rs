//! Connections of iperf3 whose packets arrive on `client`, in every mode in turn.

use crate::count::{count, idle, print};
use crate::mode::{Mode, Spreading, enter, leave};
use anyhow::Result;
use rxlane_lab::Guest;

/// How often every mode is measured.
const ROUNDS: usize = 2;

/// `iperf3` is the command of its client, with all but the time.
pub fn measure(guest: &Guest, cpus: usize, modes: &[Mode], iperf3: &str) -> Result<()> {
    for mode in modes.iter().cycle().take(ROUNDS * modes.len()) {
        if let Spreading::Steer(_) = mode.spreading {
            // What `up` samples.
            let load = format!("{iperf3} -t 8");
            guest.start(&load.split(' ').collect::<Vec<_>>(), "/tmp/load")?;
        }
        enter(guest, "client", mode, cpus)?;
        if let Spreading::Steer(_) = mode.spreading {
            guest.sh("until grep -q 'iperf Done' /tmp/load; do sleep 0.2; done")?;
        }
        guest.sh(&format!("{iperf3} -t 2"))?;
        let idle = idle(guest)?;
        let work = count(guest, &idle, || {
            let received = guest.counter("client", "rx_packets")?;
            let sent = guest.counter("client", "tx_packets")?;
            let rate = guest.sh(&format!(
                "{iperf3} -t 8 -f m | sed -n 's/.*SUM.* \\([0-9.]* Mbits.sec\\).*receiver.*/\\1/p'"
            ))?;
            let received = guest.counter("client", "rx_packets")? - received;
            let sent = guest.counter("client", "tx_packets")? - sent;
            let back = sent as f64 / received as f64;
            Ok((received, format!("({}, {back:.2} packets back for one received)", rate.trim())))
        })?;
        print(&mode.name(), &work, cpus);
        leave(guest, "client", mode)?;
    }
    Ok(())
}
