//! From what a scenario says to what is simulated: every value checked, names resolved.

use super::format::{self, Arrival, Driver, IndirectionTable, Moderation, Scenario, Size};
use super::landing::Device;
use super::landing::{self, Landing};
use crate::engine::LONGEST;
use crate::plan::{self, Arrivals, Cost, Costs, Goal, Plan};
use crate::source::Given;
use crate::{SECOND, Time};
use nic::document::FileError;
use nic::{Receiver, Setup};
use traffic::{Popularity, Sizes};

/// Frames of a capture as they come to a device.
pub type CaptureFrames = Box<dyn Iterator<Item = Given> + Send>;

/// Reads a capture for a scenario: file, device as it is set up (`None`: flows are spread over the queues in turn), its queues,
/// and the number of the first of them. Errors: one sentence.
pub type Capture<'a> = &'a mut dyn FnMut(&str, Option<Receiver>, u16, u32) -> Result<CaptureFrames, String>;

type Checked<T> = Result<T, FileError>;

/// The most CPUs, queues, applications or sources.
const PARTS: usize = 1024;
/// The deepest queue.
const DEEPEST: u32 = 1 << 16;
/// The most flows of a traffic, and of all together.
const FLOWS: u32 = 1 << 22;
const NS: f64 = 1000.0;
/// At which least frames, 84 bytes of the wire, are 10^9 a second.
const FASTEST_WINDOW_MBPS: f64 = 84.0 * 8.0 * 1e3;

impl Scenario {
    /// What is to be simulated. `capture` reads the captures that the scenario names. Errors: the key that cannot be.
    pub fn plan(&self, capture: Capture<'_>) -> Checked<Plan> {
        within("cpus", self.cpus, 1, PARTS as u32)?;
        self.check_size()?;
        let duration = time("duration_ms", self.duration_ms, 1e6 * NS, LONGEST)?;
        if duration == 0 {
            return Err(FileError::of("duration_ms", "expected more than 0: nothing would be counted"));
        }
        let warm_up = time("warm_up_ms", self.warm_up_ms, 1e6 * NS, LONGEST)?;
        if warm_up + duration > LONGEST {
            return Err(FileError::of("duration_ms", "expected an hour at most, with warm_up_ms"));
        }
        let devices = self.devices()?;
        let names: Vec<&str> = self.application.keys().map(String::as_str).collect();
        let mut plan = Plan {
            seed: self.seed,
            warm_up,
            duration,
            cpus: self.cpus as usize,
            driver: self.driver()?,
            gro: self.gro_frames.map(|frames| plan::Gro { frames: frames.max(1) }),
            inputs: self.inputs()?,
            keeps_own: self.hand_over.as_ref().is_some_and(|hand_over| hand_over.keeps_own),
            ahead: true,
            costs: self.costs()?,
            ports: Vec::new(),
            queues: Vec::new(),
            applications: Vec::new(),
            sources: Vec::new(),
        };
        for (device, (name, interface)) in devices.iter().zip(&self.interface) {
            self.interface(&mut plan, device, name, interface)?;
        }
        for (name, application) in &self.application {
            let application = self.application(name, application, &names)?;
            plan.applications.push(application);
        }
        no_circle(&plan.applications)?;
        for (name, traffic) in &self.traffic {
            let source = self.traffic(name, traffic, &devices, &names, plan.inputs.len(), capture)?;
            plan.sources.push(source);
        }
        if plan.queues.len() > PARTS || plan.applications.len() > PARTS || plan.sources.len() > PARTS {
            return Err(FileError::of("", format!("more than {PARTS} queues, applications or sources")));
        }
        Ok(plan)
    }

    /// Before anything is built, which takes memory.
    fn check_size(&self) -> Checked<()> {
        let parts = [
            ("interface", self.interface.len()),
            ("application", self.application.len()),
            ("traffic", self.traffic.len()),
        ];
        for (key, count) in parts {
            within(&format!("{key} (tables)"), count, 0, PARTS)?;
        }
        let flows: u64 = self.traffic.values().map(|traffic| u64::from(traffic.flows)).sum();
        within("flows (of all traffic)", flows, 0, FLOWS.into())?;
        Ok(())
    }

    fn driver(&self) -> Checked<plan::Driver> {
        Ok(match self.driver {
            Driver::Napi { budget, round, limit_us } => plan::Driver::Napi {
                budget: within("driver.budget", budget, 1, u32::MAX)?,
                round: within("driver.round", round, 1, u32::MAX)?,
                limit: time("driver.limit_us", limit_us, 1e3 * NS, LONGEST)?,
            },
            Driver::Interrupt {} if self.hand_over.is_none() => {
                let why = "the interrupt handler puts packets into an IP input queue: say its `depth` and its CPU in `cpus`";
                return Err(FileError::of("hand_over", why));
            }
            Driver::Interrupt {} if self.hand_over.as_ref().is_some_and(|hand_over| hand_over.keeps_own) => {
                let why = "is for polls: the interrupt handler puts every packet into an IP input queue";
                return Err(FileError::of("hand_over.keeps_own", why));
            }
            Driver::Interrupt {} => plan::Driver::Interrupt,
            Driver::Polling { hz, burst, user_percent } => {
                let period = gap("driver.hz", hz, 1.0, 1e6)?;
                let left = between("driver.user_percent", user_percent, 0.0, 99.0)?;
                plan::Driver::Polling {
                    period,
                    burst: within("driver.burst", burst, 1, u32::MAX)?,
                    share: (period as f64 * (100.0 - left) / 100.0) as Time,
                }
            }
        })
    }

    fn inputs(&self) -> Checked<Vec<plan::Input>> {
        let Some(hand_over) = &self.hand_over else { return Ok(Vec::new()) };
        within("hand_over.cpus", hand_over.cpus.len(), 1, PARTS)?;
        let depth = within("hand_over.depth", hand_over.depth, 1, DEEPEST)?;
        let inputs = hand_over
            .cpus
            .iter()
            .map(|cpu| Ok(plan::Input { cpu: self.cpu("hand_over.cpus", *cpu)?, depth }));
        inputs.collect()
    }

    fn costs(&self) -> Checked<Costs> {
        let costs = &self.costs;
        let ns = |key: &str, value: f64| time(&format!("costs.{key}"), value, NS, SECOND);
        Ok(Costs {
            interrupt: ns("interrupt", costs.interrupt)?,
            poll: ns("poll", costs.poll)?,
            tick: ns("tick", costs.tick)?,
            ipi: ns("ipi", costs.ipi)?,
            wake: ns("wake", costs.wake)?,
            switch: ns("switch", costs.switch)?,
            driver: Cost {
                frame: ns("driver", costs.driver)?,
                byte: ns("driver_octet", costs.driver_octet)?,
            },
            hand_over: ns("hand_over", costs.hand_over)?,
            take_over: ns("take_over", costs.take_over)?,
            gro: ns("gro", costs.gro)?,
            exponential: costs.spread == format::Spread::Exponential,
        })
    }

    /// The devices as they are set up, with the number of each one's first queue.
    fn devices(&self) -> Checked<Vec<Device>> {
        let mut first = 0;
        let mut devices = Vec::new();
        for (name, interface) in &self.interface {
            let device = device(name, interface, first)?;
            first += u32::from(device.queues);
            devices.push(device);
        }
        Ok(devices)
    }

    fn interface(
        &self,
        plan: &mut Plan,
        device: &Device,
        name: &str,
        interface: &format::Interface,
    ) -> Checked<()> {
        let key = |key: &str| format!("interface.{name}.{key}");
        let byte = match interface.speed_mbps {
            Some(speed) => (8e6 / between(&key("speed_mbps"), speed, 0.001, 8e6)?) as Time,
            None => 0,
        };
        let ring = within(&key("ring"), interface.ring, 1, DEEPEST)?;
        let transmit_ring = within(&key("transmit_ring"), interface.transmit_ring, 1, DEEPEST)?;
        let moderation = moderation(name, interface.moderation)?;
        let port = plan.ports.len();
        plan.ports.push(plan::Port { name: name.to_owned(), byte, transmit_ring });
        for queue in 0..usize::from(device.queues) {
            let cpu = match &interface.vectors {
                None => queue % plan.cpus,
                Some(vectors) => {
                    let cpu = vectors.get(queue).ok_or_else(|| {
                        let problem = format!(
                            "expected a CPU for each of {} queues, found {}",
                            device.queues,
                            vectors.len()
                        );
                        FileError::of(key("vectors"), problem)
                    })?;
                    self.cpu(&key("vectors"), *cpu)?
                }
            };
            plan.queues.push(plan::Queue { port, cpu, ring, moderation });
        }
        Ok(())
    }

    fn application(
        &self,
        name: &str,
        application: &format::Application,
        names: &[&str],
    ) -> Checked<plan::Application> {
        let key = |key: &str| format!("application.{name}.{key}");
        let ns = |of: &str, value: f64| time(&key(of), value, NS, SECOND);
        Ok(plan::Application {
            name: name.to_owned(),
            cpu: application.cpu.map(|cpu| self.cpu(&key("cpu"), cpu)).transpose()?,
            socket: within(&key("socket"), application.socket, 1, DEEPEST)?,
            batch: within(&key("batch"), application.batch, 1, DEEPEST)?,
            call: ns("call", application.call)?,
            system: Cost {
                frame: ns("system", application.system)?,
                byte: ns("system_octet", application.system_octet)?,
            },
            user_call: ns("user_call", application.user_call)?,
            user: Cost {
                frame: ns("user", application.user)?,
                byte: ns("user_octet", application.user_octet)?,
            },
            next: self.goal(&key("next"), application.next.as_deref(), names)?,
        })
    }

    fn traffic(
        &self,
        name: &str,
        traffic: &format::Traffic,
        devices: &[Device],
        names: &[&str],
        inputs: usize,
        capture: Capture<'_>,
    ) -> Checked<plan::Source> {
        let key = |key: &str| format!("traffic.{name}.{key}");
        let of = self.interface.keys().position(|interface| *interface == traffic.interface);
        let Some((port, device)) = of.and_then(|port| Some((port, devices.get(port)?))) else {
            let known: Vec<&str> = self.interface.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let problem =
                format!("no interface is called `{}`; those that there are: {known}", traffic.interface);
            return Err(FileError::of(key("interface"), problem));
        };
        within(&key("flows"), traffic.flows, 1, FLOWS)?;
        let popularity: Popularity = traffic
            .popularity
            .parse()
            .map_err(|problem: String| FileError::of(key("popularity"), expected(&problem)))?;
        let goal = self.goal(&key("to"), traffic.to.as_deref(), names)?;
        let mut stack = Cost {
            frame: time("costs.stack", self.costs.stack, NS, SECOND)?,
            byte: time("costs.stack_octet", self.costs.stack_octet, NS, SECOND)?,
        };
        stack = stack.and(Cost {
            frame: time(&key("stack"), traffic.stack, NS, SECOND)?,
            byte: time(&key("stack_octet"), traffic.stack_octet, NS, SECOND)?,
        });
        if let Goal::Port(_) = goal {
            stack.frame += time("costs.forward", self.costs.forward, NS, SECOND)?;
        }
        let is_capture = matches!(traffic.arrival, Arrival::Capture { .. });
        let Landing { flows, longest, overhead } = match is_capture {
            true => Landing::default(),
            false => landing::land(&key(""), traffic, device, self.seed, inputs)?,
        };
        Ok(plan::Source {
            name: name.to_owned(),
            port,
            arrivals: self.arrivals(&key("arrival"), traffic, device, capture)?,
            sizes: sizes(&key("size"), traffic.size.as_ref())?,
            overhead,
            popularity,
            flows,
            longest: traffic.longest.unwrap_or(longest),
            stack,
            coalesces: traffic.coalesces,
            payload: traffic.payload,
            goal,
        })
    }

    fn arrivals(
        &self,
        key: &str,
        traffic: &format::Traffic,
        device: &Device,
        capture: Capture<'_>,
    ) -> Checked<Arrivals> {
        let of = |part: &str| format!("{key}.{part}");
        let rate = |part: &str, pps: f64| gap(&of(part), pps, 1e-3, 1e9);
        Ok(match &traffic.arrival {
            Arrival::Constant { pps } => Arrivals::Constant { gap: rate("pps", *pps)? },
            Arrival::Poisson { pps } => Arrivals::Poisson { gap: rate("pps", *pps)? },
            Arrival::Senders { number, us, serial_percent } => {
                let number = f64::from(within(&of("number"), *number, 1, 1 << 20)?);
                let us = between(&of("us"), *us, 1e-3, 1e9)?;
                let serial = between(&of("serial_percent"), *serial_percent, 0.0, 100.0)? / 100.0;
                // Who waits for the same part takes turns, so that gaps are equal.
                let per_second = 1e6 * number / (us * (1.0 + serial * (number - 1.0)));
                if per_second > 1e9 {
                    let problem =
                        format!("so many senders send {per_second:e} frames a second, and 10^9 is the most");
                    return Err(FileError::of(key, problem));
                }
                Arrivals::Constant { gap: rate("number", per_second)? }
            }
            Arrival::Bursts { frames, per_second, .. } | Arrival::Trains { frames, per_second }
                if f64::from(*frames) * per_second > 1e9 =>
            {
                return Err(FileError::of(of("frames"), "expected at most 10^9 frames a second in all"));
            }
            Arrival::Bursts { frames, gap_ns, per_second } => Arrivals::Bursts {
                frames: within(&of("frames"), *frames, 1, 1 << 24)?,
                gap: time(&of("gap_ns"), *gap_ns, NS, SECOND)?,
                period: rate("per_second", *per_second)?,
            },
            Arrival::Trains { frames, per_second } => Arrivals::Trains {
                frames: within(&of("frames"), *frames, 1, 1 << 24)?,
                gap: rate("per_second", *per_second)?,
            },
            Arrival::Window { frames, back_us, retry_ms, acknowledgment_octets } => {
                let why = match self.interface[&traffic.interface].speed_mbps {
                    None => "a window needs a line with a speed: say `speed_mbps` of its interface",
                    Some(speed) if speed > FASTEST_WINDOW_MBPS => {
                        "a window fills its line: expected a `speed_mbps` of 672000 at most, 10^9 frames a second"
                    }
                    Some(_) => "",
                };
                if !why.is_empty() {
                    return Err(FileError::of(key, why));
                }
                Arrivals::Window {
                    frames: within(&of("frames"), *frames, 1, DEEPEST)?,
                    back: time(&of("back_us"), *back_us, 1e3 * NS, LONGEST)?,
                    retry: time(&of("retry_ms"), *retry_ms, 1e6 * NS, LONGEST)?.max(1),
                    acknowledgment: within(&of("acknowledgment_octets"), *acknowledgment_octets, 0, DEEPEST)?,
                }
            }
            Arrival::Capture { file } => {
                let receiver = device.receiver(&traffic.interface)?;
                let frames = capture(file, receiver, device.queues, device.first);
                Arrivals::Given(frames.map_err(|problem| FileError::of(of("file"), problem))?)
            }
        })
    }

    fn cpu(&self, key: &str, cpu: u32) -> Checked<usize> {
        within(key, cpu, 0, self.cpus - 1).map(|cpu| cpu as usize)
    }

    fn goal(&self, key: &str, to: Option<&str>, names: &[&str]) -> Checked<Goal> {
        let Some(to) = to else { return Ok(Goal::Stack) };
        let found = match to.strip_prefix("out:") {
            Some(name) => self.interface.keys().position(|interface| interface == name).map(Goal::Port),
            None => names.iter().position(|name| *name == to).map(Goal::Application),
        };
        found.ok_or_else(|| {
            let problem =
                format!("`{to}` is neither an application of the scenario nor `out:` and an interface");
            FileError::of(key, problem)
        })
    }
}

fn device(name: &str, interface: &format::Interface, first: u32) -> Checked<Device> {
    let key = |key: &str| format!("interface.{name}.{key}");
    let Some(nic) = &interface.nic else {
        let queues = within(&key("queues"), interface.queues.unwrap_or(1), 1, PARTS as u16)?;
        let stray = [
            ("key", interface.key.is_some()),
            ("table", interface.table.is_some()),
            ("hash_fields", !interface.hash_fields.is_empty()),
        ];
        if let Some((of, _)) = stray.iter().find(|(_, given)| *given) {
            return Err(FileError::of(key(of), "needs a `nic`, whose hash unit uses it"));
        }
        return Ok(Device { profile: None, setup: Setup::default(), queues, first });
    };
    let profile = nic::lookup(nic).map_err(|error| FileError::of(key("nic"), error.to_string()))?;
    let mut setup = Setup { queues: interface.queues, ..Setup::default() };
    if let Some(text) = &interface.key {
        setup.key = Some(text.parse().map_err(|error| FileError::of(key("key"), format!("{error}")))?);
    }
    for field in &interface.hash_fields {
        let field = field.parse().map_err(|error| FileError::of(key("hash_fields"), format!("{error}")))?;
        setup.fields.push(field);
    }
    let refused = |error: nic::Refusal| FileError::of(format!("interface.{name}"), error.to_string());
    let plain = Receiver::new(profile.clone(), &setup).map_err(refused)?;
    setup.table = match &interface.table {
        None => None,
        Some(IndirectionTable::Entries(entries)) => Some(entries.clone()),
        Some(IndirectionTable::Word(word)) if word == "equal" => {
            let entries = plain.table().map_or(128, |table| table.shape().entries());
            Some((0..entries).map(|entry| (entry % usize::from(plain.queues())) as u16).collect())
        }
        Some(IndirectionTable::Word(word)) => {
            let problem = format!("expected \"equal\" or the queue of each entry, found \"{word}\"");
            return Err(FileError::of(key("table"), problem));
        }
    };
    Receiver::new(profile.clone(), &setup).map_err(refused)?;
    Ok(Device { profile: Some(profile), queues: plain.queues(), setup, first })
}

fn moderation(name: &str, moderation: Moderation) -> Checked<plan::Moderation> {
    let key = |key: &str| format!("interface.{name}.moderation.{key}");
    Ok(match moderation {
        Moderation::Off {} => plan::Moderation::Off,
        Moderation::Igb {} => plan::Moderation::Adaptive,
        Moderation::Interval { us } => {
            plan::Moderation::Throttle { interval: time(&key("us"), us, 1e3 * NS, SECOND)? }
        }
        Moderation::Coalesce { us, frames, segments, segment_octets } => plan::Moderation::Coalesce {
            after: time(&key("us"), us, 1e3 * NS, SECOND)?,
            frames: within(&key("frames"), frames, 1, u32::MAX)?,
            segments: within(&key("segments"), segments, 1, u32::MAX)?,
            segment: within(&key("segment_octets"), segment_octets, 1, DEEPEST)?,
        },
    })
}

fn sizes(key: &str, size: Option<&Size>) -> Checked<Sizes> {
    let text = match size {
        None => return Ok(Sizes::Fixed(Sizes::LEAST)),
        Some(Size::One(size)) => size.to_string(),
        Some(Size::Text(text)) => text.clone(),
    };
    text.parse().map_err(|problem: String| FileError::of(key, expected(&problem)))
}

/// A chain of applications that comes back to itself would never end.
fn no_circle(applications: &[plan::Application]) -> Checked<()> {
    for application in applications {
        let mut at = application;
        for _ in 0..applications.len() {
            match at.next {
                Goal::Application(next) => at = &applications[next],
                _ => break,
            }
        }
        if matches!(at.next, Goal::Application(_)) {
            let key = format!("application.{}.next", application.name);
            return Err(FileError::of(key, "leads back to itself"));
        }
    }
    Ok(())
}

fn expected(problem: &str) -> String {
    format!("expected {problem}")
}

fn within<T: PartialOrd + std::fmt::Display>(key: &str, value: T, least: T, most: T) -> Checked<T> {
    if value < least || value > most {
        return Err(FileError::of(key, format!("expected {least} to {most}, found {value}")));
    }
    Ok(value)
}

fn between(key: &str, value: f64, least: f64, most: f64) -> Checked<f64> {
    if value.is_nan() {
        return Err(FileError::of(key, "is no number"));
    }
    if value < least || value > most {
        // Not its three hundred digits.
        let found = if value.abs() < 1e15 { value.to_string() } else { format!("{value:e}") };
        return Err(FileError::of(key, format!("expected {least} to {most}, found {found}")));
    }
    Ok(value)
}

/// A time of `value` units of `unit` picoseconds.
fn time(key: &str, value: f64, unit: f64, most: Time) -> Checked<Time> {
    between(key, value, 0.0, most as f64 / unit).map(|value| (value * unit).round() as Time)
}

/// The time between two of `rate` in a second.
fn gap(key: &str, rate: f64, least: f64, most: f64) -> Checked<Time> {
    between(key, rate, least, most).map(|rate| ((SECOND as f64 / rate).round() as Time).max(1))
}
