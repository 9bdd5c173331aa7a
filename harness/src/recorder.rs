//! Notes when a guest's outputs grew, and what memory the test takes, while its lab runs.
//!
//! What is printed carries no time that a reader could trust: a guest's clock stands still while it is paused, and goes back when
//! it is restored. So the time of a line is when the host saw it, to a tenth of a second.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::artifacts::{Artifacts, MachineArtifacts};
use crate::machine::pss_mib;
use crate::timeline::Timeline;

/// How exactly the time of a line is known.
const GROWTH_PAUSE: Duration = Duration::from_millis(100);

/// Measuring costs about a millisecond per guest: one look in so many.
const LOOKS_PER_MEASUREMENT: u32 = 10;

/// Records until it is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    timeline: Timeline,
    memory: PathBuf,
    peak: PathBuf,
    peak_mib: u64,
    last_mib: u64,
    looks: u32,
    guests: Vec<Guest>,
}

#[derive(Debug)]
struct Guest {
    pid: u32,
    console: PathBuf,
    journal: PathBuf,
    growth: PathBuf,
    seen: (u64, u64),
}

impl Recorder {
    /// Starts to record, on the current tokio runtime.
    pub(crate) fn start(artifacts: &Artifacts, timeline: Timeline) -> Self {
        let state = Arc::new(Mutex::new(State {
            timeline,
            memory: artifacts.memory(),
            peak: artifacts.peak_memory(),
            peak_mib: 0,
            last_mib: 0,
            looks: 0,
            guests: Vec::new(),
        }));
        tokio::spawn(keep_looking(Arc::downgrade(&state)));
        Self { state }
    }

    /// A guest more, whose QEMU is `pid`.
    pub(crate) fn add(&self, files: &MachineArtifacts, pid: u32) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .guests
            .push(Guest {
                pid,
                console: files.console.clone(),
                journal: files.journal.clone(),
                growth: files.growth.clone(),
                seen: (0, 0),
            });
    }

    /// Looks now, so that what was printed last has its time.
    pub(crate) fn look(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).look();
    }
}

async fn keep_looking(state: Weak<Mutex<State>>) {
    let mut pause = tokio::time::interval(GROWTH_PAUSE);
    loop {
        pause.tick().await;
        let Some(state) = state.upgrade() else { return };
        state.lock().unwrap_or_else(PoisonError::into_inner).look();
    }
}

impl State {
    fn look(&mut self) {
        let now = self.timeline.elapsed();
        for guest in &mut self.guests {
            let seen = (length(&guest.console), length(&guest.journal));
            if seen != guest.seen {
                guest.seen = seen;
                append(
                    &guest.growth,
                    &format!("{:.3} {} {}\n", now.as_secs_f64(), seen.0, seen.1),
                );
            }
        }
        if self.looks.is_multiple_of(LOOKS_PER_MEASUREMENT) {
            self.measure();
        }
        self.looks = self.looks.wrapping_add(1);
    }

    fn measure(&mut self) {
        let pids = std::iter::once(std::process::id()).chain(self.guests.iter().map(|guest| guest.pid));
        // A guest that has ended takes nothing.
        let mib = pids.filter_map(|pid| pss_mib(pid).ok()).sum::<f64>().ceil() as u64;
        if mib == self.last_mib {
            return;
        }
        self.last_mib = mib;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        append(&self.memory, &format!("{:.1} {mib}\n", now.as_secs_f64()));
        if mib > self.peak_mib {
            self.peak_mib = mib;
            let _ = fs::write(&self.peak, format!("{mib}\n"));
        }
    }
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// A full disk fails the test elsewhere, with a better message.
fn append(path: &Path, line: &str) {
    let written = File::options()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        tracing::warn!(%error, "cannot write {}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn growth_is_noted_once_and_memory_with_its_peak() {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::prepare(folder.path().join("test")).unwrap();
        let files = artifacts.machine("app").unwrap();
        let timeline = Timeline::create(&artifacts.timeline()).unwrap();
        let recorder = Recorder::start(&artifacts, timeline);
        recorder.add(&files, std::process::id());

        fs::write(&files.console, "one\n").unwrap();
        recorder.look();
        recorder.look();
        fs::write(&files.journal, "a line\n").unwrap();
        recorder.look();

        let growth = fs::read_to_string(&files.growth).unwrap();
        let lengths: Vec<_> = growth
            .lines()
            .map(|line| line.split_once(' ').unwrap().1)
            .collect();
        assert_eq!(lengths, ["4 0", "4 7"]);
        let peak: u64 = fs::read_to_string(artifacts.peak_memory())
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert!(peak > 0);
        assert!(
            fs::read_to_string(artifacts.memory())
                .unwrap()
                .contains(&format!(" {peak}\n"))
        );
    }
}
