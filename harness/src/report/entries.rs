//! Lines with their times.

use crate::console::shown;

/// One line of the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Seconds since the lab was made.
    pub at: f64,
    /// Whom it concerns: a machine, or `lab`.
    pub machine: String,
    /// Where it was printed.
    pub source: Source,
    /// What was printed.
    pub text: String,
}

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The test itself.
    Test,
    /// A guest's console.
    Console,
    /// A guest's journal.
    Journal,
}

impl Source {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Console => "console",
            Self::Journal => "journal",
        }
    }
}

/// When the outputs of a guest were how long.
#[derive(Debug, Default)]
pub(super) struct Growth(Vec<(f64, u64, u64)>);

impl Growth {
    /// Reads lines `seconds bytes-of-console bytes-of-journal`; others are passed over, since the last may be half written.
    pub(super) fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut fields = line.split(' ');
            let line = (
                fields.next()?.parse().ok()?,
                fields.next()?.parse().ok()?,
                fields.next()?.parse().ok()?,
            );
            Some(line)
        };
        Self(text.lines().filter_map(line).collect())
    }

    pub(super) fn console(&self) -> Vec<(f64, u64)> {
        self.0.iter().map(|(at, console, _)| (*at, *console)).collect()
    }

    pub(super) fn journal(&self) -> Vec<(f64, u64)> {
        self.0.iter().map(|(at, _, journal)| (*at, *journal)).collect()
    }
}

/// The events of `timeline.txt`.
pub(super) fn events(text: &str) -> Vec<Entry> {
    let event = |line: &str| {
        let (at, rest) = line.trim_start().split_once(' ')?;
        let (machine, text) = rest.split_once(' ')?;
        Some(Entry {
            at: at.parse().ok()?,
            machine: machine.to_owned(),
            source: Source::Test,
            text: text.trim().to_owned(),
        })
    };
    text.lines().filter_map(event).collect()
}

/// The lines that `machine` printed, each with the time at which the host had seen its last byte. What came after the last look has
/// the time of that look.
pub(super) fn merge(machine: &str, source: Source, printed: &[u8], lengths: &[(f64, u64)]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let (mut end, mut look) = (0, 0);
    for line in printed.split_inclusive(|byte| *byte == b'\n') {
        end += line.len() as u64;
        while look + 1 < lengths.len() && lengths[look].1 < end {
            look += 1;
        }
        let text = shown(line).trim_end().to_owned();
        if !text.is_empty() {
            entries.push(Entry {
                at: lengths.get(look).map_or(0.0, |(at, _)| *at),
                machine: machine.to_owned(),
                source,
                text,
            });
        }
    }
    entries
}
