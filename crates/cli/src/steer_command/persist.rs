//! `steer up --persist`: the unit that steers at every boot, and `steer down --undo`, which removes it.

use crate::output::{CommandResult, Lacks, Outcome, Output};
use crate::persisted::{failed, lacks, print_plan, print_removed, print_written, store};
use ::persist::{Checked, Machine, Origin, Plan, Removed, steering};
use format::quoted;
use host::setting::Tree;
use kernel::file::expect_trusted;
use std::io::{self, Write};
use std::path::PathBuf;

fn owner(interface: &str) -> String {
    format!("steer-{interface}")
}

fn by(interface: &str) -> String {
    format!("rxlane steer up {} --persist", quoted(interface))
}

/// The files, and what is in their places.
pub struct Prepared {
    plan: Plan,
    checked: Vec<Checked>,
}

/// What would be written to steer with these options of `steer up`.
///
/// # Errors
///
/// This machine has no systemd, the unit could not run the program, or a file is somebody else's.
pub fn prepare(interface: &str, options: &[String]) -> Result<Prepared, CommandResult> {
    let refused = |refusal: steering::Refusal| Err(Lacks(refusal.to_string()).into());
    let command = format!("rxlane steer up {} {}", quoted(interface), options.join(" "));
    steering::expect_systemd(&Machine::live(&[]), command.trim_end()).map_err(refused)?;
    let program = std::env::current_exe().map_err(|error| Err(error.into()))?;
    let installed = steering::installed(&Tree::live());
    let request =
        steering::Request { interface, options, program: &program, installed: installed.as_deref() };
    if installed.is_none()
        && let Err(error) = expect_trusted(&program)
    {
        let why =
            format!("the unit would run it as root at every boot: {error}; install rxlane in /usr/local/bin");
        return Err(Err(Lacks(why).into()));
    }
    let removed_by = Some(format!("rxlane steer down {} --undo", quoted(interface)));
    let plan =
        steering::plan(&request, &Origin { written_by: by(interface), removed_by }).map_err(refused)?;
    let checked = store().check(&owner(interface), &plan.files).map_err(failed)?;
    Ok(Prepared { plan, checked })
}

impl Prepared {
    pub fn print(&self, out: &mut Output) -> io::Result<()> {
        print_plan(out, &self.plan, &self.checked)
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.plan.files.iter().map(|file| file.path.clone()).collect()
    }

    /// Writes the files. `out` gets what was written, and how to remove it.
    pub fn write(&self, out: Option<&mut Output>, interface: &str) -> CommandResult {
        let written = match store()
            .write(&owner(interface), &by(interface), |_| (Vec::new(), self.plan.files.clone()))
        {
            Ok(written) => written,
            Err(error) => return failed(error),
        };
        if let Some(out) = out {
            print_written(out, &written)?;
            let interface = quoted(interface);
            writeln!(
                out,
                "The next boot steers {interface} again; `rxlane steer down {interface} --undo` removes the files."
            )?;
        }
        Ok(Outcome::Success)
    }
}

/// Removes the files of an interface.
pub fn undo(interface: &str) -> anyhow::Result<Vec<Removed>> {
    store().remove(&owner(interface)).map_err(lacks)
}

pub fn print_undone(out: &mut Output, removed: &[Removed]) -> io::Result<Outcome> {
    if removed.is_empty() {
        writeln!(out, "Nothing was made persistent.")?;
    }
    print_removed(out, removed, false)
}
