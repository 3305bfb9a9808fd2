//! Zstandard frames (RFC 8878), any number of them, with skippable frames between.

mod header;

use std::error::Error;
use std::io::{self, BufRead, Read};

use header::{Head, read_head};
use ruzstd::decoding::errors::{BlockHeaderReadError, FrameDecoderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The file ends within `part`.
fn cut(part: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the file ends within {part}"))
}

/// What the decoder found, in words: its own messages show values of its internal types.
fn sentence(error: &FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(read) = error.downcast_ref::<io::Error>() {
            return match read.kind() {
                io::ErrorKind::UnexpectedEof => cut("a frame"),
                kind => io::Error::new(kind, read.to_string()),
            };
        }
        cause = error.source();
    }
    io::Error::other(match error {
        FrameDecoderError::DictNotProvided { dict_id } => {
            return io::Error::other(format!(
                "a frame needs the dictionary {dict_id}; unpack it with zstd -D first"
            ));
        }
        FrameDecoderError::FailedToReadBlockHeader(BlockHeaderReadError::FoundReservedBlock) => {
            "a block has the reserved type 3"
        }
        FrameDecoderError::FailedToReadBlockHeader(_) => "a block has an impossible header",
        FrameDecoderError::FailedToReadBlockBody(_) => "the contents of a block are damaged",
        _ => "a frame is damaged",
    })
}

/// Zstandard frames one after another.
pub(super) struct Zstd<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
    /// Returned once everything decoded before it has been read.
    failure: Option<io::Error>,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, decoder: FrameDecoder::new(), in_frame: false, failure: None }
    }

    /// Starts the next frame; false at the end of the input.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match read_head(&mut self.input)? {
                Head::Skippable { length } => {
                    let skipped = io::copy(&mut self.input.by_ref().take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(cut("a skippable frame"));
                    }
                }
                Head::Frame { bytes, window } => {
                    // A decoder that is used again refuses more than this; a new one does not.
                    if window > 100 << 20 {
                        self.decoder = FrameDecoder::new();
                    }
                    self.decoder.init(&bytes[..]).map_err(|error| sentence(&error))?;
                    self.in_frame = true;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Decodes one block. After an error the frame is closed with an empty last block, because the decoder
    /// holds back a window's worth (often megabytes) of good output until the frame has ended.
    fn next_block(&mut self) {
        const EMPTY_LAST_BLOCK_AND_CHECKSUM: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
        let one = BlockDecodingStrategy::UptoBlocks(1);
        if let Err(error) = self.decoder.decode_blocks(&mut self.input, one) {
            self.failure = Some(sentence(&error));
            let closing = &EMPTY_LAST_BLOCK_AND_CHECKSUM[..];
            if self.decoder.decode_blocks(closing, BlockDecodingStrategy::UptoBlocks(1)).is_err() {
                self.in_frame = false;
            }
        }
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stated), Some(calculated)) if stated != calculated => Err(io::Error::other(format!(
                "content checksum is {calculated:#010x}, frame states {stated:#010x}"
            ))),
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame {
                if let Some(failure) = self.failure.take() {
                    return Err(failure);
                }
                if !self.next_frame()? {
                    return Ok(0);
                }
            }
            let read = self.decoder.read(buf)?;
            if read > 0 {
                return Ok(read);
            }
            if self.decoder.is_finished() {
                self.end_frame()?;
            } else {
                self.next_block();
            }
        }
    }
}
