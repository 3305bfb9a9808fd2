//! The kernel's release, in numbers.

use crate::Case;

impl Case<'_> {
    /// The first two numbers of the kernel's release: `6.12.9-amd64` is 6 and 12.
    pub fn release(&self) -> Option<(u32, u32)> {
        self.stable_release().map(|(version, patchlevel, _)| (version, patchlevel))
    }

    /// All three: `6.1.90-1-amd64` is 6, 1 and 90; the third of `6.12` is 0.
    pub(crate) fn stable_release(&self) -> Option<(u32, u32, u32)> {
        release(&self.snapshot().kernel.as_ref()?.value)
    }
}

fn release(kernel: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = kernel.trim().split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some((next()?, next()?, next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn releases_have_three_numbers_or_two() {
        for (text, expected) in [
            ("6.1.90-1-amd64", (6, 1, 90)),
            ("3.10.0-1160.el7.x86_64", (3, 10, 0)),
            ("6.12.9", (6, 12, 9)),
            ("5.4.0", (5, 4, 0)),
            ("6.12", (6, 12, 0)),
            ("7.2-rc1", (7, 2, 0)),
        ] {
            assert_eq!(release(text), Some(expected), "{text}");
        }
        assert_eq!(["unknown", "generic"].map(release), [None, None]);
    }
}
