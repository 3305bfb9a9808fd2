//! An error in one sentence.

use std::error::Error;

/// The error's sentence, and behind it what each cause adds that is not in it yet: some name their cause themselves.
///
/// ```
/// let error = std::io::Error::other("the disk is full");
/// assert_eq!(rxlane_format::with_causes(&error), "the disk is full");
/// ```
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut sentence = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let says = cause.to_string();
        if !sentence.contains(&says) {
            sentence.push_str(": ");
            sentence.push_str(&says);
        }
        next = cause.source();
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Step(&'static str, Option<Box<Step>>);

    impl fmt::Display for Step {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Step {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_ref().map(|cause| cause.as_ref() as _)
        }
    }

    #[test]
    fn each_cause_is_named_once() {
        let chain = |first| {
            let last = Step("no space", None);
            Step(first, Some(Box::new(Step("cannot write a", Some(Box::new(last))))))
        };
        assert_eq!(with_causes(&chain("no journal")), "no journal: cannot write a: no space");
        assert_eq!(
            with_causes(&chain("cannot write a: no space; free some")),
            "cannot write a: no space; free some"
        );
    }
}
