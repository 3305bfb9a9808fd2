//! Writing and removing.

use crate::files::{origin, settings};
use rxlane_persist::{Checked, Content, Error, File, Lasting, Outcome, State, Store};
use service::StateDir;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        fs::create_dir(place.path("etc")).expect("a folder");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn store(&self) -> Store {
        Store::at(StateDir::at(self.path("etc/rxlane/persist")))
    }

    fn text(&self, name: &str, mode: u32, text: &str) -> File {
        let text = format!("# {}\n{text}\n", origin().line());
        File { path: self.path(name), mode, content: Content::Text(text) }
    }

    fn files(&self) -> Vec<File> {
        let link = File {
            path: self.path("etc/units/device.wants/one"),
            mode: 0o777,
            content: Content::Link("../one".into()),
        };
        vec![self.text("etc/rxlane/settings", 0o755, "one"), self.text("etc/units/one", 0o644, "two"), link]
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(self.path("etc")).expect("a folder").count() == 0
    }
}

fn states(checked: &[Checked]) -> Vec<State> {
    checked.iter().map(|one| one.state).collect()
}

/// Writes these files for these settings, whatever was written before.
fn write(store: &Store, owner: &str, settings: &[Lasting], files: &[File]) -> Result<Vec<Checked>, Error> {
    store.write(owner, "rxlane doctor --apply --persist", |_| (settings.to_vec(), files.to_vec()))
}

#[test]
fn what_is_written_is_removed_with_the_folders_that_it_took() {
    let place = Place::new();
    let store = place.store();
    assert!(store.remove("doctor").expect("nothing").is_empty());
    let lasting = settings(&["ethtool -G wan0 rx 4096", "echo 1 > /proc/irq/120/smp_affinity_list"]);
    let written = write(&store, "doctor", &lasting, &place.files()).expect("written");
    assert_eq!(states(&written), [State::New; 3]);
    let mode = |name: &str| fs::metadata(place.path(name)).expect("a file").mode() & 0o7777;
    assert_eq!((mode("etc/rxlane/settings"), mode("etc/units/one")), (0o755, 0o644));
    assert_eq!((mode("etc/rxlane"), mode("etc/rxlane/persist")), (0o755, 0o700));
    assert!(place.path("etc/units/device.wants/one").exists());
    assert_eq!(store.settings("doctor").expect("read"), lasting);
    assert_eq!(store.owners().expect("read"), ["doctor"]);

    let again = write(&store, "doctor", &lasting, &place.files()).expect("written");
    assert_eq!(states(&again), [State::Same; 3]);

    let removed = store.remove("doctor").expect("removed");
    assert!(removed.iter().all(|one| matches!(one.outcome, Outcome::Removed)), "{removed:?}");
    assert_eq!(removed.len(), 3);
    assert!(place.is_empty());
    assert!(store.remove("doctor").expect("nothing").is_empty());
}

#[test]
fn a_second_plan_replaces_the_first() {
    let place = Place::new();
    let store = place.store();
    write(&store, "doctor", &[], &place.files()).expect("written");
    let next = [place.text("etc/rxlane/settings", 0o755, "another"), place.text("etc/sysctl", 0o644, "x")];
    assert_eq!(states(&store.check("doctor", &next).expect("free")), [State::Former, State::New]);
    write(&store, "doctor", &[], &next).expect("written");
    assert!(!place.path("etc/units/one").exists() && !place.path("etc/units/device.wants/one").is_symlink());
    assert!(fs::read_to_string(place.path("etc/rxlane/settings")).expect("text").ends_with("another\n"));
    store.remove("doctor").expect("removed");
    assert!(place.is_empty());
}

#[test]
fn files_of_others_are_not_overwritten() {
    let place = Place::new();
    let (store, files) = (place.store(), place.files());
    fs::create_dir_all(place.path("etc/units/device.wants")).expect("a folder");
    let theirs = place.path("etc/units/one");
    fs::write(&theirs, "theirs").expect("written");
    for _ in 0..2 {
        let error = write(&store, "doctor", &[], &files).expect_err("foreign");
        assert!(matches!(&error, Error::Foreign(path) if *path == theirs) && error.is_negative(), "{error}");
        let text = error.to_string();
        assert!(text.contains("etc/units/one") && text.contains("move it away"), "{text}");
        assert!(!place.path("etc/rxlane/settings").exists(), "nothing is written before all are looked at");
    }
    // One of rxlane whose record is lost is its own.
    fs::write(&theirs, format!("# {}\n", origin().line())).expect("written");
    assert_eq!(store.check("doctor", &files).expect("free")[1].state, State::Former);
    // A link that somebody made before is theirs, and stays.
    symlink("../one", place.path("etc/units/device.wants/one")).expect("a link");
    let written = write(&store, "doctor", &[], &files).expect("written");
    assert_eq!(written[2].state, State::Same);
    store.remove("doctor").expect("removed");
    assert!(place.path("etc/units/device.wants/one").is_symlink() && !theirs.exists());
    for (other, what) in [("elsewhere", "a link elsewhere"), ("", "a folder")] {
        let path = place.path("etc/units/device.wants/one");
        fs::remove_file(&path).expect("removed");
        if other.is_empty() { fs::create_dir(&path) } else { symlink(other, &path) }.expect(what);
        assert!(matches!(store.check("doctor", &files), Err(Error::Foreign(_))), "{what}");
    }
}

#[test]
fn what_was_changed_since_is_neither_overwritten_nor_removed() {
    let place = Place::new();
    let (store, files) = (place.store(), place.files());
    write(&store, "doctor", &[], &files).expect("written");
    let changed = place.path("etc/rxlane/settings");
    let mut text = fs::read_to_string(&changed).expect("text");
    text.push_str("theirs\n");
    fs::write(&changed, &text).expect("written");
    let error = write(&store, "doctor", &[], &files).expect_err("changed");
    assert!(matches!(error, Error::Changed(_)), "{error}");
    let lines = |all: &[rxlane_persist::Removed]| format!("{all:?}");
    for _ in 0..2 {
        let before = fs::read_dir(place.path("etc/rxlane")).expect("a folder").count();
        let preview = store.removal_preview("doctor").expect("a preview");
        assert_eq!(fs::read_dir(place.path("etc/rxlane")).expect("a folder").count(), before);
        let removed = store.remove("doctor").expect("removed");
        assert_eq!(lines(&preview), lines(&removed));
        let kept: Vec<&Path> =
            removed.iter().filter(|one| one.is_kept()).map(|one| one.path.as_path()).collect();
        assert_eq!(kept, [changed.as_path()]);
        assert_eq!(fs::read_to_string(&changed).expect("text"), text);
    }
    fs::remove_file(&changed).expect("removed");
    let removed = store.remove("doctor").expect("removed");
    assert!(
        matches!(removed[..], [rxlane_persist::Removed { outcome: Outcome::Missing, .. }]),
        "{removed:?}"
    );
    assert!(place.is_empty());
}

#[test]
fn one_writes_at_a_time_and_owners_are_apart() {
    let place = Place::new();
    let store = place.store();
    write(&store, "doctor", &[], &place.files()).expect("written");
    let shared = place.text("etc/rxlane/settings", 0o755, "one");
    let other = [place.text("etc/steer", 0o644, "x"), shared.clone()];
    let lock =
        kernel::file::Lock::exclusive(fs::File::open(place.path("etc/rxlane/persist")).expect("a folder"));
    let lock = lock.expect("tried").expect("free");
    assert!(matches!(write(&store, "steer-wan0", &[], &other), Err(Error::Busy(_))));
    assert!(matches!(store.remove("doctor"), Err(Error::Busy(_))));
    drop(lock);
    write(&store, "steer-wan0", &[], &other).expect("written");
    let removed = store.remove("doctor").expect("removed");
    assert!(removed.iter().any(|one| one.path == shared.path && matches!(one.outcome, Outcome::Shared)));
    assert!(place.path("etc/steer").exists() && shared.path.exists());
    store.remove("steer-wan0").expect("removed");
    assert!(place.is_empty());
}

/// Attack: who can write to a folder of the configuration has commands run as root.
#[test]
fn folders_that_others_can_write_to_are_refused() {
    let place = Place::new();
    fs::create_dir_all(place.path("etc/units")).expect("a folder");
    fs::set_permissions(place.path("etc/units"), fs::Permissions::from_mode(0o777)).expect("a mode");
    let error = write(&place.store(), "doctor", &[], &place.files()).expect_err("refused").to_string();
    assert!(error.contains("etc/units") && error.contains("0777"), "{error}");
}

/// The second of two calls at once knows what the first one has written, and keeps it.
#[test]
fn settings_are_revised_under_the_lock() {
    let place = Place::new();
    let store = place.store();
    let [ring, feature] = ["ethtool -G wan0 rx 4096", "ethtool -K wan0 gro on"].map(|one| settings(&[one]));
    let files = |settings: &[Lasting]| {
        let text = settings.iter().map(|one| one.setting.command() + "\n").collect::<String>();
        vec![place.text("etc/rxlane/settings", 0o755, &text)]
    };
    for new in [&ring, &feature] {
        let revise = |former: &[Lasting]| {
            let settings = Lasting::merged(former, new);
            let files = files(&settings);
            (settings, files)
        };
        store.write("doctor", "by", revise).expect("written");
    }
    assert_eq!(store.settings("doctor").expect("read"), [ring, feature].concat());
    let text = fs::read_to_string(place.path("etc/rxlane/settings")).expect("text");
    assert!(text.contains("rx 4096") && text.contains("gro on"), "{text}");
}

/// The unit that two interfaces share, by a later version of rxlane, and as somebody edited it.
#[test]
fn a_shared_file_is_renewed_for_all_and_an_edit_of_it_kept() {
    let place = Place::new();
    let store = place.store();
    let unit = |text: &str| place.text("etc/units/steer@", 0o644, text);
    let of = |name: &str, text: &str| [place.text(&format!("etc/{name}"), 0o644, name), unit(text)];
    write(&store, "steer-wan0", &[], &of("wan0", "old")).expect("written");
    write(&store, "steer-lan0", &[], &of("lan0", "new")).expect("written");
    store.remove("steer-lan0").expect("removed");
    let removed = store.remove("steer-wan0").expect("removed");
    assert!(removed.iter().all(|one| matches!(one.outcome, Outcome::Removed)), "{removed:?}");
    assert!(place.is_empty());

    write(&store, "steer-wan0", &[], &of("wan0", "old")).expect("written");
    let edited = fs::read_to_string(place.path("etc/units/steer@")).expect("text") + "Nice=5\n";
    fs::write(place.path("etc/units/steer@"), &edited).expect("written");
    let error = write(&store, "steer-lan0", &[], &of("lan0", "old")).expect_err("changed");
    assert!(matches!(&error, Error::Changed(path) if *path == place.path("etc/units/steer@")), "{error}");
    assert_eq!(fs::read_to_string(place.path("etc/units/steer@")).expect("text"), edited);
    assert!(!place.path("etc/lan0").exists());
}
