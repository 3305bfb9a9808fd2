//! Functions of the kernel by address (`/proc/kallsyms`).

use crate::trace::Obstacle;
use std::ops::Range;
use std::path::Path;

/// Functions in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    text: String,
    /// Address, name, module.
    functions: Vec<(u64, Range<u32>, Range<u32>)>,
}

/// A function, by its place in [`Symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Function(u32);

impl Symbols {
    pub(super) fn read() -> Result<Symbols, Obstacle> {
        let text = match std::fs::read_to_string("/proc/kallsyms") {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(Obstacle::NotInKernel),
            Err(error) => return Err(Obstacle::Failed { error: error.to_string() }),
        };
        let symbols = Symbols::parse(text);
        if symbols.functions.is_empty() {
            let restrict = super::super::files::word(Path::new("/proc/sys/kernel/kptr_restrict"));
            return Err(Obstacle::Hidden { restrict: restrict.and_then(|word| word.parse().ok()) });
        }
        Ok(symbols)
    }

    /// Lines of address, type, name and `[module]`. Hidden addresses are zeros.
    pub(super) fn parse(text: String) -> Symbols {
        let mut functions = Vec::new();
        let place = |word: &str| {
            let start = (word.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
            let start = start.and_then(|start| u32::try_from(start).ok()).unwrap_or(u32::MAX);
            start..start.saturating_add(word.len() as u32)
        };
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Some(address) = u64::from_str_radix(address, 16).ok().filter(|address| *address > 0) else {
                continue;
            };
            if !matches!(kind, "t" | "T" | "w" | "W") {
                continue;
            }
            let module = words.next().map_or("", |module| module.trim_matches(['[', ']']));
            functions.push((address, place(name), if module.is_empty() { 0..0 } else { place(module) }));
        }
        functions.sort_by_key(|(address, ..)| *address);
        Symbols { text, functions }
    }

    /// The function that holds an address.
    pub(super) fn at(&self, address: u64) -> Option<Function> {
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        behind.checked_sub(1).and_then(|place| u32::try_from(place).ok()).map(Function)
    }

    /// Its name, without what the compiler appends to copies of it (`.isra.0`).
    pub(super) fn name(&self, function: Function) -> &str {
        let name = self.functions.get(function.0 as usize).map_or("", |(_, name, _)| self.word(name));
        match name.find('.') {
            Some(end) if end > 0 => name.get(..end).unwrap_or(name),
            _ => name,
        }
    }

    pub(super) fn module(&self, function: Function) -> Option<&str> {
        let module = self.functions.get(function.0 as usize).map_or("", |(.., module)| self.word(module));
        (!module.is_empty()).then_some(module)
    }

    fn word(&self, range: &Range<u32>) -> &str {
        self.text.get(range.start as usize..range.end as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_belong_to_the_function_before_them() {
        let text = "ffffffff81000000 T _stext\nffffffff81000100 t igb_poll\t[igb]\nffffffff81000080 T ip_rcv.isra.0\n\
                    ffffffff81000090 D some_data\nx\n\n";
        let symbols = Symbols::parse(text.to_owned());
        let named = |address: u64| {
            let function = symbols.at(address)?;
            Some((symbols.name(function).to_owned(), symbols.module(function).map(str::to_owned)))
        };
        assert_eq!(named(0xffff_ffff_8100_0000), Some(("_stext".to_owned(), None)));
        assert_eq!(named(0xffff_ffff_8100_0099), Some(("ip_rcv".to_owned(), None)));
        assert_eq!(named(0xffff_ffff_8100_0200), Some(("igb_poll".to_owned(), Some("igb".to_owned()))));
        assert_eq!(named(0xffff_ffff_8000_0000), None);
    }

    proptest! {
        #[test]
        fn no_list_panics(text in "([0-9a-f]{0,17}[ \\t][tTwd]?[ \\t][a-zé.]{0,9}([ \\t]\\[[a-z]{0,5}\\]?)?\\n?){0,9}", address: u64) {
            let symbols = Symbols::parse(text);
            if let Some(function) = symbols.at(address) {
                let _ = (symbols.name(function).len(), symbols.module(function));
            }
        }
    }

    #[test]
    fn hidden_addresses_are_no_functions() {
        let hidden = Symbols::parse("0000000000000000 T _stext\n0000000000000000 T ip_rcv\n".to_owned());
        assert_eq!(hidden.at(u64::MAX), None);
    }
}
