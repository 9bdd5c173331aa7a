//! One timeline of a test, from the files in its folder: what the test did and what its guests printed, on one clock.
//!
//! Everything is read back from the folder, so that a test that was killed can be told of later as well.

mod entries;
mod junit;
mod page;
mod spans;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use entries::{Entry, Source};
pub use junit::{JunitError, Sidecars, add_properties};
pub use spans::{Kind, Span};

use crate::console::shown;
use entries::{Growth, merge};

/// How a test ended, by the markers in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Its lab was stopped in order, and nothing was found.
    Passed,
    /// It failed.
    Failed,
    /// Its lab was dropped without being stopped: the test runner knows whether it passed.
    Ended,
    /// It never came to an end: it still runs, or it was killed.
    Unfinished,
}

/// All that is known of one test.
#[derive(Clone, Debug)]
pub struct Report {
    /// `BINARY/TEST`, as the folder is named.
    pub test: String,
    /// How it ended.
    pub ending: Ending,
    /// What its marker says.
    pub note: String,
    /// Its machines, in order.
    pub machines: Vec<String>,
    /// Everything that happened, in order.
    pub entries: Vec<Entry>,
    /// What took time: boots, commands, waits.
    pub spans: Vec<Span>,
    /// The most memory it took, in MiB, if that was measured.
    pub peak_mib: Option<u64>,
}

impl Ending {
    /// The ending of the test with this folder.
    pub fn of(folder: &Path) -> Self {
        // A test can fail after its lab was stopped in order: the worst marker counts.
        let marked = |name: &str| folder.join(name).exists();
        if marked("failed") {
            Self::Failed
        } else if marked("passed") {
            Self::Passed
        } else if marked("ended") {
            Self::Ended
        } else {
            Self::Unfinished
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Ended => "ended",
            Self::Unfinished => "unfinished",
        }
    }
}

impl Report {
    /// Reads the folder of one test. Files that are missing hold nothing.
    ///
    /// # Errors
    /// The folder cannot be read, or a file in it.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut entries = entries::events(&read(&folder.join("timeline.txt"))?);
        let mut machines = Vec::new();
        for machine in machine_folders(folder)? {
            let name = file_name(&machine);
            let growth = Growth::parse(&read(&machine.join("growth"))?);
            let mut printed = |file: &str, source, lengths: fn(&Growth) -> Vec<(f64, u64)>| {
                let bytes = fs::read(machine.join(file)).or_else(nothing_if_missing)?;
                entries.extend(merge(&name, source, &bytes, &lengths(&growth)));
                Ok::<_, io::Error>(())
            };
            printed("console", Source::Console, Growth::console)?;
            printed("journal", Source::Journal, Growth::journal)?;
            machines.push(name);
        }
        entries.sort_by(|a, b| a.at.total_cmp(&b.at));
        let ending = Ending::of(folder);
        Ok(Self {
            test: format!(
                "{}/{}",
                folder.parent().map(file_name).unwrap_or_default(),
                file_name(folder)
            ),
            note: read(&folder.join(ending.word()))?,
            ending,
            spans: spans::spans(&entries),
            machines,
            entries,
            peak_mib: read(&folder.join("peak-memory-mib"))?.trim().parse().ok(),
        })
    }

    /// Everything as text: seconds, machine, where it was printed, and what.
    pub fn text(&self) -> String {
        self.entries
            .iter()
            .map(|entry| {
                format!(
                    "{:>9.3} {:<12} {:<7} {}\n",
                    entry.at,
                    entry.machine,
                    entry.source.word(),
                    entry.text
                )
            })
            .collect()
    }

    /// The same as a page for a browser, which needs nothing beside it.
    pub fn page(&self) -> String {
        page::page(self)
    }

    /// Writes both into `folder`.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::write(folder.join("everything.txt"), self.text())?;
        fs::write(folder.join("timeline.html"), self.page())
    }
}

/// The folders of all tests under `base`, such as `target/debug/vm-artifacts`, in order.
///
/// # Errors
/// `base` cannot be read.
pub fn tests_under(base: &Path) -> io::Result<Vec<PathBuf>> {
    let mut tests = Vec::new();
    for binary in folders(base)? {
        let started = |test: &PathBuf| test.join("started").exists();
        tests.extend(folders(&binary)?.into_iter().filter(started));
    }
    Ok(tests)
}

fn machine_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let is_machine = |folder: &PathBuf| folder.join("command").exists() || folder.join("console").exists();
    Ok(folders(folder)?.into_iter().filter(is_machine).collect())
}

fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn read(path: &Path) -> io::Result<String> {
    fs::read(path)
        .or_else(nothing_if_missing)
        .map(|bytes| shown(&bytes))
}

fn nothing_if_missing(error: io::Error) -> io::Result<Vec<u8>> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests;
