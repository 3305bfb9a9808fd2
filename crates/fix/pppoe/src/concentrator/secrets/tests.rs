use super::*;
use crate::tests::cases;
use proptest::prelude::*;

const OWN: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);

fn pppd(text: &str) -> Secrets {
    Secrets::parse(text.as_bytes(), b"ac-1", Some(OWN)).unwrap()
}

fn error(text: &str) -> String {
    Secrets::parse(text.as_bytes(), b"ac-1", Some(OWN)).unwrap_err().to_string()
}

fn password(secrets: &Secrets, user: &str) -> String {
    String::from_utf8_lossy(secrets.find(user.as_bytes()).unwrap().password.bytes()).into_owned()
}

#[test]
fn words_of_pppd() {
    let text = "# client server secret addresses\n\
        alice * plain *\n\
        \t\"bob@example.net\"\tac-1 'with space' 192.0.2.7 # his own\n\
        \"c\\\"d\" * \"#no comment\" -\n\
        eve * a\\ b\\#c\\x41\\102\\s\\t! 192.0.2.8 *\n\
        multi * \\\n   continued \\\r\n 192.0.2.9 -- require-mppe\n\
        half\"quo\"ted * pa\"ss word\"'x'\r\n\
        ends * here#comment 10.0.0.1";
    let secrets = pppd(text);
    assert_eq!(secrets.len(), 7);
    let fixed = |last| Address::Fixed([192, 0, 2, last].into());
    for (user, expected) in [
        ("alice", ("plain", Address::Pool, 2)),
        ("bob@example.net", ("with space", fixed(7), 3)),
        ("c\"d", ("#no comment", Address::None, 4)),
        ("eve", ("a b#cAB \t!", fixed(8), 5)),
        ("multi", ("continued", fixed(9), 6)),
        ("halfquoted", ("pass wordx", Address::Pool, 9)),
        ("ends", ("here", Address::Pool, 10)),
    ] {
        let Subscriber { profile, line, .. } = secrets.find(user.as_bytes()).unwrap();
        assert_eq!((&*password(&secrets, user), profile.address, *line), expected, "{user}");
    }
    assert_eq!(secrets.find(b"nobody"), None);
}

#[test]
fn the_line_with_the_fewest_wildcards_holds_and_of_those_the_first() {
    let secrets = pppd(
        "* * everybody\n\
         alice * any-server\n\
         alice ac-1 here\n\
         alice ac-1 here-too\n\
         bob ac-2 elsewhere\n\
         carol * first\n\
         carol * second\n\
         * ac-1 everybody-here\n",
    );
    assert_eq!(password(&secrets, "alice"), "here");
    assert_eq!(password(&secrets, "carol"), "first");
    // Bob's line is for another concentrator.
    assert_eq!(password(&secrets, "bob"), "everybody-here");
    assert_eq!(secrets.len(), 2);
}

#[test]
fn errors_of_pppds_form_name_line_and_way_out() {
    let mistakes = r#"
        alice secret
            expected client, server and password, found 2 words; passwords with white space or # stand in quotes
        a * "b
            the quotation that begins with " has no end on this line
        a * 'b
            the quotation that begins with ' has no end on this line
        a * ""
            the password of "a" is empty: expected at least one character
        a * @/etc/secret
            the password is to be read from a file (@/…), which is not done here: expected the password itself
        a * b 10.0.0.0/8
            "10.0.0.0/8" is no address: expected one IPv4 address, * for one of the pool, or - for none
        a * b 224.0.0.1
            224.0.0.1 cannot be the address of a host
        a * b 100.64.0.1
            100.64.0.1 is the concentrator's own address (--local): expected another one
        "" * b
            the user is empty: expected a name, or in the form of pppd * for everybody
    "#;
    for [line, expected] in cases(mistakes) {
        assert_eq!(error(line), format!("line 1: {expected}"));
        assert_eq!(error(&format!("# c\n\n{line}\n")), format!("line 3: {expected}"));
    }
}

#[test]
fn tables_of_subscribers() {
    let text = r#"
# who may connect
[[subscriber]]
user = "alice"
password = "correct horse"

[[subscriber]]
user = "bob@example.net"
password = 'battery "staple'
address = "192.0.2.7"
routes = ["198.51.100.16/28", "2001:db8:b0b::/48"]
prefix = "2001:db8:1:7::/64"
sessions = 1

[[subscriber]]
user = "six"
password = "p"
address = "none"
sessions = 0x10
"#;
    let secrets = pppd(text);
    assert_eq!(secrets.len(), 3);
    let alice = secrets.find(b"alice").unwrap();
    assert_eq!((alice.profile.address, alice.profile.sessions, alice.line), (Address::Pool, None, 3));
    let bob = secrets.find(b"bob@example.net").unwrap();
    assert_eq!(bob.password.bytes(), b"battery \"staple");
    assert_eq!(bob.profile.address, Address::Fixed([192, 0, 2, 7].into()));
    assert_eq!(
        *bob.profile.routes,
        ["198.51.100.16/28", "2001:db8:b0b::/48"].map(|route| route.parse().unwrap())
    );
    assert_eq!(bob.profile.prefixes.link.unwrap().to_string(), "2001:db8:1:7::/64");
    let six = secrets.find(b"six").unwrap();
    assert_eq!((six.profile.address, six.profile.sessions), (Address::None, Some(16)));
    assert_eq!(secrets.fixed().collect::<Vec<_>>(), [Ipv4Addr::new(192, 0, 2, 7)]);
}

#[test]
fn errors_of_the_tables_name_line_and_way_out() {
    let with = |line: &str| format!("[[subscriber]]\nuser = \"a\"\npassword = \"b\"\n{line}\n");
    let mistakes = r#"
        adress = "192.0.2.1"
            unknown key "adress": expected user, password, address, pool, routes, prefix, delegated, download, upload or sessions
        address = "192.0.2"
            address: expected an IPv4 address in quotes, "pool" or "none"
        address = 4
            address: expected an IPv4 address in quotes, "pool" or "none"
        address = "0.0.0.0"
            0.0.0.0 cannot be the address of a host
        address = "240.0.0.1"
            240.0.0.1 cannot be the address of a host
        address = "100.64.0.1"
            100.64.0.1 is the concentrator's own address (--local): expected another one
        prefix = "2001:db8::/56"
            prefix: expected an IPv6 network of 64 bits such as "2001:db8:1:7::/64"
        prefix = "fe80::/64"
            fe80::/64 cannot be a subscriber's: it has addresses of fe80::/10 (link-local)
        sessions = 0
            sessions: expected a number from 1
        sessions = "b"
            sessions: expected a number from 1
        routes = ["198.51.100.17/28"]
            routes: expected networks, and of "198.51.100.17/28" bits behind the prefix are set: expected 198.51.100.16/28
        routes = ["100.64.0.1/32"]
            100.64.0.1 is the concentrator's own address (--local): expected another one
        routes = ["224.0.0.0/8"]
            224.0.0.0/8 cannot be a subscriber's: it has addresses of 224.0.0.0/4 (multicast)
    "#;
    let of = "line 4 (user \"a\", [[subscriber]] in line 1)";
    for [line, expected] in cases(mistakes) {
        assert_eq!(error(&with(line)), format!("{of}: {expected}"));
    }
    for network in ["0.0.0.0/0", "::/0"] {
        let error = error(&with(&format!("routes = [\"{network}\"]")));
        let why = "is a default route, by which all that leaves this machine would go to one subscriber";
        assert_eq!(error, format!("{of}: {network} {why}: expected the networks behind it"));
    }
    let twice = with("") + &with("");
    let taken = with("routes = [\"10.0.0.1/32\"]").replace("\"a\"", "\"c\"");
    let taken = with("address = \"10.0.0.1\"") + &taken;
    for (text, expected) in [
        (
            &*with("address = \"10.0.0.1\"\nsessions = 2"),
            "1 (user \"a\"): sessions: expected 1, because address, routes and prefixes serve one session at a time",
        ),
        ("[[subscriber]]\nuser = \"a\"\n", "1 (user \"a\"): this subscriber has no password"),
        ("\n[[subscriber]]\npassword = \"a\"\n", "2: this subscriber has no user"),
        ("\n[[subscriber]]\nuser = 7\n", "3 ([[subscriber]] in line 2): user: expected a text in quotes"),
        (
            "[subscribers]\n",
            "1: unknown key \"subscribers\": expected tables [[subscriber]] and [[vlan]], and blocked before them",
        ),
        (
            "blocked = \"02:00:5e:00:00:01\"\n",
            "1: blocked: expected a list of MAC addresses such as [\"02:00:5e:00:00:01\"]",
        ),
        (
            "blocked = [\"02:00:5e:00:00\"]\n",
            "1: blocked: expected a list of MAC addresses such as [\"02:00:5e:00:00:01\"]",
        ),
        (
            "[[subscriber]]\nuser = \"a\"\nblocked = []\n",
            "3 (user \"a\", [[subscriber]] in line 1): blocked belongs before the first [[subscriber]] or [[vlan]]",
        ),
        ("[vlan]\nvlans = \"7\"\n", "1: vlan: expected tables, each under a line [[vlan]]"),
        ("[[vlan]]\npool = \"a\"\n", "1: this [[vlan]] does not say which: vlans = \"100.*\""),
        (
            "[[vlan]]\nvlans = \"9-7\"\n",
            "2: vlans: expected a pattern as of --vlan, and in \"9-7\" VLAN 1 of it ends before it begins: expected the lower number first",
        ),
        (
            "[[vlan]]\nvlans = \"7\"\n[[vlan]]\nvlans = \"7-7\"\n",
            "3: the VLANs 7 have a [[vlan]] already, number 1",
        ),
        ("[[vlan]]\nvlans = \"7\"\nblocked = 1\n", "3: blocked: expected true or false"),
        (
            "[[vlan]]\nvlans = \"7\"\nuser = \"a\"\n",
            "3: unknown key \"user\": expected vlans, pool, download, upload, sessions or blocked",
        ),
        (&twice, "6 (user \"a\", [[subscriber]] in line 5): the user \"a\" has an entry in line 1 already"),
        (&taken, "5 (user \"c\"): 10.0.0.1/32 belongs to the subscriber of line 1 already"),
    ] {
        assert_eq!(error(text), format!("line {expected}"));
    }
}

#[test]
fn what_changed_is_counted_wherever_it_stands() {
    let before = pppd("alice * a *\nbob * b *\ncarol * c *\n* * guest\n");
    for (now, expected) in [
        ("# moved\nbob * b *\ncarol * c *\nalice * a *\n* * guest\n", "3 subscribers, nothing changed"),
        (
            "alice * x *\nbob * b 192.0.2.7\ndave * d *\n* * guest\n",
            "3 subscribers (1 new, 2 changed, 1 removed)",
        ),
        ("alice * a *\n", "1 subscriber (2 removed, everybody else (*) removed)"),
        ("alice * a *\nbob * b *\ncarol * c *\n* * other\n", "3 subscribers (everybody else (*) changed)"),
        ("", "0 subscribers (3 removed, everybody else (*) removed)"),
    ] {
        assert_eq!(pppd(now).difference(&before).to_string(), expected);
    }
}

/// Passwords stay out of everything that is printed, whatever is wrong with the line that has one.
#[test]
fn no_message_quotes_a_password() {
    let secret = "hunter2";
    for text in [
        "[[subscriber]]\nuser = \"a\"\npassword = hunter2\n",
        "[[subscriber]]\nuser = \"a\"\npassword = \"hunter2\n",
        "[[subscriber]]\nuser = \"a\"\npassword = [\"hunter2\"]\n",
        "[[subscriber]]\nuser = \"a\"\npassword = \"hunter2\" x\n",
        "[[subscriber]]\nuser = \"a\"\npassword = \"hunter2\"\npassword = \"hunter2\"\n",
        "[[subscriber]]\nuser = \"a\"\npassword \"hunter2\"\n",
        "[[subscriber]]\nuser = \"\"\npassword = \"hunter2\"\n",
        "a * \"hunter2\n",
        "a * hunter2 10.0.0.0/8\n",
        "a hunter2\n",
        "\"\" * hunter2\n",
        "a * @/hunter2\n",
    ] {
        let error = Secrets::parse(text.as_bytes(), b"ac-1", None).unwrap_err();
        assert!(!error.to_string().contains(secret), "{error}");
        assert!(!format!("{error:?}").contains(secret), "{error:?}");
        assert!((1..=5).contains(&error.line), "{error}");
    }
    let secrets = pppd("a * hunter2 *\n");
    assert!(!format!("{secrets:?}").contains(secret));
}

#[test]
fn the_form_follows_from_the_content() {
    for text in ["[[subscriber]]", "\n# c\n [[subscriber]]", "user = \"a\"", "subscriber=[", "x =", "[a"] {
        assert!(is_table_form(text.as_bytes()), "{text}");
    }
    for text in ["", "# only\n", "alice * pass *", "\"a\" * b", "user=x * b", "a=b@c * x", "= = ="] {
        assert!(!is_table_form(text.as_bytes()), "{text}");
    }
    assert!(pppd("").is_empty() && pppd("# nobody\n").is_empty());
}

proptest! {
    /// Whatever stands in a file, there is a table or a line to look at.
    #[test]
    fn any_bytes_give_a_table_or_a_line(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = Secrets::parse(&bytes, b"s", None) {
            prop_assert!(error.line >= 1 && error.line <= bytes.iter().filter(|byte| **byte == b'\n').count() + 1);
        }
    }

    /// A quoted word comes back as it was, whatever is in it.
    #[test]
    fn what_is_quoted_comes_back(bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
        prop_assume!(!bytes.starts_with(b"@/"));
        let mut text = b"u * \"".to_vec();
        for byte in &bytes {
            text.extend(format!("\\x{byte:02x}").bytes());
        }
        text.extend(b"\"\n");
        let secrets = Secrets::parse(&text, b"s", None).unwrap();
        prop_assert_eq!(secrets.find(b"u").unwrap().password.bytes(), &bytes[..]);
    }
}
