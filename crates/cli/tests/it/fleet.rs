//! `rxlane fleet import`: every bundle is judged, and the tables are whole. What they say is read back by DuckDB in `.ci/fleet`.

use crate::run::{self, Ended, Report};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Output;

type TestResult = Result<(), Box<dyn Error>>;

const LIMITED: &str = include_str!("../../../../fuzz/seeds/doctor/limited_bundle.txt");
const HEALTHY: &str = include_str!("../../../../fuzz/seeds/doctor/healthy_bundle.txt");
const TABLES: [&str; 5] = ["cpus", "findings", "interfaces", "machines", "queues"];

fn import(folder: &Path, arguments: &[&str]) -> Output {
    run::rxlane().args(["fleet", "import"]).args(arguments).current_dir(folder).output()
}

#[test]
fn a_fifo_among_the_bundles_is_named_and_not_waited_for() -> TestResult {
    let folder = fleet()?;
    mkfifoat(CWD, folder.path().join("bundles/d"), Mode::RUSR | Mode::WUSR)?;
    let text = import(folder.path(), &["bundles", "--parquet", "tables"]).ends(1).text();
    assert!(text.contains("d: cannot read bundles/d: it is a FIFO: expected a regular file"), "{text}");
    Ok(())
}

/// A folder of bundles: two that can be read, one that cannot, and what is no bundle.
fn fleet() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let bundles = folder.path().join("bundles");
    fs::create_dir_all(bundles.join("older"))?;
    fs::write(bundles.join("a.txt"), LIMITED)?;
    fs::write(bundles.join("b"), HEALTHY)?;
    fs::write(bundles.join("c.txt"), "nothing that a tool prints\n")?;
    fs::write(bundles.join(".hidden"), LIMITED)?;
    Ok(folder)
}

#[test]
fn every_bundle_is_judged_and_what_cannot_be_read_is_named() -> TestResult {
    let folder = fleet()?;
    let output = import(folder.path(), &["bundles", "--parquet", "out/tables", "--json"]);
    let answer = output.ends(1).json();
    answer.has(json!({"schema": "rxlane.fleet/1", "bundles": 3, "limited": 1, "healthy": 1, "unknown": 0}));
    answer.has(json!({"unread": [{"what": "c"}], "findings": {"one-queue-hot": 1}}));
    answer.has(json!({"tables": {"out/tables/machines.parquet": 3}}));
    let doctor = run::rxlane()
        .args(["doctor", "--json", "--from", "bundles/a.txt"])
        .current_dir(folder.path())
        .output();
    let queues: usize = doctor.json()["interfaces"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| row["queues"].as_array().map_or(0, Vec::len))
        .sum();
    let healthy =
        run::rxlane().args(["doctor", "--json", "--from", "bundles/b"]).current_dir(folder.path()).output();
    let healthy: usize = healthy.json()["interfaces"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| row["queues"].as_array().map_or(0, Vec::len))
        .sum();
    answer.has(json!({"tables": {"out/tables/queues.parquet": queues + healthy}}));

    let text = import(folder.path(), &["bundles", "--parquet", "out/tables"]);
    let text = text.ends(1).text();
    assert!(
        text.starts_with("3 machines: 1 limited, 1 healthy, 0 unknown, 1 could not be read.\n"),
        "{text}"
    );
    assert!(text.contains("c: nothing in bundles/c.txt is the output of a tool"), "{text}");
    Ok(())
}

#[test]
fn tables_are_whole_and_the_same_each_time() -> TestResult {
    let folder = fleet()?;
    let read = || -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
        import(folder.path(), &["bundles", "--parquet", "tables"]).ends(1);
        let table = |name| Ok(fs::read(folder.path().join(format!("tables/{name}.parquet")))?);
        TABLES.iter().map(table).collect()
    };
    let tables = read()?;
    for table in &tables {
        let (rest, magic) = table.split_at(table.len() - 4);
        let (rest, length) = rest.split_at(rest.len() - 4);
        assert!(table.starts_with(b"PAR1") && magic == b"PAR1");
        // The metadata end in the byte that ends their structure.
        assert_eq!(rest.last(), Some(&0));
        assert!((u32::from_le_bytes(length.try_into()?) as usize) < rest.len());
    }
    assert_eq!(tables, read()?);
    assert_eq!(fs::read_dir(folder.path().join("tables"))?.count(), TABLES.len(), "nothing else is there");
    Ok(())
}

#[test]
fn what_is_no_folder_of_bundles_is_refused() -> TestResult {
    let folder = fleet()?;
    let said = |arguments: &[&str]| import(folder.path(), arguments).ends(2).text();
    assert!(said(&["bundles/older", "--parquet", "t"]).contains("bundles/older has no bundles"));
    assert!(said(&["nowhere", "--parquet", "t"]).contains("cannot read the folder of bundles nowhere"));
    assert!(
        said(&["bundles", "--parquet", "bundles"]).contains("is the folder of bundles; name another one")
    );
    assert!(
        said(&["bundles", "--parquet", "bundles/a.txt"])
            .contains("cannot make the folder of --parquet bundles/a.txt")
    );
    fs::copy(folder.path().join("bundles/a.txt"), folder.path().join("bundles/a"))?;
    assert!(said(&["bundles", "--parquet", "t"]).contains("are of the machine a: with .txt and without"));
    Ok(())
}
