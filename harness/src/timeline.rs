//! What happened in a test, in order, on one clock.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Writes `timeline.txt`: one line an event, with the seconds since the lab was made, who it concerns and what happened.
///
/// Clones write to the same file. Each line is written at once, so that a killed test leaves what it did. Nothing that a command
/// read or printed is written here, since it may hold a secret.
#[derive(Clone, Debug)]
pub struct Timeline {
    origin: Instant,
    file: Arc<Mutex<File>>,
}

impl Timeline {
    /// Starts a timeline at `path`; its clock starts now.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            origin: Instant::now(),
            file: Arc::new(Mutex::new(File::create(path)?)),
        })
    }

    /// Time since the timeline began.
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Writes one event about `subject` (a machine's name, or `lab`). A full disk does not fail the test for it.
    pub fn note(&self, subject: &str, event: impl Display) {
        tracing::info!(subject, "{event}");
        let line = line(self.elapsed(), subject, &event.to_string());
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(line.as_bytes()) {
            tracing::warn!(%error, "cannot write the timeline");
        }
    }
}

fn line(at: Duration, subject: &str, event: &str) -> String {
    let event = event.replace('\n', " ");
    format!("{:>9.3} {subject:<12} {event}\n", at.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_time_the_subject_and_the_event() {
        assert_eq!(
            line(Duration::from_millis(61_234), "app", "ready\nagent answers"),
            "   61.234 app          ready agent answers\n"
        );
    }

    #[test]
    fn all_clones_write_to_one_file_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timeline.txt");
        let timeline = Timeline::create(&path).unwrap();
        timeline.note("lab", "made");
        timeline.clone().note("app", "started");

        let written = std::fs::read_to_string(path).unwrap();
        let events: Vec<_> = written.lines().map(|line| &line[10..]).collect();
        assert_eq!(events, ["lab          made", "app          started"]);
    }
}
