//! The format of a tracepoint (`Documentation/trace/events.rst`): where its fields are, and names of numbers.
//!
//! ```text
//!         field:enum skb_drop_reason reason;    offset:36;    size:4;    signed:0;
//!
//! print fmt: "… reason: %s", …, __print_symbolic(REC->reason, { 2, "NOT_SPECIFIED" }, { 3, "NO_SOCKET" })
//! ```

use std::collections::BTreeMap;

/// Where a field is in the raw bytes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// Its value as a number of 1, 2, 4 or 8 bytes in the machine's order.
    pub(super) fn read(self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..)?;
        match self.size {
            1 => bytes.first().map(|byte| u64::from(*byte)),
            2 => bytes.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes).into()),
            4 => bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes).into()),
            8 => bytes.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)),
            _ => None,
        }
    }
}

/// The field of that name.
pub(super) fn field(format: &str, name: &str) -> Option<Field> {
    format.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';');
        let declared = parts.next()?.split_whitespace().last()?;
        let number = |key: &str| {
            let part = parts.clone().find_map(|part| part.trim().strip_prefix(key))?;
            part.trim().parse().ok()
        };
        (declared == name).then(|| Some(Field { offset: number("offset:")?, size: number("size:")? }))?
    })
}

/// The names of a field's values, which differ from kernel to kernel. Empty where the kernel prints the number.
pub(super) fn symbols(format: &str, name: &str) -> BTreeMap<u64, String> {
    let call = format!("__print_symbolic(REC->{name},");
    let Some((_, list)) = format.split_once(&call) else { return BTreeMap::new() };
    let mut symbols = BTreeMap::new();
    for pair in list.split('{').skip(1) {
        let Some((pair, behind)) = pair.split_once('}') else { break };
        if let Some((number, text)) = pair.split_once(',')
            && let Some(number) = value(number.trim())
        {
            symbols.insert(number, text.trim().trim_matches('"').to_owned());
        }
        // The next pair, or the end of the list.
        if behind.trim_start().starts_with(')') {
            break;
        }
    }
    symbols
}

fn value(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NEW: &str = "name: kfree_skb\nID: 2310\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:void * location;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned short protocol;\toffset:32;\tsize:2;\tsigned:0;\n\
        \tfield:enum skb_drop_reason reason;\toffset:36;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"skbaddr=%p reason: %s\", REC->skbaddr, __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" }, \
        { 0x3, \"NO_SOCKET\" }, { SKB_DROP_REASON_MAX, \"MAX\" }), __print_symbolic(REC->other, { 9, \"NINE\" })\n";
    /// Linux 5.10.
    const OLD: &str = "name: kfree_skb\nID: 1300\nformat:\n\
        \tfield:void * location;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned short protocol;\toffset:24;\tsize:2;\tsigned:0;\n\n\
        print fmt: \"skbaddr=%p protocol=%u location=%p\", REC->skbaddr, REC->protocol, REC->location\n";
    /// 32 bits, big numbers in another place.
    const NARROW: &str = "field:void * location; offset:12; size:4; signed:0;\nfield:unsigned short protocol; offset:20; size:2; \
        signed:0;\nfield:enum skb_drop_reason reason; offset:24; size:4; signed:0;\n\
        print fmt: \"%s\", __print_symbolic(REC->reason, {1,\"NOT_SPECIFIED\"},{2,\"NO_SOCKET\"})";

    #[test]
    fn fields_are_where_the_format_says() {
        assert_eq!(field(NEW, "reason"), Some(Field { offset: 36, size: 4 }));
        assert_eq!(field(OLD, "location"), Some(Field { offset: 16, size: 8 }));
        assert_eq!(field(NARROW, "location"), Some(Field { offset: 12, size: 4 }));
        assert_eq!((field(OLD, "reason"), field("", "reason"), field("field:x", "x")), (None, None, None));
    }

    #[test]
    fn values_are_read_in_their_size_and_within_the_bytes() {
        let raw = [1_u8, 2, 3, 4, 5, 6, 7, 8];
        let read = |offset, size| Field { offset, size }.read(&raw);
        assert_eq!(read(0, 2), Some(u16::from_ne_bytes([1, 2]).into()));
        assert_eq!(read(4, 4), Some(u32::from_ne_bytes([5, 6, 7, 8]).into()));
        assert_eq!((read(7, 1), read(1, 8), read(9, 1), read(0, 3)), (Some(8), None, None, None));
    }

    proptest! {
        #[test]
        fn no_format_panics(cut in 0..700_usize, junk in "[ -~\\n\\t]{0,40}", raw in proptest::collection::vec(any::<u8>(), 0..48)) {
            let mut text: String = NEW.chars().take(cut).collect();
            text.push_str(&junk);
            symbols(&text, "reason");
            for name in ["reason", "location", "protocol"] {
                field(&text, name).and_then(|field| field.read(&raw));
            }
        }
    }

    #[test]
    fn names_are_those_of_the_running_kernel() {
        let names = |format: &str| symbols(format, "reason").into_iter().collect::<Vec<_>>();
        let named = |number, name: &str| (number, name.to_owned());
        assert_eq!(names(NEW), [named(2, "NOT_SPECIFIED"), named(3, "NO_SOCKET")]);
        assert_eq!(names(NARROW), [named(1, "NOT_SPECIFIED"), named(2, "NO_SOCKET")]);
        assert!(names(OLD).is_empty() && names("__print_symbolic(REC->reason, { 1").is_empty());
    }
}
