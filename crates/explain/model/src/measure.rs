//! Figures of an answer, by name: for charts, for the tables of reports, for scripts.

use crate::answer::{Answer, Lost, QueueAnswer, Traffic, WaitAnswer};
use crate::frame::Bursts;
use crate::latency::Latencies;

/// Every name, `N` and `NAME` standing for a number and a name of the scenario, with its meaning.
pub const NAMES: &[(&str, &str)] = &[
    ("offered_kpps", "frames that came, thousands a second"),
    ("received_kpps", "frames that reached their goal, thousands a second"),
    ("received_mbps", "the same, Mbit/s without FCS"),
    ("goodput_mbps", "their payload, Mbit/s"),
    ("lost_percent", "frames lost anywhere"),
    ("lost_admit_percent", "frames longer than the device lets in"),
    ("lost_ring_percent", "frames for which the ring had no room"),
    ("lost_input_percent", "frames for which the queue between driver and stack had no room"),
    ("lost_socket_percent", "frames for which the socket had no room"),
    ("lost_transmit_percent", "frames for which the transmit ring had no room"),
    ("latency_mean_us", "from the wire to the goal, microseconds"),
    ("latency_p50_us", "the median"),
    ("latency_p90_us", "what 90 % do not exceed"),
    ("latency_p99_us", "what 99 % do not exceed"),
    ("latency_p999_us", "what 99.9 % do not exceed"),
    ("traffic.NAME.…", "any of the above of one traffic"),
    ("interrupts_per_second", "of all vectors"),
    ("frames_per_interrupt", "frames in the ring for each"),
    ("cpu.N.interrupt_percent", "of a CPU, or of `cpu.all` the sum: interrupt handlers"),
    ("cpu.N.softirq_percent", "soft interrupts"),
    ("cpu.N.receive_percent", "both of them"),
    ("cpu.N.system_percent", "system calls"),
    ("cpu.N.user_percent", "user space"),
    ("cpu.N.idle_percent", "nothing"),
    ("cpu.N.busy_percent", "all but that"),
    ("line.NAME.filled_percent", "of an interface's line, time for frames that came"),
    ("queue.NAME.N.share_percent", "of an interface's frames, those that came to a queue"),
    ("queue.NAME.N.burst", "frames in the ring when its server turned to it, on average"),
    ("input.burst", "the same of queues between driver and stack"),
    ("input.longest_burst", "the most"),
    ("application.NAME.percent", "CPU time of a process"),
    ("application.NAME.burst", "packets in its socket when it read"),
];

/// The figure of that name. Errors: there is none, or nothing was there to measure.
pub fn measure(answer: &Answer, name: &str) -> Result<f64, String> {
    let parts: Vec<&str> = name.split('.').collect();
    let found = match parts.as_slice() {
        ["traffic", of, what] => {
            let traffic = answer.traffic.iter().find(|traffic| traffic.name == **of);
            traffic.and_then(|traffic| of_traffic(answer, &[traffic], what))
        }
        ["cpu", number, what] => cpu(answer, number, what),
        ["line", interface, "filled_percent"] => filled(answer, interface),
        ["queue", interface, number, what] => queue(answer, interface, number, what),
        ["input", "burst"] => mean_burst(answer.inputs.iter().map(|input| input.bursts)),
        ["input", "longest_burst"] => {
            answer.inputs.iter().map(|input| f64::from(input.bursts.longest)).reduce(f64::max)
        }
        ["application", of, what] => application(answer, of, what),
        ["interrupts_per_second"] => Some(interrupts(answer) / answer.seconds()),
        ["frames_per_interrupt"] => {
            let frames: u64 = answer.queues.iter().map(|queue| queue.frames - queue.lost).sum();
            Some(frames as f64 / interrupts(answer))
        }
        [what] => of_traffic(answer, &answer.traffic.iter().collect::<Vec<_>>(), what),
        _ => None,
    };
    let found = found.filter(|value| value.is_finite());
    found.ok_or_else(|| match name.ends_with("goodput_mbps") {
        true => {
            format!("`{name}` takes the key `payload` of a traffic: how many bytes of a frame are payload")
        }
        false => format!("there is no figure `{name}`, or nothing to measure for it; --figure list lists those that there are"),
    })
}

fn interrupts(answer: &Answer) -> f64 {
    answer.queues.iter().map(|queue| queue.interrupts).sum::<u64>() as f64
}

fn of_traffic(answer: &Answer, traffic: &[&Traffic], what: &str) -> Option<f64> {
    let seconds = answer.seconds();
    let sum = |of: fn(&Traffic) -> u64| traffic.iter().map(|traffic| of(traffic)).sum::<u64>() as f64;
    let percent = |part: f64| 100.0 * part / sum(|traffic| traffic.offered);
    if let Some(percentile) = what.strip_prefix("latency_") {
        let latencies =
            traffic.iter().map(|traffic| &traffic.latencies).max_by_key(|latencies| latencies.number());
        return latency(latencies?, percentile);
    }
    if let Some(place) = what.strip_prefix("lost_").and_then(|what| what.strip_suffix("_percent")) {
        let place = Lost::ALL.into_iter().find(|lost| lost.name() == place)?;
        let lost: u64 = traffic.iter().map(|traffic| traffic.lost[place as usize]).sum();
        return Some(percent(lost as f64));
    }
    Some(match what {
        "offered_kpps" => sum(|traffic| traffic.offered) / seconds / 1e3,
        "received_kpps" => sum(|traffic| traffic.delivered) / seconds / 1e3,
        "received_mbps" => sum(|traffic| traffic.delivered_bytes) * 8.0 / seconds / 1e6,
        // Nobody said how much of a frame that is.
        "goodput_mbps" if traffic.iter().all(|traffic| traffic.payload == 0) => return None,
        "goodput_mbps" => {
            let bytes = sum(|traffic| traffic.delivered * u64::from(traffic.payload));
            bytes * 8.0 / seconds / 1e6
        }
        "lost_percent" => percent(sum(Traffic::lost)),
        _ => return None,
    })
}

/// Of several traffics the one with the most frames speaks.
fn latency(latencies: &Latencies, what: &str) -> Option<f64> {
    let share = match what {
        "mean_us" => return latencies.mean().map(|mean| mean / 1e6),
        "p50_us" => 0.5,
        "p90_us" => 0.9,
        "p99_us" => 0.99,
        "p999_us" => 0.999,
        _ => return None,
    };
    latencies.percentile(share).map(|time| time as f64 / 1e6)
}

fn cpu(answer: &Answer, number: &str, what: &str) -> Option<f64> {
    let cpus = match number {
        "all" => answer.cpus.as_slice(),
        _ => std::slice::from_ref(answer.cpus.get(number.parse::<usize>().ok()?)?),
    };
    let time = cpus.iter().map(|cpu| match what {
        "interrupt_percent" => Some(cpu.interrupt),
        "softirq_percent" => Some(cpu.softirq),
        "receive_percent" => Some(cpu.interrupt + cpu.softirq),
        "system_percent" => Some(cpu.system),
        "user_percent" => Some(cpu.user),
        "idle_percent" => Some(cpu.idle),
        "busy_percent" => Some(cpu.interrupt + cpu.softirq + cpu.system + cpu.user),
        _ => None,
    });
    let time: Option<u64> = time.sum();
    Some(100.0 * time? as f64 / answer.duration as f64)
}

fn queue(answer: &Answer, interface: &str, number: &str, what: &str) -> Option<f64> {
    let port = answer.ports.iter().position(|port| port == interface)?;
    let number: usize = number.parse().ok()?;
    let of_port = || answer.queues.iter().filter(|queue| queue.port == port);
    let queue = of_port().find(|queue| queue.number == number)?;
    let frames = |queue: &QueueAnswer| queue.frames;
    match what {
        "share_percent" => Some(100.0 * frames(queue) as f64 / of_port().map(frames).sum::<u64>() as f64),
        "burst" => queue.bursts.mean(),
        _ => None,
    }
}

fn filled(answer: &Answer, interface: &str) -> Option<f64> {
    let port = answer.ports.iter().position(|port| port == interface)?;
    answer.filled.get(port).copied().flatten().map(|share| 100.0 * share)
}

fn mean_burst(bursts: impl Iterator<Item = Bursts>) -> Option<f64> {
    let (frames, times) = bursts.fold((0, 0), |sum, bursts| (sum.0 + bursts.frames, sum.1 + bursts.times));
    (times > 0).then(|| frames as f64 / times as f64)
}

fn application(answer: &Answer, name: &str, what: &str) -> Option<f64> {
    let found: &WaitAnswer = answer.applications.iter().find(|application| application.name == name)?;
    match what {
        "percent" => Some(100.0 * found.spent as f64 / answer.duration as f64),
        "burst" => found.bursts.mean(),
        _ => None,
    }
}
