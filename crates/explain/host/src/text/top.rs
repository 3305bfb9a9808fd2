//! `top`: load by CPU, and the processes that matter, of Linux (procps, BusyBox), FreeBSD and NetBSD.
//!
//! A line for all CPUs together (`%Cpu(s):`, `CPU:`) says nothing about the one that is full, unless there is one;
//! one CPU's is `%Cpu0  :
//! 0.0 us, …` (procps 3.3 and later), `Cpu0  :  0.0%us, …` (before), `CPU0:   0% usr …` (BusyBox),
//! `CPU 0:  0.0% user, …` (FreeBSD, `-P`), `CPU0 states:  0.0% user, …` (NetBSD, `-1`). procps prints numbers by the
//! locale, so that a comma may stand in them: `%Cpu0  : 19,1 us,  0,7 sy, …`.

use super::ps::{Columns, Table};
use super::{Line, Outcome, Section, Tool, note_load};
use crate::{Load, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "top",
    command: |command| command.program == "top",
    heading: |line| {
        load_of(line).is_some() || Columns::titled(line).is_some() || Columns::of_thread(line).is_some()
    },
    open: |_| Box::new(Screen::default()),
};

#[derive(Default)]
struct Screen {
    table: Table,
    has_titles: bool,
}

impl Section for Screen {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        match load_of(text) {
            Some((Cpu::One(cpu), load)) => {
                note_load(cpu, line.fact(load), snapshot);
                return Outcome::Taken;
            }
            Some((Cpu::All, load)) => {
                line.kept().load = Some(line.fact(load));
                return Outcome::Taken;
            }
            None => {}
        }
        if self.table.titles(text) {
            self.has_titles = true;
            return Outcome::Taken;
        }
        if !self.has_titles
            && let Some(columns) = Columns::of_thread(text)
        {
            self.table.begin(columns);
            self.has_titles = true;
        }
        if self.has_titles && self.table.row(line, snapshot) {
            return Outcome::Taken;
        }
        // Lines about memory and load averages stand between those of the CPUs and the table.
        if text.is_empty() || !self.has_titles { Outcome::Skipped } else { Outcome::Over }
    }
}

/// Whom a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpu {
    One(u32),
    All,
}

/// The CPU, or all together, and the load.
fn load_of(line: &str) -> Option<(Cpu, Load)> {
    let rest = line.strip_prefix('%').unwrap_or(line);
    let rest = rest.strip_prefix("Cpu").or_else(|| rest.strip_prefix("CPU"))?;
    let (head, values) = rest.split_once(':')?;
    let cpu = match head.trim().trim_end_matches("states").trim_end() {
        "" | "(s)" => Cpu::All,
        number => Cpu::One(number.parse().ok()?),
    };
    let mut load = Load::default();
    let mut kinds = 0;
    // Values and names in turn: `0.0 us`, `0.0%us`, `0% usr`, `0.0% user`. A comma between digits is the locale's
    // point.
    let bytes = values.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let pointed: String = values
        .char_indices()
        .map(
            |(at, c)| if c == ',' && is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)) { '.' } else { c },
        )
        .collect();
    let words: Vec<&str> = pointed.split([' ', ',', '%', '\t']).filter(|word| !word.is_empty()).collect();
    for pair in words.chunks_exact(2) {
        let [number, name] = pair else { continue };
        let share: f64 = number.parse().ok().filter(|share| (0.0..=100.0).contains(share))?;
        match *name {
            // `ut` is the French `us`.
            "us" | "usr" | "user" | "ut" | "ni" | "nic" | "nice" => load.user += share,
            "sy" | "sys" | "system" => load.system += share,
            "hi" | "irq" | "interrupt" => load.interrupt += share,
            "si" | "sirq" => load.softirq = Some(load.softirq.unwrap_or(0.0) + share),
            "id" | "idle" | "wa" | "io" => load.idle += share,
            "st" | "steal" => {}
            _ => return None,
        }
        kinds += 1;
    }
    // FreeBSD has five, older Linux five or more; fewer is a line that was cut.
    (kinds >= 5 && words.contains(&"id") | words.contains(&"idle")).then_some((cpu, load))
}

#[cfg(test)]
mod tests {
    use crate::Load;
    use crate::text::read;

    fn load(line: &str) -> Option<(u32, Load)> {
        match super::load_of(line)? {
            (super::Cpu::One(cpu), load) => Some((cpu, load)),
            (super::Cpu::All, _) => None,
        }
    }

    #[test]
    fn load_of_many_tops() {
        let hot = |user, system, interrupt, softirq, idle| Load { user, system, interrupt, softirq, idle };
        // procps 4.
        assert_eq!(
            load("%Cpu1  :  1.0 us,  2.0 sy,  0.5 ni, 20.0 id,  0.5 wa,  1.0 hi, 75.0 si,  0.0 st"),
            Some((1, hot(1.5, 2.0, 1.0, Some(75.0), 20.5)))
        );
        // procps 3.2.
        assert_eq!(
            load("Cpu0  :  0.0%us,  0.0%sy,  0.0%ni, 98.0%id,  0.0%wa,  0.0%hi,  2.0%si,  0.0%st"),
            Some((0, hot(0.0, 0.0, 0.0, Some(2.0), 98.0)))
        );
        // procps in French, as in github.com/ntop/PF_RING issue 248: a share of 100 touches the comma before it.
        assert_eq!(
            load("%Cpu2  :  0,0 ut,  0,0 sy,  0,0 ni,100,0 id,  0,0 wa,  0,0 hi,  0,0 si,  0,0 st"),
            Some((2, hot(0.0, 0.0, 0.0, Some(0.0), 100.0)))
        );
        assert_eq!(
            load("%Cpu0  : 19,1 us,  0,7 sy,  0,0 ni, 80,2 id,  0,0 wa,  0,0 hi,  0,0 si,  0,0 st"),
            Some((0, hot(19.1, 0.7, 0.0, Some(0.0), 80.2)))
        );
        // BusyBox 1.36.
        assert_eq!(
            load("CPU3:   0% usr   5% sys   0% nic   2% idle   0% io   0% irq  93% sirq"),
            Some((3, hot(0.0, 5.0, 0.0, Some(93.0), 2.0)))
        );
        // FreeBSD 13, top -P; NetBSD 9, top -1.
        assert_eq!(
            load("CPU 0:  0.0% user,  0.0% nice,  0.4% system, 98.0% interrupt,  1.6% idle"),
            Some((0, hot(0.0, 0.4, 98.0, None, 1.6)))
        );
        assert_eq!(
            load("CPU2 states:  0.0% user,  0.0% nice,  0.5% system, 99.5% interrupt,  0.0% idle"),
            Some((2, hot(0.0, 0.5, 99.5, None, 0.0)))
        );
        for line in [
            "%Cpu(s):  1.0 us,  2.0 sy,  0.0 ni, 97.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st",
            "CPU:  0.1% user,  0.0% nice,  0.0% system,  0.0% interrupt, 99.9% idle",
            "CPU0: Intel(R) Xeon(R) CPU",
            "%Cpu1  :  1.0 us,  2.0 sy",
            "CPU 0:  nan% user,  0.0% nice,  0.4% system, 98.0% interrupt,  1.6% idle",
            "CPU 99999999999:  0.0% user,  0.0% nice,  0.4% system, 98.0% interrupt,  1.6% idle",
        ] {
            assert_eq!(load(line), None, "{line}");
        }
    }

    // FreeBSD 13, top -aSHIP; written for this test.
    const FREEBSD: &str = "\
last pid: 24931;  load averages:  1.89,  0.94,  0.81  up 41+06:26:24    00:51:55
245 threads:   6 running, 181 sleeping, 54 waiting
CPU 0:  0.0% user,  0.0% nice,  0.4% system, 98.0% interrupt,  1.6% idle
CPU 1:  0.4% user,  0.0% nice,  1.6% system,  0.0% interrupt, 98.0% idle
Mem: 3977M Active, 14G Inact, 1815M Wired, 504M Buf, 74G Free
Swap: 12G Total, 12G Free

  PID USERNAME    PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND
   11 root        155 ki31     0B    64K RUN      1  35:01  98.10% idle{idle: cpu1}
   12 root        -92    -     0B   816K CPU0     0  99:02  97.66% intr{irq256: igb0:que 0}
24931 root         20    0    14M  3960K CPU1     1   0:00   0.03% top -aSHIP
  713 root         52    0    21M  9536K select   1   0:00   0.20% /usr/local/sbin/mpd5 -b{mpd5}
   12 root        -72    -     0B   816K WAIT     1   0:05   0.10% intr{swi1: netisr 0}
";

    #[test]
    fn cut_at_every_octet() {
        let whole = read(FREEBSD);
        for (end, _) in FREEBSD.match_indices('\n') {
            let part = read(&FREEBSD[..end]);
            assert!(part.processes.iter().all(|one| whole.processes.contains(one)));
            assert!(part.cpus.load.iter().all(|(cpu, load)| whole.cpus.load.get(cpu) == Some(load)));
        }
    }
}
