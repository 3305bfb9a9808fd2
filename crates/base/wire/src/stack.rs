//! The encapsulation stack of a frame as a short list of words.

use core::fmt;

named! {
    /// One word of a stack. The spelling is part of the scripted interface and never changes.
    Word {
        Eth = "eth",
        Vlan = "vlan",
        PppoeDiscovery = "pppoe-discovery",
        Pppoe = "pppoe",
        Mpls = "mpls",
        Llc = "llc",
        Arp = "arp",
        Ipv4 = "ipv4",
        Ipv6 = "ipv6",
        Tcp = "tcp",
        Udp = "udp",
        Sctp = "sctp",
        Icmp = "icmp",
        Icmpv6 = "icmpv6",
        Igmp = "igmp",
        Gre = "gre",
        Esp = "esp",
        Ah = "ah",
        Lcp = "lcp",
        Pap = "pap",
        Chap = "chap",
        Ipcp = "ipcp",
        Ipv6cp = "ipv6cp",
        Ccp = "ccp",
        Other = "other",
    }
}

impl Word {
    /// 0 is no word.
    #[inline(always)]
    const fn number(self) -> u64 {
        self as u64 + 1
    }

    fn from_number(number: u64) -> Option<Word> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        Word::ALL.get(index).copied()
    }
}

const BITS: u32 = 5;
const WORDS: u32 = 12;
const MASK: u64 = (1 << BITS) - 1;

/// The encapsulation stack of a frame, outermost header first: `eth/vlan/vlan/pppoe/ipv4/tcp`.
///
/// Twelve words, five bits each, then the number of VLAN tags (tags follow one another, so one word and a
/// count hold any depth). Words beyond the twelfth, which only nested IP headers can reach, are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Stack {
    words: u64,
    length: u16,
    tags: u16,
}

impl Stack {
    /// The stack of nothing.
    pub const EMPTY: Stack = Stack { words: 0, length: 0, tags: 0 };

    /// Appends a word.
    #[inline(always)]
    pub const fn push(&mut self, word: Word) {
        if (self.length as u32) < WORDS {
            self.words |= word.number() << (self.length as u32 * BITS);
            self.length += 1;
        }
    }

    /// Appends `tags` VLAN words. Only the first call counts.
    #[inline(always)]
    pub const fn push_tags(&mut self, tags: u16) {
        if tags > 0 && self.tags == 0 {
            self.tags = tags;
            self.push(Word::Vlan);
        }
    }

    /// Some bits of the words and the number of tags: a hash that is cheap rather than good.
    #[inline(always)]
    pub const fn mix(&self) -> u32 {
        (self.words.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u32 ^ self.tags as u32
    }

    /// Number of VLAN tags.
    #[inline(always)]
    pub const fn tags(&self) -> u16 {
        self.tags
    }

    /// Whether `word` is the first.
    #[inline(always)]
    pub const fn starts_with(&self, word: Word) -> bool {
        self.words & MASK == word.number()
    }

    /// Whether `word` occurs.
    #[inline(always)]
    pub fn contains(&self, word: Word) -> bool {
        self.distinct_words().any(|w| w == word)
    }

    /// The last word: where dissection stopped.
    pub fn last(&self) -> Option<Word> {
        let at = u32::from(self.length).checked_sub(1)?;
        Word::from_number(self.words >> (at * BITS) & MASK)
    }

    /// The words, a VLAN word only once however many tags there are.
    pub fn distinct_words(&self) -> impl Iterator<Item = Word> + use<> {
        let words = self.words;
        (0..u32::from(self.length)).filter_map(move |i| Word::from_number(words >> (i * BITS) & MASK))
    }

    /// The words, a VLAN word for every tag.
    pub fn words(&self) -> impl Iterator<Item = Word> + use<> {
        let tags = usize::from(self.tags);
        self.distinct_words()
            .flat_map(move |word| core::iter::repeat_n(word, if word == Word::Vlan { tags } else { 1 }))
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for word in self.words() {
            if !first {
                f.write_str("/")?;
            }
            first = false;
            f.write_str(word.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stack({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_in_order_at_any_tag_depth() {
        let mut stack = Stack::EMPTY;
        stack.push(Word::Eth);
        stack.push_tags(3);
        stack.push(Word::Pppoe);
        stack.push(Word::Ipv6);
        stack.push(Word::Udp);
        assert_eq!(stack.to_string(), "eth/vlan/vlan/vlan/pppoe/ipv6/udp");
        assert_eq!(stack.last(), Some(Word::Udp));
        assert!(stack.contains(Word::Pppoe) && !stack.contains(Word::Ipv4));
    }

    #[test]
    fn numbers_and_words_agree() {
        for (i, word) in Word::ALL.iter().copied().enumerate() {
            assert_eq!(word.number(), i as u64 + 1);
            assert_eq!(Word::from_number(word.number()), Some(word));
        }
        assert_eq!(Word::from_number(0), None);
        assert_eq!(Word::from_number(Word::ALL.len() as u64 + 1), None);
        assert!(Word::ALL.len() < 1 << BITS);
    }

    #[test]
    fn a_thirteenth_word_is_dropped() {
        let mut stack = Stack::EMPTY;
        for _ in 0..20 {
            stack.push(Word::Ipv4);
        }
        assert_eq!(stack.words().count(), 12);
    }
}
