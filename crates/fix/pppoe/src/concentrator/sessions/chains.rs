//! Lists of slots by a key: all sessions of a user, of a station.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    behind: u32,
}

/// For each key the slots that were put under it, the latest first. Putting, taking and counting take constant time however
/// long a list is; a key without slots takes no memory. A slot stands under one key at most.
#[derive(Debug)]
pub(in crate::concentrator) struct Chains<K> {
    chains: HashMap<K, Chain>,
    links: Vec<Links>,
}

impl<K> Default for Chains<K> {
    fn default() -> Chains<K> {
        Chains { chains: HashMap::new(), links: Vec::new() }
    }
}

impl<K: Hash + Eq> Chains<K> {
    /// Puts a slot that stands nowhere under a key.
    pub(in crate::concentrator) fn put(&mut self, key: K, slot: u32) {
        let chain = self.chains.entry(key).or_insert(Chain { first: END, len: 0 });
        let behind = std::mem::replace(&mut chain.first, slot);
        chain.len += 1;
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, Links { before: END, behind: END });
        }
        if let Some(links) = self.links.get_mut(behind as usize) {
            links.before = slot;
        }
        if let Some(links) = self.links.get_mut(slot as usize) {
            *links = Links { before: END, behind };
        }
    }

    /// Takes a slot from under the key under which it was put.
    pub(in crate::concentrator) fn take<Q: Hash + Eq + ?Sized>(&mut self, key: &Q, slot: u32)
    where
        K: Borrow<Q>,
    {
        let end = Links { before: END, behind: END };
        let Some(links) = self.links.get_mut(slot as usize).map(|links| std::mem::replace(links, end)) else {
            return;
        };
        if let Some(before) = self.links.get_mut(links.before as usize) {
            before.behind = links.behind;
        }
        if let Some(behind) = self.links.get_mut(links.behind as usize) {
            behind.before = links.before;
        }
        let Some(chain) = self.chains.get_mut(key) else { return };
        if chain.first == slot {
            chain.first = links.behind;
        }
        chain.len -= 1;
        if chain.len == 0 {
            self.chains.remove(key);
        }
    }

    /// How many slots stand under a key.
    pub(in crate::concentrator) fn count<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> u32
    where
        K: Borrow<Q>,
    {
        self.chains.get(key).map_or(0, |chain| chain.len)
    }

    /// The slots under a key, the latest first.
    pub(in crate::concentrator) fn of<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> impl Iterator<Item = u32> + '_
    where
        K: Borrow<Q>,
    {
        let first = self.chains.get(key).map_or(END, |chain| chain.first);
        std::iter::successors((first != END).then_some(first), |slot| {
            self.links.get(*slot as usize).map(|links| links.behind).filter(|slot| *slot != END)
        })
    }

    /// How many keys have slots.
    #[cfg(test)]
    pub(in crate::concentrator) fn keys(&self) -> usize {
        self.chains.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn lists_and_counts_agree_with_a_map(steps in proptest::collection::vec((0u32..30, 0u8..5), 0..300)) {
            let mut chains = Chains::default();
            let mut expected: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
            let mut of = BTreeMap::new();
            for (slot, key) in steps {
                match of.remove(&slot) {
                    Some(key) => {
                        chains.take(&key, slot);
                        expected.get_mut(&key).unwrap().retain(|other| *other != slot);
                    }
                    None => {
                        chains.put(key, slot);
                        expected.entry(key).or_default().insert(0, slot);
                        of.insert(slot, key);
                    }
                }
                for key in 0..5u8 {
                    let slots = expected.get(&key).cloned().unwrap_or_default();
                    prop_assert_eq!(chains.count(&key) as usize, slots.len());
                    prop_assert_eq!(chains.of(&key).collect::<Vec<_>>(), slots);
                }
                prop_assert_eq!(chains.keys(), expected.values().filter(|slots| !slots.is_empty()).count());
            }
        }
    }
}
