//! Frames as a pcap file (draft-ietf-opsawg-pcap, version 2.4), nanoseconds, little-endian.

use kernel::socket::Control;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// Magic number of a file with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// LINKTYPE_ETHERNET.
const ETHERNET: u32 = 1;
/// Bytes of a record's header.
const RECORD: usize = 16;
/// Where a VLAN tag stands: behind both addresses (IEEE 802.1Q-2022, clause 9.1).
const ADDRESSES: usize = 12;

/// A frame as the socket gave it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its first bytes, without the tag beside it.
    pub bytes: &'a [u8],
    /// How many it has, without that tag.
    pub length: usize,
    /// What the kernel says beside it.
    pub control: Control,
}

/// Writes a file, record by record.
pub struct Writer<'a> {
    file: &'a mut dyn Write,
    snap: u32,
    written: u64,
    record: Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Writes the file's header.
    pub fn new(file: &'a mut dyn Write, snap: u32) -> io::Result<Writer<'a>> {
        let mut header = Vec::with_capacity(24);
        header.extend(MAGIC.to_le_bytes());
        header.extend(2_u16.to_le_bytes());
        header.extend(4_u16.to_le_bytes());
        header.extend([0; 8]);
        header.extend(snap.to_le_bytes());
        header.extend(ETHERNET.to_le_bytes());
        file.write_all(&header)?;
        Ok(Writer { file, snap, written: header.len() as u64, record: Vec::new() })
    }

    /// Bytes of the file.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that the frame's record takes.
    pub fn length_with(&self, frame: &Frame<'_>) -> u64 {
        let kept = frame.bytes.len() + if frame.control.tag.is_some() { 4 } else { 0 };
        (RECORD + kept.min(self.snap as usize)) as u64
    }

    /// Writes a frame, its tag put back, and gives its full length.
    pub fn write(&mut self, frame: &Frame<'_>) -> io::Result<u64> {
        let (addresses, rest) = frame.bytes.split_at(frame.bytes.len().min(ADDRESSES));
        let record = &mut self.record;
        record.clear();
        record.extend([0; RECORD]);
        record.extend(addresses);
        let mut length = u32::try_from(frame.length).unwrap_or(u32::MAX);
        if let Some(tag) = frame.control.tag.filter(|_| addresses.len() == ADDRESSES) {
            record.extend(tag.tpid.0.to_be_bytes());
            record.extend(tag.tci.0.to_be_bytes());
            length = length.saturating_add(4);
        }
        record.extend(rest);
        record.truncate(RECORD + self.snap as usize);
        let since = frame
            .control
            .time
            .or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).ok())
            .unwrap_or_default();
        // Seconds are 32 bits in this format: until 2106.
        let header = [since.as_secs() as u32, since.subsec_nanos(), (record.len() - RECORD) as u32, length];
        for (place, value) in record.chunks_exact_mut(4).zip(header) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        self.file.write_all(record)?;
        self.written += record.len() as u64;
        Ok(length.into())
    }

    /// Hands everything on to whatever is below.
    pub fn finish(self) -> io::Result<()> {
        self.file.flush()
    }
}
