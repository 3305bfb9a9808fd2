//! Lists and maps of a result that is read: no longer than those of a real one.
//!
//! An entry of few bytes in a file takes a hundred times as many in memory, so that a list is given up when it is too long, and not
//! counted once it is there.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

pub trait Bounded {
    /// Its name in a sentence, in the plural.
    const WHAT: &'static str;
    const MOST: usize;
}

pub fn list<'de, T: Deserialize<'de> + Bounded, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(List(PhantomData))
}

/// A map of something by name; a name that stands there twice is an error.
pub fn map<'de, T: Deserialize<'de> + Bounded, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    from.deserialize_map(Map(PhantomData))
}

fn too_many<T: Bounded, E: Error>() -> E {
    E::custom(format!("more than {} {}, which no scenario has,", T::MOST, T::WHAT))
}

struct List<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Bounded> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", T::WHAT)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if all.len() == T::MOST {
                return Err(too_many::<T, _>());
            }
            all.push(entry);
        }
        Ok(all)
    }
}

struct Map<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Bounded> Visitor<'de> for Map<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map of {}", T::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((name, entry)) = entries.next_entry::<String, T>()? {
            if all.len() == T::MOST {
                return Err(too_many::<T, _>());
            }
            if all.contains_key(&name) {
                return Err(A::Error::custom(format!("`{name}` stands there twice")));
            }
            all.insert(name, entry);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Deserializer as Json;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Few(u8);

    impl Bounded for Few {
        const WHAT: &'static str = "figures";
        const MOST: usize = 2;
    }

    #[test]
    fn what_is_too_long_is_not_read_to_its_end() {
        // What comes behind the third entry is no JSON, and nobody gets there.
        let list = |text: &str| list::<Few, _>(&mut Json::from_str(text)).map_err(|why| why.to_string());
        assert_eq!(list("[1, 2]"), Ok(vec![Few(1), Few(2)]));
        assert!(list("[1, 2, 3, nothing").is_err_and(|why| why.contains("more than 2 figures")));
        let map = |text: &str| map::<Few, _>(&mut Json::from_str(text)).map_err(|why| why.to_string());
        assert_eq!(map(r#"{"a": 1, "b": 2}"#).map(|map| map.len()), Ok(2));
        assert!(map(r#"{"a": 1, "b": 2, "c": 3, nothing"#).is_err_and(|why| why.contains("more than 2")));
        assert!(map(r#"{"a": 1, "a": 2}"#).is_err_and(|why| why.contains("`a` stands there twice")));
    }
}
