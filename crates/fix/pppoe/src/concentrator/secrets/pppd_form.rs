//! Lines of client, server, password and addresses, as pppd reads them (`pap-secrets`, `chap-secrets`).

use super::{Address, Error, NO_USER, Password, Profile, Secrets, Subscriber, no_password, station};
use format::{Quotable, plural};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Reads the lines that are for `server`, whose address is `own`.
pub(super) fn read(text: &[u8], server: &[u8], own: Option<Ipv4Addr>) -> Result<Secrets, Error> {
    let mut words = Words { rest: text, line: 1 };
    let mut for_others = 0;
    // With the number of wildcards of its line: the one with the fewest holds, and of those the first.
    let mut found: HashMap<Box<[u8]>, (usize, Subscriber)> = HashMap::new();
    while let Some(line) = words.line()? {
        let at = |mistake: String| Error::new(line.number, mistake);
        let [client, of, password, addresses @ ..] = &line.words[..] else {
            let words = plural(line.words.len() as u64, "word");
            return Err(at(format!(
                "expected client, server and password, found {words}; passwords with white space or # stand in quotes"
            )));
        };
        if of != b"*" && of != server {
            for_others += 1;
            continue;
        }
        let address = address(addresses, own).map_err(at)?;
        let subscriber = subscriber(client, password, address, line.number).map_err(at)?;
        let wildcards = usize::from(of == b"*");
        if found.get(&**client).is_none_or(|(fewest, _)| wildcards < *fewest) {
            found.insert(client[..].into(), (wildcards, subscriber));
        }
    }
    let anybody = found.remove(&b"*"[..]).map(|(_, subscriber)| Box::new(subscriber));
    let named = found.into_iter().map(|(client, (_, subscriber))| (client, subscriber)).collect();
    Ok(Secrets { named, anybody, for_others, ..Secrets::default() })
}

fn subscriber(client: &[u8], password: &[u8], address: Address, line: usize) -> Result<Subscriber, String> {
    if client.is_empty() {
        return Err(NO_USER.to_owned());
    }
    if password.is_empty() {
        return Err(no_password(client));
    }
    if password.starts_with(b"@/") {
        let expected = "the password is to be read from a file (@/…), which is not done here: expected the password itself";
        return Err(expected.to_owned());
    }
    Ok(Subscriber {
        password: Password::new(password),
        profile: Profile { address, ..Profile::default() },
        line,
    })
}

/// The first single address, `*` or `-` decides; all words are looked at, so that none is wrong unseen.
fn address(words: &[Vec<u8>], own: Option<Ipv4Addr>) -> Result<Address, String> {
    let mut found = None;
    for word in words.iter().take_while(|word| *word != b"--") {
        let address = match &word[..] {
            b"*" => Address::Pool,
            b"-" => Address::None,
            text => {
                let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse::<Ipv4Addr>().ok());
                let parsed = parsed.ok_or_else(|| {
                    format!(
                        "\"{}\" is no address: expected one IPv4 address, * for one of the pool, or - for none",
                        Quotable(text)
                    )
                })?;
                Address::Fixed(station(parsed, own)?)
            }
        };
        found.get_or_insert(address);
    }
    Ok(found.unwrap_or_default())
}

struct Line {
    number: usize,
    words: Vec<Vec<u8>>,
}

/// What parts the text into lines of words.
struct Words<'a> {
    rest: &'a [u8],
    line: usize,
}

impl Words<'_> {
    /// The next line with words on it; a line that a backslash continues is one with the next.
    fn line(&mut self) -> Result<Option<Line>, Error> {
        let mut line = Line { number: self.line, words: Vec::new() };
        loop {
            let is_over = self.skip();
            if is_over && !line.words.is_empty() {
                return Ok(Some(line));
            }
            match self.peek() {
                None => return Ok(None),
                Some(b'\n') => line.number = self.line + 1,
                Some(_) => {
                    if line.words.is_empty() {
                        line.number = self.line;
                    }
                    line.words.push(self.word()?);
                    continue;
                }
            }
            self.next();
        }
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.line += usize::from(byte == b'\n');
        Some(byte)
    }

    /// Passes a backslash with the end of the line behind it.
    fn continued(&mut self) -> bool {
        for end in [&b"\\\n"[..], b"\\\r\n"] {
            if let Some(rest) = self.rest.strip_prefix(end) {
                self.rest = rest;
                self.line += 1;
                return true;
            }
        }
        false
    }

    /// Passes white space and comments. Whether the line, or the text, ends here.
    fn skip(&mut self) -> bool {
        loop {
            match self.peek() {
                None | Some(b'\n') => return true,
                Some(b'#') => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.next();
                    }
                }
                Some(byte) if is_space(byte) => {
                    self.next();
                }
                Some(_) if self.continued() => {}
                Some(_) => return false,
            }
        }
    }

    fn word(&mut self) -> Result<Vec<u8>, Error> {
        let mut word = Vec::new();
        let mut quotation = None;
        while let Some(byte) = self.peek() {
            match (byte, quotation) {
                _ if self.continued() => continue,
                (b'\\', _) => {
                    self.next();
                    word.extend(self.escaped());
                    continue;
                }
                (b'\n', Some(quote)) => return Err(self.open(quote)),
                (_, Some(quote)) if byte == quote => quotation = None,
                (_, Some(_)) => word.push(byte),
                (b'"' | b'\'', None) => quotation = Some(byte),
                (b'#', None) => break,
                (_, None) if is_space(byte) || byte == b'\n' => break,
                (_, None) => word.push(byte),
            }
            self.next();
        }
        match quotation {
            None => Ok(word),
            Some(quote) => Err(self.open(quote)),
        }
    }

    fn open(&self, quote: u8) -> Error {
        let quote = char::from(quote);
        Error::new(self.line, format!("the quotation that begins with {quote} has no end on this line"))
    }

    /// What stands behind a backslash: a letter for a control character, up to three octal or two hexadecimal digits, or
    /// the character itself. Nothing at the end of the text.
    fn escaped(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        if (b'0'..=b'7').contains(&byte) {
            return Some(self.digits(3, 8));
        }
        self.next();
        Some(match byte {
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b's' => b' ',
            b't' => b'\t',
            b'x' => self.digits(2, 16),
            itself => itself,
        })
    }

    /// At most `most` digits; of a larger number the low eight bits.
    fn digits(&mut self, most: usize, radix: u32) -> u8 {
        let mut value = 0u32;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(radix)) else { break };
            value = value * radix + digit;
            self.next();
        }
        value.to_le_bytes()[0]
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}
