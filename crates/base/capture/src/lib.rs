//! Capture files: classic pcap and pcapng, read in batches by one or several threads, and written.
//!
//! Sources of the rules implemented here, named where each is applied:
//! * classic pcap: IETF draft-ietf-opsawg-pcap, "PCAP Capture File Format";
//! * pcapng: IETF draft-ietf-opsawg-pcapng, "PCAP Now Generic (pcapng) Capture File Format";
//! * link types: the registry at <https://www.tcpdump.org/linktypes.html>;
//! * gzip RFC 1952 and Zstandard RFC 8878, recognised by their magic numbers.
//!
//! [`Capture::open`] (or [`Capture::from_reader`] for a pipe) recognises the format; then
//! [`Capture::next_batch`] or [`Capture::next_frame`] read in order, and
//! [`Capture::read_parallel`] lets several threads take batches. A file that is no capture is an
//! [`OpenError`]; anything that goes wrong later is a [`Problem`] in the [`Report`], after every whole record
//! before it was delivered.
//!
//! ```
//! use rxlane_capture::{Capture, LinkType, Resolution, Writer};
//!
//! let mut file = Vec::new();
//! let mut writer = Writer::pcap(&mut file, LinkType::Ethernet, Resolution::Nanoseconds)?;
//! writer.write(1_700_000_000_000_000_001, &[0; 60], 60)?;
//! writer.finish()?;
//!
//! let mut capture = Capture::from_reader(std::io::Cursor::new(file), "example.pcap")?;
//! while let Some(frame) = capture.next_frame() {
//!     assert_eq!((frame.number, frame.data.len(), frame.wire_len), (1, 60, 60));
//!     assert_eq!(frame.timestamp_ns(), Some(1_700_000_000_000_000_001));
//! }
//! assert!(capture.report().problems.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod batch;
mod bytes;
mod decompress;
mod fcs;
mod interface;
mod link_type;
mod open;
mod parallel;
mod pcap;
mod pcapng;
mod problem;
mod progress;
mod stream;
mod walk;
mod write;

pub use batch::{Batch, Frame, Frames};
pub use interface::{Interface, TimestampUnit};
pub use link_type::LinkType;
pub use open::{Capture, Compression, Format, OpenError, Report};
pub use problem::{Problem, Reason};
pub use progress::Progress;
pub use walk::{MAX_BLOCK, MAX_CAPTURED, MAX_INTERFACES};
pub use write::{Resolution, Writer};
