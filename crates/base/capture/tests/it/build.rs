//! Captures built byte by byte in either byte order, independent of the crate's writer.

use rxlane_capture::{Batch, Capture, OpenError, Report};

/// Appends numbers in one byte order.
#[derive(Clone)]
pub struct Bytes {
    pub big: bool,
    pub out: Vec<u8>,
}

impl Bytes {
    pub fn new(big: bool) -> Self {
        Self { big, out: Vec::new() }
    }

    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    pub fn raw(&mut self, data: &[u8]) -> &mut Self {
        self.out.extend_from_slice(data);
        self
    }

    /// Classic pcap file header.
    pub fn pcap_header(&mut self, magic: u32, minor: u16, snaplen: u32, link: u32) -> &mut Self {
        self.u32(magic).u16(2).u16(minor).u32(0).u32(0).u32(snaplen).u32(link)
    }

    pub fn pcap_record(&mut self, seconds: u32, fraction: u32, data: &[u8], wire: u32) -> &mut Self {
        self.u32(seconds).u32(fraction).u32(data.len() as u32).u32(wire).raw(data)
    }

    /// Any pcapng block around `body`, which is padded.
    pub fn block(&mut self, kind: u32, body: &[u8]) -> &mut Self {
        let length = 12 + body.len().next_multiple_of(4) as u32;
        self.u32(kind).u32(length).raw(body);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
        self.u32(length)
    }

    pub fn section(&mut self) -> &mut Self {
        let mut body = Bytes::new(self.big);
        body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX);
        self.block(0x0a0d_0d0a, &body.out)
    }

    /// Interface Description Block; `options` is a list as it stands in the file.
    pub fn interface(&mut self, link: u16, snaplen: u32, options: &[u8]) -> &mut Self {
        let mut body = Bytes::new(self.big);
        body.u16(link).u16(0).u32(snaplen).raw(options);
        self.block(1, &body.out)
    }

    pub fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        self.u16(code).u16(value.len() as u16).raw(value);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
        self
    }

    pub fn enhanced(&mut self, interface: u32, ticks: u64, data: &[u8], wire: u32) -> &mut Self {
        let mut body = Bytes::new(self.big);
        body.u32(interface).u32((ticks >> 32) as u32).u32(ticks as u32).u32(data.len() as u32).u32(wire);
        body.raw(data);
        self.block(6, &body.out)
    }

    /// Obsolete Packet Block.
    pub fn packet(&mut self, interface: u16, ticks: u64, data: &[u8], wire: u32) -> &mut Self {
        let mut body = Bytes::new(self.big);
        body.u16(interface).u16(7).u32((ticks >> 32) as u32).u32(ticks as u32);
        body.u32(data.len() as u32).u32(wire).raw(data);
        self.block(2, &body.out)
    }

    pub fn simple(&mut self, data: &[u8], wire: u32) -> &mut Self {
        let mut body = Bytes::new(self.big);
        body.u32(wire).raw(data);
        self.block(3, &body.out)
    }
}

/// A list of options.
pub fn options(big: bool, all: &[(u16, &[u8])]) -> Vec<u8> {
    let mut list = Bytes::new(big);
    for (code, value) in all {
        list.option(*code, value);
    }
    list.out
}

/// A number in one byte order.
pub fn word(big: bool, value: u32) -> [u8; 4] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

/// A pcapng file of one section with one interface and what `build` adds.
pub fn pcapng(big: bool, options: &[u8], build: impl FnOnce(&mut Bytes)) -> Vec<u8> {
    let mut file = Bytes::new(big);
    file.section().interface(1, 0, options);
    build(&mut file);
    file.out
}

/// A pcap file of this snapshot length with what `build` adds.
pub fn pcap(big: bool, snaplen: u32, build: impl FnOnce(&mut Bytes)) -> Vec<u8> {
    let mut file = Bytes::new(big);
    file.pcap_header(0xa1b2_c3d4, 4, snaplen, 1);
    build(&mut file);
    file.out
}

/// A record with everything that a reader says about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub number: u64,
    pub data: Vec<u8>,
    pub wire: u32,
    pub link: u16,
    pub time: Option<i64>,
    pub section: u32,
}

pub fn seen_in(batch: &Batch) -> impl Iterator<Item = Seen> + '_ {
    batch.frames().map(|frame| Seen {
        number: frame.number,
        data: frame.data.to_vec(),
        wire: frame.wire_len,
        link: frame.link_type().number(),
        time: frame.timestamp_ns(),
        section: frame.interface().section,
    })
}

/// Reads everything in order.
pub fn read(mut capture: Capture) -> (Vec<Seen>, Report) {
    let (mut batch, mut seen) = (Batch::new(), Vec::new());
    while capture.next_batch(&mut batch) {
        assert_eq!(batch.first_frame(), seen.len() as u64 + 1);
        let times = || batch.frames().filter_map(|frame| frame.timestamp_ns());
        assert_eq!(batch.time_span(), times().min().zip(times().max()));
        seen.extend(seen_in(&batch));
    }
    (seen, capture.report())
}

pub fn open(bytes: &[u8]) -> Result<Capture, OpenError> {
    Capture::from_reader(std::io::Cursor::new(bytes.to_vec()), "memory")
}

/// What is said when it cannot be opened.
pub fn refusal(bytes: &[u8]) -> String {
    open(bytes).expect_err("refused").to_string()
}

/// Reads from memory, in order.
pub fn read_bytes(bytes: &[u8]) -> (Vec<Seen>, Report) {
    read(open(bytes).expect("a capture"))
}

/// The problems as a person sees them.
pub fn messages(report: &Report) -> Vec<String> {
    report.problems.iter().map(ToString::to_string).collect()
}
