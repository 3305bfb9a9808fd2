//! The schema of JSON, and nothing else of it, however much there is.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

#[derive(Debug, PartialEq, Eq)]
pub enum Json {
    /// A text.
    Text(String),
    /// A map, and the text that it has for `schema`.
    Map {
        /// The text; `None`: there is none, or something else.
        schema: Option<String>,
    },
    /// Anything else.
    Other,
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
        from.deserialize_any(SchemaVisitor)
    }
}

struct SchemaVisitor;

impl<'de> Visitor<'de> for SchemaVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Json::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut schema = None;
        while let Some(name) = entries.next_key::<String>()? {
            if name != "schema" {
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            schema = match entries.next_value()? {
                Json::Text(text) => Some(text),
                _ => None,
            };
        }
        Ok(Json::Map { schema })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_schema_of_a_map_is_kept() {
        let of = |text: &str| serde_json::from_str::<Json>(text).map_err(|why| why.to_string());
        let map = |schema: Option<&str>| Ok(Json::Map { schema: schema.map(str::to_owned) });
        assert_eq!(of(r#"{"a": [{"schema": "x"}], "schema": "y", "b": 1e999}"#), map(Some("y")));
        for text in [r#"{"schema": 7}"#, r#"{"schema": {"schema": "x"}}"#, r#"{"schema": null}"#, "{}"] {
            assert_eq!(of(text), map(None), "{text}");
        }
        for text in ["null", "true", "-1", "1", "1.5", r#"["schema", {}]"#] {
            assert_eq!(of(text), Ok(Json::Other), "{text}");
        }
        assert!(of(r#"{"a": NaN}"#).is_err() && of("{} {}").is_err() && of("").is_err());
    }
}
