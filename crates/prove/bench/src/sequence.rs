//! Loss, reordering and duplicates of one flow, from its sequence numbers.
//!
//! Reordered is a datagram whose number is less than the next one expected (RFC 4737 section 3.3); a duplicate is not
//! (section 3.3 counts each number once). What is missing counts as lost until it comes.

/// Numbers behind the greatest one of which it is remembered whether they came.
pub const WINDOW: u64 = 4096;
/// A number this far ahead of its flow was not made by the flow's sender.
pub const JUMP: u64 = 1 << 32;

const WORDS: usize = (WINDOW / 64) as usize;

#[derive(Clone, Debug)]
pub struct Flow {
    /// The least number that came, or 0 where the beginning was seen.
    first: u64,
    /// One more than the greatest that came or was reported.
    next: u64,
    /// Numbers that came, each once.
    received: u64,
    has_ended: bool,
    /// A bit for each of the last numbers.
    window: Box<[u64; WORDS]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Next,
    Reordered,
    Duplicate,
    /// So far behind that nobody knows whether it came before.
    TooLate,
    Implausible,
}

impl Flow {
    /// A flow of which the number `sequence` is the first that is heard.
    pub fn starting(sequence: u64) -> Flow {
        Flow { first: sequence, next: sequence, received: 0, has_ended: false, window: Box::new([0; WORDS]) }
    }

    pub fn take(&mut self, sequence: u64) -> Seen {
        if sequence >= self.next {
            if sequence - self.next > JUMP {
                return Seen::Implausible;
            }
            self.forget_up_to(sequence);
            self.note(sequence);
            self.next = sequence + 1;
            return Seen::Next;
        }
        if self.next - sequence > WINDOW {
            return Seen::TooLate;
        }
        if self.has(sequence) {
            return Seen::Duplicate;
        }
        self.first = self.first.min(sequence);
        self.note(sequence);
        Seen::Reordered
    }

    pub fn begin(&mut self) {
        if self.first <= JUMP {
            self.first = 0;
        }
    }

    /// The sender reported that it has sent so many. Whether it was reported for the first time.
    pub fn end(&mut self, sent: u64) -> bool {
        let is_plausible = sent >= self.next && sent - self.next <= JUMP;
        if self.has_ended || !is_plausible {
            return false;
        }
        self.forget_up_to(sent);
        self.next = sent;
        self.has_ended = true;
        true
    }

    pub fn missing(&self) -> u64 {
        (self.next - self.first).saturating_sub(self.received)
    }

    pub fn expected(&self) -> u64 {
        self.next - self.first
    }

    /// Datagrams before the first one that came: lost, or sent before anybody listened.
    pub fn before_first(&self) -> u64 {
        self.first
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Adds what another socket saw of the same flow.
    pub fn join(&mut self, other: &Flow) {
        self.first = self.first.min(other.first);
        self.next = self.next.max(other.next);
        self.received += other.received;
        self.has_ended |= other.has_ended;
    }

    fn note(&mut self, sequence: u64) {
        self.received += 1;
        let (word, bit) = place(sequence);
        if let Some(word) = self.window.get_mut(word) {
            *word |= bit;
        }
    }

    fn has(&self, sequence: u64) -> bool {
        let (word, bit) = place(sequence);
        self.window.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Numbers from `next` up to this one, itself included, have not come.
    fn forget_up_to(&mut self, sequence: u64) {
        if sequence - self.next >= WINDOW {
            self.window.fill(0);
            return;
        }
        for number in self.next..=sequence {
            let (word, bit) = place(number);
            if let Some(word) = self.window.get_mut(word) {
                *word &= !bit;
            }
        }
    }
}

fn place(sequence: u64) -> (usize, u64) {
    (((sequence / 64) as usize) % WORDS, 1 << (sequence % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(sequences: impl IntoIterator<Item = u64>) -> (Flow, Vec<Seen>) {
        let mut sequences = sequences.into_iter().peekable();
        let mut flow = Flow::starting(*sequences.peek().expect("one"));
        let seen = sequences.map(|sequence| flow.take(sequence)).collect();
        (flow, seen)
    }

    #[test]
    fn rfc_4737_says_what_is_reordered() {
        use Seen::{Next, Reordered};
        let (flow, seen) = flow([0, 1, 4, 2, 5, 3, 6]);
        assert_eq!(seen, [Next, Next, Next, Reordered, Next, Reordered, Next]);
        assert_eq!((flow.missing(), flow.expected()), (0, 7));
    }

    #[test]
    fn what_is_missing_is_lost_until_it_comes() {
        let (mut flow, _) = flow([0, 1, 5]);
        assert_eq!(flow.missing(), 3);
        flow.take(3);
        assert_eq!(flow.missing(), 2);
        assert!(flow.end(10) && !flow.end(11) && flow.has_ended());
        assert_eq!((flow.missing(), flow.expected()), (6, 10));
    }

    #[test]
    fn duplicates_hide_no_loss() {
        let (mut flow, seen) = flow([0, 1, 3, 3, 1]);
        assert_eq!(seen[3..], [Seen::Duplicate, Seen::Duplicate]);
        assert_eq!(flow.missing(), 1);
        assert_eq!(flow.take(2), Seen::Reordered);
        assert_eq!(flow.take(2), Seen::Duplicate);
        assert_eq!(flow.missing(), 0);
    }

    #[test]
    fn the_window_goes_around() {
        // Every third is missing, over several windows; then the last of them come late.
        let (mut flow, seen) = flow((0..3 * WINDOW).filter(|number| number % 3 != 2));
        assert!(seen.iter().all(|seen| *seen == Seen::Next));
        let next = flow.next;
        assert_eq!(flow.missing(), next - flow.received);
        for number in (next - WINDOW..next).filter(|number| number % 3 == 2) {
            assert_eq!(flow.take(number), Seen::Reordered, "{number}");
            assert_eq!(flow.take(number), Seen::Duplicate, "{number}");
        }
        assert_eq!(flow.take(next - WINDOW - 1), Seen::TooLate);
        // A jump of more than a window forgets all of it.
        assert_eq!(flow.take(next + 2 * WINDOW), Seen::Next);
        assert_eq!(flow.take(next + 2 * WINDOW - 1), Seen::Reordered);
        assert_eq!(flow.take(next + WINDOW + 1), Seen::Reordered);
        assert_eq!(flow.take(next), Seen::TooLate);
    }

    #[test]
    fn a_flow_counts_from_what_came_first_unless_its_beginning_was_seen() {
        let (mut late, _) = flow([100, 101, 99]);
        assert_eq!((late.missing(), late.before_first()), (0, 99));
        late.begin();
        assert_eq!((late.missing(), late.before_first()), (99, 0));
        let mut unheard = Flow::starting(7);
        assert!(unheard.end(7));
        assert_eq!((unheard.missing(), unheard.before_first()), (0, 7));
    }

    #[test]
    fn numbers_that_nobody_sent_change_nothing() {
        let (mut flow, _) = flow([0, 1]);
        assert_eq!(flow.take(2 + JUMP + 1), Seen::Implausible);
        assert!(!flow.end(1) && !flow.end(2 + JUMP + 1));
        assert_eq!((flow.missing(), flow.expected()), (0, 2));
    }

    #[test]
    fn what_two_sockets_saw_is_one_flow() {
        let (mut one, _) = flow([0, 1, 5]);
        let (two, _) = flow([2, 3, 6]);
        one.join(&two);
        assert_eq!((one.expected(), one.missing()), (7, 1));
    }
}
