//! How many instructions each virtual CPU has executed, counted by a plugin of QEMU's translator
//! (`plugin/instructions.c`).

use crate::packages::{Cache, output};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("../plugin/instructions.c");
/// The plugin writes every half millisecond; a machine that is this late is not working.
const LATE: Duration = Duration::from_secs(10);

/// The compiled plugin, which is made where its source has changed.
///
/// # Errors
///
/// There is no C compiler, or it fails.
pub fn plugin(cache: &Cache) -> Result<PathBuf> {
    let (built, copy) = (cache.root().join("instructions.so"), cache.root().join("instructions.c"));
    let is_current = || built.is_file() && fs::read_to_string(&copy).is_ok_and(|text| text == SOURCE);
    if !is_current() {
        let lock = File::create(cache.root().join("lock")).context("lock of the cache")?;
        lock.lock().context("lock of the cache")?;
        if !is_current() {
            let (source, partial) =
                (cache.root().join("instructions.partial.c"), cache.root().join("instructions.partial.so"));
            fs::write(&source, SOURCE)?;
            output(
                Command::new("cc")
                    .args(["-shared", "-fPIC", "-O2", "-fvisibility=hidden", "-pthread", "-o"])
                    .arg(&partial)
                    .arg(&source),
            )
            .context("the plugin that counts instructions")?;
            fs::rename(partial, &built)?;
            fs::rename(source, &copy)?;
        }
    }
    built.canonicalize().with_context(|| format!("{}", built.display()))
}

/// The counts of a running guest.
#[derive(Debug)]
pub(crate) struct Counts {
    file: File,
    cpus: usize,
}

impl Counts {
    pub(crate) fn open(path: &Path, cpus: u32) -> Result<Counts> {
        let file = File::open(path).with_context(|| format!("{}", path.display()))?;
        Ok(Counts { file, cpus: cpus as usize })
    }

    /// Instructions of each virtual CPU since the guest was booted, all counted after the call.
    pub(crate) fn read(&self) -> Result<Vec<u64>> {
        let before = self.rounds()?;
        let start = Instant::now();
        // The round that was under way may have passed a CPU already.
        while self.rounds()? < before + 2 {
            ensure!(start.elapsed() < LATE, "the plugin has stopped counting");
            thread::sleep(Duration::from_micros(200));
        }
        (1..=self.cpus).map(|place| self.number(place)).collect()
    }

    fn rounds(&self) -> Result<u64> {
        self.number(0)
    }

    fn number(&self, place: usize) -> Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, place as u64 * 8).context("counts of instructions")?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_after_two_further_rounds() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        let write = |place: u64, number: u64| {
            path.as_file().write_all_at(&number.to_ne_bytes(), place * 8).expect("written");
        };
        for place in 0..4 {
            write(place, 10 + place);
        }
        let counts = Counts::open(path.path(), 2).expect("open");
        // Rounds go on until the reader has seen two of them; the counts are of the first one.
        thread::scope(|scope| {
            let reader = scope.spawn(|| counts.read());
            let mut round = 10;
            while !reader.is_finished() {
                write(1, 111);
                round += 1;
                write(0, round);
                thread::yield_now();
            }
            assert_eq!(reader.join().expect("no panic").expect("counts"), [111, 12]);
        });
    }

    #[test]
    fn a_short_file_is_an_error() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        assert!(Counts::open(path.path(), 1).expect("open").read().is_err());
    }
}
