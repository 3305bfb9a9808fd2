//! The kernel's log: lines about checksums, frame lengths, resets and links.

use super::bundle::{Output, Unread, printable};
use crate::redact;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Lines that are kept, the latest.
const MOST: usize = 10_000;
/// Bytes of one record (`CONSOLE_EXT_LOG_MAX`, `kernel/printk/printk.c`, and room).
const RECORD: usize = 16 << 10;
/// Records that are read at most: a log that grows as fast as it is read has an end, too.
const RECORDS: usize = 1 << 20;

/// `dmesg`, lines that matter; those about a reset where they name one of `interfaces`.
pub(super) fn read(interfaces: &[String]) -> Output {
    let mut lines = VecDeque::new();
    let mut keep = |line: String| {
        if matters(&line, interfaces) {
            if lines.len() == MOST {
                lines.pop_front();
            }
            lines.push_back(redact::line(&line).into_owned() + "\n");
        }
    };
    match from_device(&mut keep) {
        Ok(()) => {}
        // A container may lack the device and still be allowed the system call.
        Err(error) => match kernel::process::kernel_log() {
            Ok(log) => log
                .split(|&c| c == b'\n')
                .for_each(|line| keep(without_priority(&printable(line)).to_owned())),
            Err(_) => return Err(Unread::from(error)),
        },
    }
    Ok(lines.into_iter().collect())
}

fn from_device(keep: &mut dyn FnMut(String)) -> io::Result<()> {
    let mut device: File = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
    let mut record = vec![0; RECORD];
    for _ in 0..RECORDS {
        match device.read(&mut record) {
            Ok(0) => break,
            Ok(length) => {
                if let Some(line) = line(record.get(..length).unwrap_or_default()) {
                    keep(line);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // The record was overwritten before it was read; the next one follows.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A line as dmesg prints it, from a record `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,…];TEXT` whose further lines
/// hold properties (`Documentation/ABI/testing/dev-kmsg`).
fn line(record: &[u8]) -> Option<String> {
    let first = record.split(|&c| c == b'\n').next()?;
    let end = first.iter().position(|&c| c == b';')?;
    let (head, text) = (first.get(..end)?, first.get(end.checked_add(1)?..)?);
    let micros: u64 = std::str::from_utf8(head).ok()?.split(',').nth(2)?.trim().parse().ok()?;
    Some(format!("[{:5}.{:06}] {}", micros / 1_000_000, micros % 1_000_000, printable(text)))
}

/// A line of the system call's log without its `<6>`.
fn without_priority(line: &str) -> &str {
    match line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((priority, rest)) if priority.bytes().all(|c| c.is_ascii_digit()) => rest,
        _ => line,
    }
}

/// Whether a line is about what the diagnosis asks about.
fn matters(line: &str, interfaces: &[String]) -> bool {
    const ALWAYS: [&str; 9] = [
        "partial checksum but proto=",
        "failed on len",
        "netdev watchdog",
        "reset adapter",
        "detected tx unit hang",
        "detected hardware unit hang",
        "nic link is",
        "link is up",
        "link is down",
    ];
    let lower = line.to_lowercase();
    let timed_out = lower.contains("transmit queue") && lower.contains("timed out");
    let of_an_interface = ["reset", "link up", "link down", "tx timeout", "tx hang"];
    ALWAYS.iter().any(|words| lower.contains(words))
        || timed_out
        || (of_an_interface.iter().any(|words| lower.contains(words))
            && interfaces.iter().any(|interface| has_word(line, interface)))
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let behind = line.get(at + word.len()..).and_then(|behind| behind.chars().next());
        !is_part(before) && !is_part(behind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_a_line() {
        let record = b"6,1234,5678901234,-;igb 0000:03:00.0 eth0: Reset adapter\n SUBSYSTEM=pci\n";
        assert_eq!(line(record).as_deref(), Some("[ 5678.901234] igb 0000:03:00.0 eth0: Reset adapter"));
        assert_eq!((line(b"6,1;x"), line(b"no head"), line(b"")), (None, None, None));
        assert_eq!(without_priority("<6>[    1.0] x"), "[    1.0] x");
        assert_eq!(without_priority("<a>x"), "<a>x");
    }

    #[test]
    fn only_lines_about_the_receive_path_are_kept() {
        let interfaces = ["eth0".to_owned(), "enp3s0".to_owned()];
        for line in [
            "[1.0] eth7: partial checksum but proto=8100!",
            "[1.0] bge0: failed on len 52?",
            "[1.0] NETDEV WATCHDOG: eth0 (r8169): transmit queue 0 timed out",
            "[1.0] e1000e 0000:00:19.0 eth0: Detected Hardware Unit Hang:",
            "[1.0] igb 0000:03:00.0 enp3s0: igb: enp3s0 NIC Link is Up 100 Mbps Half Duplex",
            "[1.0] r8169 0000:02:00.0 eth0: link up",
            "[1.0] tg3 0000:02:00.0 eth0: Tigon3 reset after transmit timeout",
        ] {
            assert!(matters(line, &interfaces), "{line}");
        }
        for line in [
            "[1.0] usb 1-1: reset high-speed USB device number 2 using xhci_hcd",
            "[1.0] ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
            "[1.0] eth01: reset",
        ] {
            assert!(!matters(line, &interfaces), "{line}");
        }
    }
}
