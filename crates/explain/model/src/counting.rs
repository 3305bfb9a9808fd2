//! What an engine has counted.

use crate::answer::{Answer, CpuAnswer, QueueAnswer, WaitAnswer};
use crate::cpu::{Cpu, INTERRUPT, SOFT, SYSTEM, USER};
use crate::engine::{Application, Engine, Input, Queue};
use crate::source::Source;

impl Engine {
    fn under_way(&self) -> u64 {
        let queue = |queue: &Queue| queue.ring.frames() + queue.held.frames();
        let application = |application: &Application| {
            let held = application.held.iter().map(|frame| u64::from(frame.frames)).sum::<u64>();
            application.socket.frames() + held
        };
        self.queues.iter().map(queue).sum::<u64>()
            + self.inputs.iter().map(|input| input.fifo.frames()).sum::<u64>()
            + self.applications.iter().map(application).sum::<u64>()
            + self.cpus.iter().map(Cpu::frames).sum::<u64>()
    }

    /// From here on everything counts. Frames that are under way.
    pub(crate) fn start_counting(&mut self) -> u64 {
        self.sources.iter_mut().for_each(|source| source.counts.start_counting());
        for queue in &mut self.queues {
            queue.ring.start_counting();
            (queue.frames, queue.lost, queue.interrupts) = (0, 0, 0);
        }
        for input in &mut self.inputs {
            input.fifo.start_counting();
            input.lost = 0;
        }
        for application in &mut self.applications {
            application.socket.start_counting();
            (application.spent, application.calls, application.lost) = (0, 0, 0);
        }
        for cpu in &mut self.cpus {
            (cpu.spent, cpu.squeezes) = ([0; 4], 0);
        }
        self.events = 0;
        self.under_way()
    }

    /// Which share of the time the line of an interface was busy.
    fn filled(&self, port: usize) -> Option<f64> {
        let byte = self.plan.ports[port].byte;
        let bytes: u64 =
            self.sources.iter().filter(|of| of.plan.port == port).map(Source::bytes_on_wire).sum();
        (byte > 0).then(|| byte as f64 * bytes as f64 / self.plan.duration as f64)
    }

    /// What has been counted.
    pub(crate) fn answer(self, before: u64) -> Answer {
        let after = self.under_way();
        let duration = self.plan.duration;
        let filled = (0..self.plan.ports.len()).map(|port| self.filled(port)).collect();
        let mut numbers = vec![0; self.plan.ports.len()];
        let queue = |queue: &Queue| {
            let number = numbers[queue.plan.port];
            numbers[queue.plan.port] += 1;
            QueueAnswer {
                port: queue.plan.port,
                number,
                cpu: queue.plan.cpu,
                frames: queue.frames,
                lost: queue.lost,
                interrupts: queue.interrupts,
                peak: queue.ring.peak,
                bursts: queue.ring.bursts,
            }
        };
        let input = |input: &Input| WaitAnswer {
            name: format!("CPU {}", input.cpu),
            cpu: Some(input.cpu),
            lost: input.lost,
            peak: input.fifo.peak,
            bursts: input.fifo.bursts,
            spent: 0,
            calls: 0,
        };
        let application = |application: &Application| WaitAnswer {
            name: application.plan.name.clone(),
            cpu: application.plan.cpu,
            lost: application.lost,
            peak: application.socket.peak,
            bursts: application.socket.bursts,
            spent: application.spent,
            calls: application.calls,
        };
        let cpu = |cpu: &Cpu| CpuAnswer {
            interrupt: cpu.spent[INTERRUPT],
            softirq: cpu.spent[SOFT],
            system: cpu.spent[SYSTEM],
            user: cpu.spent[USER],
            idle: duration.saturating_sub(cpu.spent.iter().sum()),
            squeezes: cpu.squeezes,
        };
        Answer {
            duration,
            before,
            after,
            events: self.events,
            queues: self.queues.iter().map(queue).collect(),
            inputs: self.inputs.iter().map(input).collect(),
            applications: self.applications.iter().map(application).collect(),
            cpus: self.cpus.iter().map(cpu).collect(),
            ports: self.plan.ports.iter().map(|port| port.name.clone()).collect(),
            filled,
            traffic: self.sources.into_iter().map(|source| source.counts).collect(),
        }
    }
}
