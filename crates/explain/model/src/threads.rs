//! Applications: processes that read from sockets and want the CPUs on which frames are received.

use crate::answer::Lost;
use crate::cpu::{Level, Work};
use crate::engine::Engine;
use crate::frame::Frame;

impl Engine {
    /// The next piece of work of threads: of the one that has had the least time. Whether there is one.
    #[inline]
    pub(crate) fn next_thread(&mut self, number: usize) -> bool {
        let cpu = &mut self.cpus[number];
        if cpu.has(Level::Thread) {
            return true;
        }
        if cpu.ready.is_empty() {
            return false;
        }
        let extra = std::mem::take(&mut cpu.extra[Level::Thread as usize]);
        if extra > 0 {
            cpu.give(Level::Thread, Work::Extra, Frame::default(), extra);
            return true;
        }
        loop {
            let ready = &self.cpus[number].ready;
            let least = ready.iter().copied().min_by_key(|number| self.applications[*number as usize].fair);
            let Some(chosen) = least else { return false };
            if !self.applications[chosen as usize].in_user {
                self.settle_socket(chosen as usize);
            }
            let application = &mut self.applications[chosen as usize];
            if !application.in_user && application.socket.is_empty() {
                application.asleep = true;
                self.cpus[number].ready.retain(|other| *other != chosen);
                continue;
            }
            self.run(number, chosen);
            return true;
        }
    }

    /// Gives the CPU to an application.
    fn run(&mut self, number: usize, chosen: u32) {
        let application = &mut self.applications[chosen as usize];
        let cpu = &mut self.cpus[number];
        let switch = if cpu.last == chosen { 0 } else { self.plan.costs.switch };
        cpu.last = chosen;
        cpu.fair = application.fair;
        if application.in_user {
            let plan = &application.plan;
            let frames = application.held.iter().map(|frame| plan.user.of(frame.bytes)).sum::<u64>();
            cpu.give(Level::Thread, Work::Use(chosen), Frame::default(), switch + plan.user_call + frames);
            return;
        }
        application.socket.turn();
        let mut cost = switch + application.plan.call;
        while application.held.len() < application.plan.batch as usize
            && let Some(frame) = application.socket.pop(self.now, self.part)
        {
            cost += application.plan.system.of(frame.bytes);
            application.held.push(frame);
        }
        application.calls += 1;
        cpu.give(Level::Thread, Work::Call(chosen), Frame::default(), cost);
    }

    /// A system call returns.
    pub(crate) fn called(&mut self, number: usize, cpu: usize) {
        let plan = &self.applications[number].plan;
        if plan.user_call > 0 || plan.user.frame > 0 || plan.user.byte > 0 {
            self.applications[number].in_user = true;
        } else {
            self.pass_frames(number, cpu);
        }
    }

    /// An application is done with what it read.
    pub(crate) fn used(&mut self, number: usize, cpu: usize) {
        self.applications[number].in_user = false;
        self.pass_frames(number, cpu);
    }

    fn pass_frames(&mut self, number: usize, cpu: usize) {
        let next = self.applications[number].plan.next;
        for at in 0..self.applications[number].held.len() {
            let frame = self.applications[number].held[at];
            self.reach(next, frame, cpu);
        }
        self.applications[number].held.clear();
    }

    /// A packet comes to a socket; its reader is woken where it sleeps.
    #[inline]
    pub(crate) fn enter_socket(&mut self, number: usize, mut frame: Frame, cpu: usize) {
        frame.by = cpu as u16;
        let socket = &mut self.applications[number].socket;
        if !(self.now == self.reached && socket.join(frame, self.now)) {
            socket.insert(frame, self.now, self.reached);
            if self.now == self.reached {
                self.settle_socket(number);
            }
        }
        let application = &mut self.applications[number];
        // Where it was lost for want of room, the reader is awake.
        if !application.asleep {
            return;
        }
        application.asleep = false;
        let level = self.cpus[cpu].level.min(Level::Soft);
        self.cpus[cpu].extra[level as usize] += self.plan.costs.wake;
        let to = self.place(number);
        let application = &mut self.applications[number];
        application.cpu = to;
        application.fair = application.fair.max(self.cpus[to].fair);
        self.cpus[to].ready.push(number as u32);
        if to != cpu && self.cpus[to].level == Level::Idle {
            self.start(to);
        }
    }

    /// Decides which of the packets that came had room.
    pub(crate) fn settle_socket(&mut self, number: usize) {
        while let Some(packet) = self.applications[number].socket.settle(self.reached, self.part) {
            self.applications[number].lost += u64::from(packet.frames);
            self.lose(packet, Lost::Socket);
        }
    }

    /// The CPU on which an application wakes: its own, else where it was if that is idle, else any idle one.
    fn place(&self, number: usize) -> usize {
        let application = &self.applications[number];
        if application.plan.cpu.is_some() || self.cpus[application.cpu].level == Level::Idle {
            return application.cpu;
        }
        let idle = self.cpus.iter().position(|cpu| cpu.level == Level::Idle);
        idle.unwrap_or(application.cpu)
    }
}
