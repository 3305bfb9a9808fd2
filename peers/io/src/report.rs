//! Tables.

use crate::arrival::{COST, LOAD, PROMPT};
use crate::measure::{Cost, Spread};
use crate::receive::How;
use crate::room::{NEAR, SEGMENTED, SINK};
use crate::{transmit, tunnel};
use std::time::Duration;

/// The turns of one way.
#[derive(Default)]
pub struct Costs(Vec<Cost>);

impl Costs {
    pub fn add(&mut self, cost: Cost) {
        self.0.push(cost);
    }

    fn spread(&self, value: impl Fn(&Cost) -> f64) -> Spread {
        Spread::of(self.0.iter().map(value))
    }

    fn cpu(&self) -> String {
        self.spread(Cost::cpu_each).print(0)
    }

    fn wall(&self) -> String {
        self.spread(Cost::wall_each).print(0)
    }

    /// Thousands of frames a second of wall time.
    fn rate(&self) -> String {
        self.spread(|cost| 1e6 / cost.wall_each()).print(0)
    }

    /// How many times cheaper in CPU time than the reference, round by round.
    fn times(&self, reference: &Costs) -> String {
        let ratios = self.0.iter().zip(&reference.0).map(|(this, other)| other.cpu_each() / this.cpu_each());
        Spread::of(ratios).print(2)
    }

    /// Share of user mode in the CPU time, percent, over all turns: the kernel counts it by ticks.
    fn user(&self) -> String {
        let [user, system] = [|cost: &Cost| cost.user, |cost: &Cost| cost.system]
            .map(|part| self.0.iter().map(part).sum::<f64>());
        format!("{:.0}", 100.0 * user / (user + system).max(1.0))
    }

    /// Lost of all, in percent where there are any.
    fn lost(&self) -> String {
        let [lost, frames] = [|cost: &Cost| cost.lost, |cost: &Cost| cost.frames]
            .map(|part| self.0.iter().map(part).sum::<u64>());
        match lost {
            0 => "0".to_owned(),
            _ => format!("{lost} ({:.1}%)", 100.0 * lost as f64 / (lost + frames).max(1) as f64),
        }
    }
}

/// Medians and 99th percentiles of the turns of one way, microseconds.
#[derive(Default)]
pub struct Delays(Vec<[f64; 2]>);

impl Delays {
    pub fn add(&mut self, mut nanoseconds: Vec<f64>) {
        nanoseconds.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (nanoseconds.len() as f64 * share) as usize;
            nanoseconds.get(index).map_or(f64::NAN, |value| value / 1e3)
        };
        self.0.push([at(0.5), at(0.99)]);
    }

    fn median(&self) -> String {
        Spread::of(self.0.iter().map(|turn| turn[0])).print(1)
    }

    fn late(&self) -> String {
        Spread::of(self.0.iter().map(|turn| turn[1])).print(1)
    }

    fn times(&self, reference: &Delays) -> String {
        Spread::of(self.0.iter().zip(&reference.0).map(|(this, other)| other[0] / this[0])).print(2)
    }
}

fn octets(payload: usize) -> usize {
    82 + payload
}

pub fn transmit(results: &[(transmit::Way, Costs)]) {
    let mut reference: Option<&(transmit::Way, Costs)> = None;
    for result in results {
        let (way, costs) = result;
        let same = |other: &transmit::Way| other.device == way.device && other.payload == way.payload;
        if reference.is_none_or(|(other, _)| !same(other)) {
            let about = match way.device {
                NEAR => "veth; the far end's receive path runs in the same thread",
                SINK => "ifb, pfifo_fast; freed by the device, no far end",
                SEGMENTED => "veth without TSO and checksums; times: against veth's sendto",
                other => other,
            };
            println!("\n-- transmit, {} octets, {about}", octets(way.payload));
            println!(
                "{:<42} {:>20} {:>20} {:>5} {:>20} {:>20} lost",
                "", "CPU ns a frame", "wall ns a frame", "user%", "1000 frames/s", "times sendto"
            );
            if way.device != SEGMENTED {
                reference = Some(result);
            } else {
                reference =
                    results.iter().find(|(other, _)| other.device == NEAR && other.payload == way.payload);
            }
        }
        let times = reference.map_or_else(String::new, |(_, reference)| costs.times(reference));
        println!(
            "{:<42} {:>20} {:>20} {:>5} {:>20} {:>20} {}",
            way.name(),
            costs.cpu(),
            costs.wall(),
            costs.user(),
            costs.rate(),
            times,
            costs.lost()
        );
    }
}

/// Cost in one thread: what handing a frame to the way costs beyond what it costs where nobody listens, and taking it.
pub fn receive(results: &[[Costs; 3]], payloads: [usize; 2]) {
    let sums = |[put, take, base]: &[Costs; 3]| -> Vec<f64> {
        let rounds = put.0.iter().zip(&take.0).zip(&base.0);
        rounds.map(|((put, take), base)| put.cpu_each() - base.cpu_each() + take.cpu_each()).collect()
    };
    for (results, payload) in results.chunks(COST.len()).zip(payloads) {
        let reference = sums(&results[0]);
        println!(
            "\n-- receive: one thread sends 256 and takes them, {} octets; CPU ns a frame",
            octets(payload)
        );
        println!(
            "{:<46} {:>20} {:>20} {:>20} {:>20} {:>20} lost",
            "", "nobody listens", "sent and delivered", "taken", "beyond nobody, all", "times recvfrom"
        );
        for (way, costs) in COST.iter().zip(results) {
            if matches!(way.how, How::Supers(_)) {
                supers(&results[0], &way.name(), costs);
                continue;
            }
            let sum = sums(costs);
            let times = Spread::of(sum.iter().zip(&reference).map(|(this, other)| other / this));
            println!(
                "{:<46} {:>20} {:>20} {:>20} {:>20} {:>20} {}",
                way.name(),
                costs[2].cpu(),
                costs[0].cpu(),
                costs[1].cpu(),
                Spread::of(sum).print(0),
                times.print(2),
                costs[1].lost()
            );
        }
    }
}

/// Super-packets come from a sender of such, so that sending cannot be subtracted: it is in both sides of the ratio.
fn supers(reference: &[Costs; 3], name: &str, costs: &[Costs; 3]) {
    let whole = |[put, take, _]: &[Costs; 3]| -> Vec<f64> {
        put.0.iter().zip(&take.0).map(|(put, take)| put.cpu_each() + take.cpu_each()).collect()
    };
    let (sum, reference) = (whole(costs), whole(reference));
    let times = Spread::of(sum.iter().zip(&reference).map(|(this, other)| other / this));
    println!(
        "{name:<46} {:>20} {:>20} {:>20} {:>20} {:>20} {} (both with sending)",
        "",
        costs[0].cpu(),
        costs[1].cpu(),
        Spread::of(sum).print(0),
        times.print(2),
        costs[1].lost()
    );
}

pub fn load(results: &[[Costs; 2]], payloads: [usize; 2]) {
    for (results, payload) in results.chunks(LOAD.len()).zip(payloads) {
        println!("\n-- full load, {} octets; CPU 0 sends and delivers, CPU 1 takes", octets(payload));
        println!(
            "{:<46} {:>20} {:>20} {:>20} {:>20} {:>5} {:>20} lost",
            "", "1000 sent/s", "1000 taken/s", "sender, CPU ns", "taker, CPU ns", "user%", "times taken/s"
        );
        let reference = &results[0][1];
        for (way, [sender, taker]) in LOAD.iter().zip(results) {
            let faster = taker.0.iter().zip(&reference.0);
            let faster = Spread::of(faster.map(|(this, other)| other.wall_each() / this.wall_each()));
            let (taken, cpu, lost) = match way.how {
                How::Nobody => Default::default(),
                _ => (taker.rate(), taker.cpu(), taker.lost()),
            };
            println!(
                "{:<46} {:>20} {taken:>20} {:>20} {cpu:>20} {:>5} {:>20} {lost}",
                way.name(),
                sender.rate(),
                sender.cpu(),
                taker.user(),
                faster.print(2),
            );
        }
    }
}

pub fn answer(results: &[Delays]) {
    println!("\n-- answer: a frame of 82 octets there and back by sendto, µs; the asker spins");
    println!("{:<46} {:>24} {:>26} {:>22}", "", "median", "99th percentile", "times recvfrom");
    for (way, delays) in PROMPT.iter().zip(results) {
        let times = delays.times(&results[0]);
        println!("{:<46} {:>24} {:>26} {times:>22}", way.name(), delays.median(), delays.late());
    }
}

pub fn pace(results: &[(Delays, Costs)], gaps: [Duration; 2]) {
    for (results, gap) in results.chunks(PROMPT.len()).zip(gaps) {
        println!(
            "\n-- pace: a frame of 90 octets every {} µs, µs from before it is sent until it is taken",
            gap.as_micros()
        );
        println!(
            "{:<46} {:>24} {:>26} {:>22} lost",
            "", "median", "99th percentile", "taker, CPU ns a frame"
        );
        for (way, (delays, costs)) in PROMPT.iter().zip(results) {
            println!(
                "{:<46} {:>24} {:>26} {:>22} {}",
                way.name(),
                delays.median(),
                delays.late(),
                costs.cpu(),
                costs.lost()
            );
        }
    }
}

pub fn tun(write: &[Costs], read: &[[Costs; 2]], carry: &[Costs]) {
    println!("\n-- TUN, written: 44 packets of 1448 octets of payload; the stack drops them. ns a packet");
    println!("{:<46} {:>20} {:>20} {:>5} {:>22} lost", "", "CPU", "wall", "user%", "times 44 writes");
    for (way, costs) in tunnel::Way::ALL.into_iter().zip(write) {
        println!(
            "{:<46} {:>20} {:>20} {:>5} {:>22} {}",
            way.name(),
            costs.cpu(),
            costs.wall(),
            costs.user(),
            costs.times(&write[0]),
            costs.lost()
        );
    }
    println!("\n-- TUN, read: 44 packets of 1448 octets that a socket handed over as one. CPU ns a packet");
    println!("{:<46} {:>20} {:>20} {:>22} lost", "", "handed over", "read", "times 44 reads");
    for (name, [put, take]) in
        ["44 reads, the kernel segments and sums", "1 read, virtio header"].iter().zip(read)
    {
        println!(
            "{name:<46} {:>20} {:>20} {:>22} {}",
            put.cpu(),
            take.cpu(),
            take.times(&read[0][1]),
            take.lost()
        );
    }
    println!("\n-- TCP through two TUN devices and a thread that carries packets between them");
    println!("{:<46} {:>20} {:>28} {:>22}", "", "Gbit/s", "carrier, CPU ns a packet", "times singles");
    for (name, costs) in ["single packets", "super-packets"].iter().zip(carry) {
        let rate = costs.spread(|cost| 1448.0 * 8.0 / cost.wall_each());
        println!("{name:<46} {:>20} {:>28} {:>22}", rate.print(2), costs.cpu(), costs.times(&carry[0]));
    }
}
