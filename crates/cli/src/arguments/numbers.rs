//! Numbers as they are typed.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub Vec<u16>);

/// `100k`, `1.5M`, `1488095`, `10G`: powers of 1000.
pub fn number(text: &str) -> Result<f64, String> {
    format::number_of(text)
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| format!("`{text}` is no number more than 0, such as 1500, 100k, 1.5M or 10G"))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    Max,
    PerSecond(f64),
}

/// `10k`, `1.5M`, `max`.
pub fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate::Max);
    }
    number(text).map(Rate::PerSecond).map_err(|error| format!("{error}, or max"))
}

/// Bits a second: `900M`, `1.5G`, `950000000`.
pub fn bit_rate(text: &str) -> Result<u64, String> {
    format::bit_rate_of(text)
        .ok_or_else(|| format!("`{text}` is no rate between 8k and 1000G bits a second (900M, 1.5G)"))
}

/// The same without a fraction.
pub fn count(text: &str) -> Result<u64, String> {
    let number = number(text)?;
    let is_whole = number.fract() == 0.0 && number < 1e18;
    is_whole.then_some(number as u64).ok_or_else(|| format!("`{text}` is no whole number"))
}

/// `0,2-3`, as the kernel lists CPUs.
pub fn cpus(text: &str) -> Result<Cpus, String> {
    let wrong = || format!("`{text}` is no list of CPUs such as 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let cpu = |text: &str| text.parse::<u16>().ok().filter(|cpu| *cpu < 8192).ok_or_else(wrong);
        let (first, last) = (cpu(first)?, cpu(last)?);
        if first > last {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    Ok(Cpus(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_letters() {
        let read = ["1488095", "100k", "1.5M", "10G", "0.5"].map(|text| number(text).expect("a number"));
        assert_eq!(read, [1_488_095.0, 1e5, 1.5e6, 1e10, 0.5]);
        for text in ["", "k", "0", "-1", "nan", "inf", "1T", "1kk"] {
            assert!(number(text).is_err(), "{text}");
        }
        assert_eq!((count("2k"), count("1.5").is_err()), (Ok(2000), true));
        assert_eq!(
            (rate("max"), rate("2k"), rate("x").is_err()),
            (Ok(Rate::Max), Ok(Rate::PerSecond(2e3)), true)
        );
    }

    #[test]
    fn cpus_are_read_as_the_kernel_lists_them() {
        assert_eq!(cpus("3,0-2"), Ok(Cpus(vec![3, 0, 1, 2])));
        for text in ["", "a", "1-", "3-1", "1,,2", "70000"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }
}
