//! `rxlane collect` as a user runs it.

use crate::run::{self, Ended};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Output;

type TestResult = Result<(), Box<dyn Error>>;

fn collect(arguments: &[&str]) -> Output {
    run::rxlane().arg("collect").args(arguments).output()
}

/// What a run prints that succeeds; in a pipe there is no progress.
fn printed(arguments: &[&str]) -> String {
    let output = collect(arguments);
    assert!(output.ends(0).stderr.is_empty(), "{output:?}");
    output.text()
}

/// What a run reports on standard error alone that ends with `code`.
fn message(arguments: &[&str], code: i32) -> String {
    let output = collect(arguments);
    assert!(output.ends(code).stdout.is_empty(), "{output:?}");
    output.text()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn the_script_is_printed_as_it_is() -> TestResult {
    assert_eq!(printed(&["--script"]), host::collector::SCRIPT);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("collector.sh");
    let said = message(&["--script", "-o", text(&file)], 0);
    assert_eq!(
        said,
        format!(
            "rxlane: wrote {0}, the collector ({1:.1} kB): `sh {0} >bundle.txt` on the machine\n",
            file.display(),
            host::collector::SCRIPT.len() as f64 / 1000.0
        )
    );
    assert_eq!(fs::read_to_string(&file)?, host::collector::SCRIPT);
    assert!(message(&["--script", "--seconds", "3"], 2).contains("cannot be used with"));
    assert!(message(&["--script", "eth0"], 2).contains("cannot be used with"));
    Ok(())
}

#[test]
fn a_file_that_is_there_is_kept_unless_force_is_given() -> TestResult {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bundle.txt");
    fs::write(&file, "mine")?;
    let said = message(&["--script", "-o", text(&file)], 2);
    assert_eq!(said, format!("rxlane: {} is there already; --force overwrites it\n", file.display()));
    assert_eq!(fs::read_to_string(&file)?, "mine");
    message(&["--script", "--force", "-o", text(&file)], 0);
    assert_eq!(fs::read_to_string(&file)?, host::collector::SCRIPT);
    let said = message(&["--script", "--force", "-o", text(folder.path())], 2);
    assert!(said.contains("is a directory; name a file in it"), "{said}");
    let said = message(&["--script", "-o", text(&folder.path().join("no/bundle.txt"))], 2);
    assert!(said.contains("cannot write"), "{said}");
    // Nothing of the attempts is left next to it.
    assert_eq!(fs::read_dir(folder.path())?.count(), 1);
    Ok(())
}

/// Bytes of a MAC address as they stand in sysfs, of each interface that has one.
fn addresses() -> Vec<String> {
    let folder = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    folder
        .filter_map(|entry| fs::read_to_string(entry.path().join("address")).ok())
        .map(|address| address.trim().to_owned())
        .filter(|address| address.len() == 17)
        .collect()
}

#[test]
fn this_machine_is_written_down_twice_without_addresses() -> TestResult {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bundle.txt");
    let said = message(&["--seconds", "0.3", "-o", text(&file)], 0);
    let judged = format!("`rxlane doctor --from {}` judges it\n", file.display());
    assert!(said.starts_with(&format!("rxlane: wrote {}, ", file.display())), "{said}");
    assert!(said.contains(" outputs (") && said.ends_with(&judged), "{said}");
    let bundle = fs::read_to_string(&file)?;
    assert!(bundle.starts_with("# rxlane bundle 1\n") && bundle.ends_with("\n# end\n"), "{bundle}");
    assert!(bundle.contains("\n# system: linux\n"), "{bundle}");
    assert!(bundle.contains("\n# Please read it before you post it"), "{bundle}");
    assert_eq!(bundle.lines().filter(|line| line.starts_with("# sample ")).count(), 2, "{bundle}");
    assert_eq!(bundle.lines().filter(|line| *line == "$ cat /proc/softirqs").count(), 2, "{bundle}");
    for address in addresses() {
        assert!(!bundle.contains(&address), "{address} is in:\n{bundle}");
    }
    Ok(())
}

#[test]
fn an_issue_has_questions_a_verdict_and_nothing_personal() {
    let issue = printed(&["--seconds", "0.3", "--issue"]);
    assert!(issue.starts_with("### What is slow, or wrong\n"), "{issue}");
    assert!(issue.contains("\n# rxlane bundle 1\n") && issue.ends_with("\n\n</details>\n"), "{issue}");
    for address in addresses() {
        assert!(!issue.contains(&address), "{address} is in:\n{issue}");
    }
}

#[test]
fn one_sample_of_one_interface() {
    let bundle = printed(&["--seconds", "0", "lo"]);
    assert_eq!(bundle.lines().filter(|line| line.starts_with("# sample ")).count(), 1, "{bundle}");
    let queried: Vec<&str> = bundle.lines().filter_map(|line| line.strip_prefix("$ ethtool -k ")).collect();
    assert_eq!(queried, ["lo"]);
    let unknown = message(&["no-such-if0", "--seconds", "60"], 2);
    assert!(unknown.contains("no-such-if0") && unknown.contains("lo"), "{unknown}");
    for wrong in ["-1", "x", "10000", "NaN"] {
        assert!(message(&[&format!("--seconds={wrong}")], 2).contains("--seconds"), "{wrong}");
    }
}
