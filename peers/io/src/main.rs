//! What the kernel takes for a frame on its way out of user space and into it, by each of the ways that it offers.
//!
//! `bench-io [ROUNDS [MILLISECONDS [SECTION…]]]` (root). Sections: `transmit`, `receive`, `load`, `answer`, `pace`,
//! `tun`. In each round every way has a turn of so many milliseconds, one after the other; ratios are taken round by
//! round. All of it happens in two network namespaces without names, which are gone when the process is.

mod arrival;
mod frame;
mod measure;
mod packet;
mod receive;
mod report;
mod ring;
mod room;
mod sys;
mod transmit;
mod tunnel;
mod xsk;

use anyhow::{Context, ensure};
use measure::{load, pin};
use report::{Costs, Delays};
use room::Room;
use std::time::Duration;
use transmit::LARGE;
use tunnel::{Pump, Tunnels};

const SECTIONS: [&str; 6] = ["transmit", "receive", "load", "answer", "pace", "tun"];
/// TCP payload of frames of 1522 and of 82 octets.
const PAYLOADS: [usize; 2] = [LARGE, 0];
/// Between two frames of a steady pace.
const GAPS: [Duration; 2] = [Duration::from_micros(100), Duration::from_micros(10)];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(15), |text| text.parse()).context("ROUNDS")?;
    let time: u64 = arguments.next().map_or(Ok(40), |text| text.parse()).context("MILLISECONDS")?;
    let mut sections: Vec<String> = arguments.collect();
    if sections.is_empty() {
        sections = SECTIONS.map(str::to_owned).to_vec();
    }
    for section in &sections {
        ensure!(SECTIONS.contains(&section.as_str()), "no section {section}: {}", SECTIONS.join(", "));
    }
    let cpus = std::thread::available_parallelism()?.get();
    ensure!(cpus >= 2, "one CPU: a sender and a taker want one each");
    let room = Room::new()?;
    room.near.enter()?;
    pin(0)?;
    transmit::check(&room)?;
    arrival::check(&room)?;
    println!("virtio GSO behind PPPoE in two tags, to be segmented: {}", transmit::behind_pppoe(&room)?);
    let mut results = Results::new(&room)?;
    for round in 0..rounds {
        for section in &sections {
            results.turn(&room, section, Duration::from_millis(time))?;
        }
        println!("round {round}, load average {:.2}", load());
    }
    println!("{rounds} rounds, {time} ms a turn; {cpus} CPUs; median [least-most]");
    for section in &sections {
        results.print(section);
    }
    Ok(())
}

/// Each way with each length.
fn crossed(ways: &[receive::Way]) -> impl Iterator<Item = (usize, &receive::Way)> {
    PAYLOADS.into_iter().flat_map(|payload| ways.iter().map(move |way| (payload, way)))
}

struct Results {
    transmit: Vec<(transmit::Way, Costs)>,
    receive: Vec<[Costs; 3]>,
    load: Vec<[Costs; 2]>,
    answer: Vec<Delays>,
    pace: Vec<(Delays, Costs)>,
    write: Vec<Costs>,
    read: Vec<[Costs; 2]>,
    carry: Vec<Costs>,
    tunnels: Tunnels,
    pumps: [Pump; 2],
}

impl Results {
    fn new(room: &Room) -> anyhow::Result<Results> {
        let both = PAYLOADS.len();
        let prompt = arrival::PROMPT.len();
        Ok(Results {
            transmit: transmit::ways().into_iter().map(|way| (way, Costs::default())).collect(),
            receive: (0..arrival::COST.len() * both).map(|_| Default::default()).collect(),
            load: (0..arrival::LOAD.len() * both).map(|_| Default::default()).collect(),
            answer: (0..prompt).map(|_| Delays::default()).collect(),
            pace: (0..prompt * GAPS.len()).map(|_| Default::default()).collect(),
            write: (0..tunnel::Way::ALL.len()).map(|_| Costs::default()).collect(),
            read: (0..2).map(|_| Default::default()).collect(),
            carry: (0..2).map(|_| Costs::default()).collect(),
            tunnels: Tunnels::new(room)?,
            pumps: [Pump::new(room, false)?, Pump::new(room, true)?],
        })
    }

    fn turn(&mut self, room: &Room, section: &str, time: Duration) -> anyhow::Result<()> {
        match section {
            "transmit" => {
                for (way, costs) in &mut self.transmit {
                    let cost = transmit::measure(room, way, time)
                        .with_context(|| format!("{} out of {}", way.name(), way.device))?;
                    costs.add(cost);
                }
            }
            "receive" => {
                for ((payload, way), into) in crossed(&arrival::COST).zip(&mut self.receive) {
                    let costs = arrival::in_turn(room, way, payload, time).with_context(|| way.name())?;
                    into.iter_mut().zip(costs).for_each(|(into, cost)| into.add(cost));
                }
            }
            "load" => {
                for ((payload, way), into) in crossed(&arrival::LOAD).zip(&mut self.load) {
                    let costs = arrival::full_load(room, way, payload, time).with_context(|| way.name())?;
                    into.iter_mut().zip(costs).for_each(|(into, cost)| into.add(cost));
                }
            }
            "answer" => {
                for (way, delays) in arrival::PROMPT.iter().zip(&mut self.answer) {
                    delays.add(arrival::answers(room, way, time).with_context(|| way.name())?);
                }
            }
            "pace" => {
                let ways = GAPS.iter().flat_map(|gap| arrival::PROMPT.iter().map(move |way| (gap, way)));
                for ((gap, way), (delays, costs)) in ways.zip(&mut self.pace) {
                    let (times, cost) = arrival::paced(room, way, *gap, time).with_context(|| way.name())?;
                    delays.add(times);
                    costs.add(cost);
                }
            }
            _ => {
                for (way, costs) in tunnel::Way::ALL.into_iter().zip(&mut self.write) {
                    costs.add(self.tunnels.write(way, time).with_context(|| way.name())?);
                }
                for (supers, costs) in [false, true].into_iter().zip(&mut self.read) {
                    let turn = self.tunnels.read(room, supers, time)?;
                    costs.iter_mut().zip(turn).for_each(|(costs, cost)| costs.add(cost));
                }
                for (pump, costs) in self.pumps.iter().zip(&mut self.carry) {
                    costs.add(pump.carry(room, time).context("TCP through two TUN devices")?);
                }
                pin(0)?;
            }
        }
        Ok(())
    }

    fn print(&self, section: &str) {
        match section {
            "transmit" => report::transmit(&self.transmit),
            "receive" => report::receive(&self.receive, PAYLOADS),
            "load" => report::load(&self.load, PAYLOADS),
            "answer" => report::answer(&self.answer),
            "pace" => report::pace(&self.pace, GAPS),
            _ => report::tun(&self.write, &self.read, &self.carry),
        }
    }
}
