//! What a concentrator's refusal is about, as far as its words say, and what to do about it.
//!
//! PAP and CHAP have one answer for a wrong password, a full pool and an unpaid bill (RFC 1334 section 2.2.2, RFC 1994 section
//! 4.2), and the words next to it are anybody's. MS-CHAPv2 has codes (RFC 2759 section 6), of which most concentrators send 691
//! for everything.

use crate::ms_chap::Failure;

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Name and password; also where nothing is said.
    Credentials,
    /// The account, whose password may be right.
    Account,
    Sessions,
    Concentrator,
    /// Words that nobody here knows.
    Unknown,
}

/// Words in lower case, and what they are about; the first that occurs says it. What is sure comes before what many refusals
/// have in common.
const WORDS: [(Subject, &str); 5] = [
    (Subject::Account, "expired|disabled|suspend|blocked|locked|barred|payment|unpaid|quota|restricted"),
    (
        Subject::Credentials,
        "password|passwd|incorrect|credential|username|user name|unknown user|user unknown|no such user|user not found|invalid user|\
         unknown account|invalid account",
    ),
    (
        Subject::Concentrator,
        "address| pool|no ip|try again|again later|connect again|busy|temporar|unavailable|not available|timeout|timed out|resource",
    ),
    (Subject::Sessions, "session|already|logged in|too many|simultaneous|multiple|limit"),
    (Subject::Credentials, "denied|authenticat|authoriz|authoris|reject|login|auth fail"),
];

impl Subject {
    /// Of a refusal with a code and words, either of which may be missing.
    pub(super) fn of(failure: Option<Failure>, message: &[u8]) -> Subject {
        if matches!(failure, Some(Failure { code: 646..=649 })) {
            return Subject::Account;
        }
        let message = String::from_utf8_lossy(message).to_lowercase();
        if message.trim().is_empty() {
            return Subject::Credentials;
        }
        let found = WORDS.iter().find(|(_, words)| words.split('|').any(|word| message.contains(word)));
        found.map_or(Subject::Unknown, |(subject, _)| *subject)
    }

    /// What to do about it.
    pub(super) const fn advice(self) -> &'static str {
        match self {
            Subject::Credentials => "check user name and password",
            Subject::Account => "ask the operator about the account",
            Subject::Sessions => {
                "end the user's other session, or wait until the concentrator has noticed that it has ended"
            }
            Subject::Concentrator => {
                "the fault is not in name and password: try again later; if it goes on, ask the operator and quote this text"
            }
            Subject::Unknown => "if these words do not say why, check user name and password",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_it_is_about() {
        for (subject, texts) in [
            (
                Subject::Credentials,
                "| |Login incorrect|Bad username or password|Access denied|unknown user or wrong password|Authentication failure|\
                 CHAP authentication failed|Login incorrect. Try again.|AAA reject",
            ),
            (Subject::Account, "Your account has expired|Password expired|Account suspended: unpaid bill"),
            (
                Subject::Sessions,
                "You are already logged in - access denied|Session limit exceeded|Multiple logins not allowed|\
                 this user has as many sessions as allowed already",
            ),
            (
                Subject::Concentrator,
                "all addresses are in use; try again later|No IP address available|\
                 no address is set up for this user; ask the operator|the user changed in mid-session; connect again|\
                 the address of this user is in use by another session|RADIUS timeout",
            ),
            (Subject::Unknown, "who are you|E=|\u{8a8d}\u{8a3c}\u{5931}\u{6557}"),
        ] {
            for said in texts.split('|') {
                assert_eq!(Subject::of(None, said.as_bytes()), subject, "{said}");
            }
        }
        assert_eq!(Subject::of(None, b"\xff\xfe"), Subject::Unknown);
    }

    #[test]
    fn codes_count_before_words_but_for_that_of_everything() {
        let of = |code, said: &str| Subject::of(Some(Failure { code }), said.as_bytes());
        assert_eq!(of(647, "Access denied"), Subject::Account);
        assert_eq!(of(691, "all addresses are in use"), Subject::Concentrator);
        assert_eq!(of(691, ""), Subject::Credentials);
    }
}
