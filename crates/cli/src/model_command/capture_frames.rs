//! Frames of a capture as the model's arrivals.

use capture::{Capture, LinkType};
use model::scenario::CaptureFrames;
use model::{Given, REFUSED};
use nic::Receiver;
use std::sync::{Arc, Mutex};
use wire::{Link, dissect};

#[derive(Default)]
pub struct Captures {
    problems: Arc<Mutex<Vec<String>>>,
}

impl Captures {
    /// Opens one. Errors: it is none.
    pub fn open(
        &mut self,
        file: &str,
        receiver: Option<Receiver>,
        queues: u16,
        first: u32,
    ) -> Result<CaptureFrames, String> {
        let capture = Capture::open(file).map_err(|error| error.to_string())?;
        let problems = Arc::clone(&self.problems);
        Ok(Box::new(Frames { capture, receiver, queues, first, start: None, problems }))
    }

    /// What was wrong with them, once they were read.
    pub fn problems(&self) -> Vec<String> {
        self.problems.lock().map(|problems| problems.clone()).unwrap_or_default()
    }
}

struct Frames {
    capture: Capture,
    receiver: Option<Receiver>,
    queues: u16,
    first: u32,
    start: Option<i64>,
    problems: Arc<Mutex<Vec<String>>>,
}

impl Iterator for Frames {
    type Item = Given;

    fn next(&mut self) -> Option<Given> {
        let Some(frame) = self.capture.next_frame() else {
            let report = self.capture.report();
            if let Ok(mut problems) = self.problems.lock() {
                let lost = report.problems.iter().filter(|problem| problem.is_loss());
                *problems = lost.map(ToString::to_string).collect();
            }
            return None;
        };
        let time = frame.timestamp_ns().unwrap_or_default();
        let start = *self.start.get_or_insert(time);
        let link = if frame.link_type() == LinkType::Ethernet { Link::Ethernet } else { Link::Ip };
        let seen = dissect(link, frame.data, frame.wire_len as usize);
        let flow = seen.flow().map_or(0, |flow| {
            let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            (flow.bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix) >> 32) as u32
        });
        let queue = match &self.receiver {
            Some(receiver) => {
                let disposition = receiver.disposition(&seen);
                let is_let_in = disposition.longest.is_none_or(|longest| frame.wire_len <= longest);
                let queue = || receiver.land(&disposition, frame.data, &seen).queue.unwrap_or(0);
                is_let_in.then(|| self.first + u32::from(queue()))
            }
            None => Some(self.first + flow % u32::from(self.queues)),
        };
        Some(Given {
            at: u64::try_from(time.saturating_sub(start)).unwrap_or(0).saturating_mul(1000),
            bytes: frame.wire_len,
            flow,
            queue: queue.unwrap_or(REFUSED),
        })
    }
}
