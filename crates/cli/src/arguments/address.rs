//! IP addresses.

use std::str::FromStr;

/// Reads an address; `examples` are what would do.
pub fn address<A: FromStr>(
    examples: &'static str,
) -> impl Fn(&str) -> Result<A, String> + Clone + Send + Sync {
    move |text| text.parse().map_err(|_| format!("`{text}` is no address such as {examples}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_error_names_what_was_typed_and_what_would_do() {
        let read = address::<Ipv4Addr>("10.0.0.1");
        assert_eq!(read("10.0.0.2"), Ok(Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!(read("1.2"), Err("`1.2` is no address such as 10.0.0.1".to_owned()));
    }
}
