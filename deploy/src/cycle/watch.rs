//! What is done with each line of the program's output while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use jiff::Timestamp;

use super::Tofu;
use crate::entry::NodeEntry;
use crate::graph::resource_address;
use crate::progress::Event;
use crate::runner::{Notice, Stdout, Transcript, UiError};
use crate::verdict::NodeReport;

/// Folds the output, and tells those who watch.
pub(super) struct Watch<'a> {
    tofu: &'a Tofu<'a>,
    reports: &'a Path,
    entries: BTreeMap<String, &'a NodeEntry>,
    pub(super) transcript: Transcript,
    pub(super) refused: Option<UiError>,
    pub(super) planned_at: Option<Timestamp>,
    pub(super) told: BTreeSet<String>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(tofu: &'a Tofu<'a>, reports: &'a Path) -> Watch<'a> {
        let address = |entry: &'a NodeEntry| (resource_address(&entry.name), entry);
        Watch {
            tofu,
            reports,
            entries: tofu.graph.entries.iter().map(address).collect(),
            transcript: Transcript::default(),
            refused: None,
            planned_at: None,
            told: BTreeSet::new(),
        }
    }

    fn step(&self, address: &str, detail: String) {
        if let Some(entry) = self.entries.get(address) {
            self.tofu.progress.event(Event::NodeStep {
                node: entry.name.clone(),
                detail,
            });
        }
    }

    fn outcome(&self, address: &str) -> Option<NodeReport> {
        self.tofu.read_report(self.entries.get(address)?, self.reports)
    }

    fn has_outcome(&self, address: &str) -> bool {
        self.outcome(address).is_some()
    }

    /// Tells a node's outcome as soon as it has one.
    fn ended(&mut self, address: &str) {
        if let Some(report) = self.outcome(address) {
            self.told.insert(report.node.clone());
            self.tofu.progress.event(Event::NodeFinished(report));
        }
    }
}

impl Stdout for Watch<'_> {
    fn line(&mut self, line: &str) -> ControlFlow<()> {
        let notice = match self.transcript.fold(line) {
            Ok(notice) => notice,
            Err(error) => {
                self.refused = Some(error);
                return ControlFlow::Break(());
            }
        };
        match notice {
            Some(Notice::Planned(_)) => self.planned_at = Some(Timestamp::now()),
            Some(Notice::Started(address)) => self.step(&address, "deploying".to_owned()),
            Some(Notice::Output(_, text)) if text.contains("Suppressed by quiet=true") => {}
            // The transport's last line says what its report says, which is told when the resource has ended.
            Some(Notice::Output(address, _)) if self.has_outcome(&address) => {}
            Some(Notice::Output(address, text)) => self.step(&address, text),
            Some(Notice::Warning(message)) => self.tofu.progress.event(Event::Warning { message }),
            Some(Notice::Ended(address)) => self.ended(&address),
            None => {}
        }
        ControlFlow::Continue(())
    }
}

/// For a verb whose output only goes to the log.
pub(super) struct Said;

impl Stdout for Said {
    fn line(&mut self, _line: &str) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
