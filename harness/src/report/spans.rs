//! What took time: pairs of events.

use super::{Entry, Source};

/// Something with a beginning and an end.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The machine.
    pub machine: String,
    /// What kind of thing.
    pub kind: Kind,
    /// What.
    pub what: String,
    /// When it began, in seconds.
    pub from: f64,
    /// When it ended; the end of the timeline if it never did.
    pub to: f64,
}

/// Kinds of what takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A boot, or the restoring of a saved one.
    Boot,
    /// A command.
    Command,
    /// A wait.
    Wait,
    /// A reboot.
    Reboot,
}

impl Kind {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Command => "command",
            Self::Wait => "wait",
            Self::Reboot => "reboot",
        }
    }
}

/// Pairs each beginning among `entries` with its end: the oldest open one of the same machine and text.
pub(super) fn spans(entries: &[Entry]) -> Vec<Span> {
    let last = entries.last().map_or(0.0, |entry| entry.at);
    let mut spans: Vec<(Span, bool)> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.source == Source::Test) {
        if let Some((kind, what)) = beginning(&entry.text) {
            let span = Span {
                machine: entry.machine.clone(),
                kind,
                what: what.to_owned(),
                from: entry.at,
                to: last,
            };
            spans.push((span, true));
        } else if let Some((span, open)) = spans
            .iter_mut()
            .find(|(span, open)| *open && span.machine == entry.machine && ends(span, &entry.text))
        {
            span.to = entry.at;
            *open = false;
        }
    }
    spans.into_iter().map(|(span, _)| span).collect()
}

fn beginning(text: &str) -> Option<(Kind, &str)> {
    if text == "starts" {
        Some((Kind::Boot, "boot"))
    } else if text == "reboots" {
        Some((Kind::Reboot, "reboot"))
    } else if let Some(command) = text.strip_prefix("runs `") {
        Some((Kind::Command, command.strip_suffix('`').unwrap_or(command)))
    } else {
        Some((Kind::Wait, text.strip_prefix("waits for ")?))
    }
}

fn ends(span: &Span, text: &str) -> bool {
    match span.kind {
        Kind::Boot => text.starts_with("is ready"),
        Kind::Reboot => matches!(text, "has rebooted" | "did not come back"),
        Kind::Command => text
            .strip_prefix('`')
            .and_then(|text| text.strip_prefix(span.what.as_str()))
            .is_some_and(|rest| rest.starts_with("`:")),
        Kind::Wait => ["has ", "gives up "].iter().any(|verb| {
            text.strip_prefix(verb)
                .is_some_and(|rest| rest.starts_with(span.what.as_str()))
        }),
    }
}
