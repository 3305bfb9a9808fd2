//! gzip members (RFC 1952), any number of them.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::{Crc, Decompress, FlushDecompress, Status};

/// gzip members one after another.
pub(super) struct Gzip<R> {
    input: R,
    inflate: Decompress,
    crc: Crc,
    in_member: bool,
    first: bool,
    /// Returned once everything unpacked before it has been.
    failure: Option<io::Error>,
}

impl<R: BufRead> Gzip<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            in_member: false,
            first: true,
            failure: None,
        }
    }

    /// Starts the next member; false at the end of the input.
    fn next_member(&mut self) -> io::Result<bool> {
        if !self.first {
            self.skip_padding()?;
        }
        if self.input.fill_buf()?.is_empty() {
            return Ok(false);
        }
        Header { input: &mut self.input, crc: Crc::new() }.read(self.first)?;
        self.inflate.reset(false);
        self.crc.reset();
        self.in_member = true;
        self.first = false;
        Ok(true)
    }

    /// Archives from block devices end in zeros, which gzip ignores too.
    fn skip_padding(&mut self) -> io::Result<()> {
        loop {
            let ahead = self.input.fill_buf()?;
            let zeros = ahead.iter().take_while(|&&byte| byte == 0).count();
            let all = zeros == ahead.len();
            self.input.consume(zeros);
            if zeros == 0 || !all {
                return Ok(());
            }
        }
    }

    /// Unpacks into `buf`. No bytes means that the member has ended or failed.
    fn inflate(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let packed = self.input.fill_buf()?;
            let at_end = packed.is_empty();
            let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
            let result = self.inflate.decompress(packed, buf, FlushDecompress::None);
            let used = (self.inflate.total_in() - before_in) as usize;
            let unpacked = (self.inflate.total_out() - before_out) as usize;
            self.input.consume(used);
            self.crc.update(&buf[..unpacked]);
            match result {
                Ok(Status::StreamEnd) => {
                    self.in_member = false;
                    self.failure = self.check_trailer().err();
                }
                Ok(_) if used == 0 && unpacked == 0 => {
                    let kind = if at_end { ErrorKind::UnexpectedEof } else { ErrorKind::InvalidData };
                    self.failure = Some(kind.into());
                }
                Ok(_) => {}
                Err(error) => self.failure = Some(error.into()),
            }
            if unpacked > 0 || self.failure.is_some() || !self.in_member {
                return Ok(unpacked);
            }
        }
    }

    /// Section 2.3.1: CRC32 and ISIZE.
    fn check_trailer(&mut self) -> io::Result<()> {
        let mut trailer = [0; 8];
        self.input.read_exact(&mut trailer)?;
        let [a, b, c, d, e, f, g, h] = trailer;
        let (stated, size) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if stated != self.crc.sum() {
            return Err(invalid(format!(
                "checksum is {:#010x}, member states {stated:#010x}",
                self.crc.sum()
            )));
        }
        // ISIZE is the size modulo 2^32.
        if size != self.inflate.total_out() as u32 {
            return Err(invalid(format!("{} bytes, member states {size}", self.inflate.total_out())));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if !self.in_member && !self.next_member()? {
                return Ok(0);
            }
            let unpacked = self.inflate(buf)?;
            if unpacked > 0 {
                return Ok(unpacked);
            }
        }
    }
}

/// A member header being read (section 2.3).
struct Header<'a, R> {
    input: &'a mut R,
    /// Of the header so far, for CRC16.
    crc: Crc,
}

impl<R: BufRead> Header<'_, R> {
    fn read(mut self, first: bool) -> io::Result<()> {
        const FHCRC: u8 = 2;
        const FEXTRA: u8 = 4;
        const FNAME: u8 = 8;
        const FCOMMENT: u8 = 16;
        const RESERVED: u8 = 0xe0;
        let fixed: [u8; 10] = self.take()?;
        let [0x1f, 0x8b, method, flags, ..] = fixed else {
            let what = if first { "no gzip header" } else { "data behind the last member is not gzip" };
            return Err(invalid(what.to_owned()));
        };
        if method != 8 || flags & RESERVED != 0 {
            return Err(invalid(format!("unknown method {method} or flags {flags:#04x}")));
        }
        if flags & FEXTRA != 0 {
            for _ in 0..u16::from_le_bytes(self.take()?) {
                self.take::<1>()?;
            }
        }
        for text in [FNAME, FCOMMENT] {
            while flags & text != 0 && self.take()? != [0] {}
        }
        if flags & FHCRC != 0 {
            let calculated = self.crc.sum() as u16;
            if u16::from_le_bytes(self.take()?) != calculated {
                return Err(invalid("header checksum is wrong".to_owned()));
            }
        }
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.crc.update(&bytes);
        Ok(bytes)
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
