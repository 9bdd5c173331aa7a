//! What a run did, as data; the program renders it and exits by it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use crate::decide::Work;
use crate::progress::{Event, Phase, Progress};
use crate::runner::{Action, Counts};
use crate::verdict::{NodeReport, Verdict};

/// What a run did.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// The run's id.
    pub run: String,
    /// What the wrapper decided to do.
    pub work: Work,
    /// Each node of the graph that has an outcome, sorted by name; empty after a plan.
    pub nodes: Vec<NodeReport>,
    /// The graph's outputs; empty after a plan.
    pub outputs: BTreeMap<String, Value>,
    /// Where the state is.
    pub state: StatePlace,
    /// What each phase took, in order.
    pub phases: Vec<PhaseTime>,
    /// What became of the backend's lock.
    pub lock: LockRelease,
    /// What an apply would change; after a plan only.
    pub changes: Option<PlannedChanges>,
    /// How it ended.
    pub ending: Ending,
    /// Folder with the run's logs.
    pub logs: PathBuf,
}

/// Where the state is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "place")]
pub enum StatePlace {
    /// On the backend.
    Backend {
        /// Redacted address.
        address: String,
        /// Its lineage.
        lineage: String,
        /// Its serial.
        serial: u64,
    },
    /// Still in the working directory: a bootstrap stopped before its migration.
    WorkingDirectory {
        /// The file.
        path: PathBuf,
    },
    /// Nowhere yet, after a plan of a fleet that was never deployed.
    Nowhere,
    /// The backend could not be asked at the end.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// What a phase took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseTime {
    /// Which.
    pub phase: Phase,
    /// How long.
    pub milliseconds: u64,
}

/// What became of the backend's lock. It is told apart from what became of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "lock")]
pub enum LockRelease {
    /// Nobody holds it through us.
    Released,
    /// It is still held: everything else is as reported, and the next run has to release it.
    NotReleased {
        /// By whom, or why that is not known.
        holder: String,
    },
}

/// What an apply would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedChanges {
    /// Whether there is anything, outputs included.
    pub any: bool,
    /// Counts of resources.
    pub counts: Counts,
    /// What would be done to each node that changes. A node that leaves the graph stands under its resource address.
    pub nodes: BTreeMap<String, Action>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "ending")]
pub enum Ending {
    /// It did all it wanted to; what became of each node stands with the nodes.
    Done,
    /// Something besides the nodes failed.
    Failed {
        /// What, and what to do.
        message: String,
    },
    /// A signal ended it; nodes in work are reported as unknown.
    Interrupted,
}

impl RunReport {
    /// The program's exit code: 130 interrupted, 1 failed, 4 degraded (or deployed with the lock not released), 100 a
    /// reboot is needed, 2 a plan shows changes, 0.
    pub fn exit_code(&self) -> u8 {
        let any = |wanted: fn(&Verdict) -> bool| self.nodes.iter().any(|report| wanted(&report.verdict));
        match &self.ending {
            Ending::Interrupted => 130,
            Ending::Failed { .. } => 1,
            Ending::Done
                if any(|verdict| matches!(verdict, Verdict::Failed { .. } | Verdict::Unknown { .. })) =>
            {
                1
            }
            Ending::Done if any(|verdict| matches!(verdict, Verdict::Degraded { .. })) => 4,
            Ending::Done if matches!(self.lock, LockRelease::NotReleased { .. }) => 4,
            Ending::Done if any(|verdict| matches!(verdict, Verdict::Reboot)) => 100,
            Ending::Done if self.changes.as_ref().is_some_and(|changes| changes.any) => 2,
            Ending::Done => 0,
        }
    }
}

/// Tells phases to those who watch, and keeps what each took.
pub(crate) struct Phases<'a> {
    progress: &'a dyn Progress,
    times: Mutex<Vec<PhaseTime>>,
}

impl<'a> Phases<'a> {
    pub(crate) fn new(progress: &'a dyn Progress) -> Phases<'a> {
        Phases {
            progress,
            times: Mutex::new(Vec::new()),
        }
    }

    /// Runs the work of a phase; `told` says what it found or did, for a person.
    pub(crate) fn run<T, E>(
        &self,
        phase: Phase,
        detail: impl Into<String>,
        work: impl FnOnce() -> Result<T, E>,
        told: impl FnOnce(&T) -> String,
    ) -> Result<T, E> {
        self.progress.event(Event::PhaseStarted {
            phase,
            detail: detail.into(),
        });
        let start = Instant::now();
        let outcome = work();
        let milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Ok(mut times) = self.times.lock() {
            times.push(PhaseTime { phase, milliseconds });
        }
        let outcome = outcome?;
        self.progress.event(Event::PhaseFinished {
            phase,
            detail: told(&outcome),
        });
        Ok(outcome)
    }

    pub(crate) fn times(&self) -> Vec<PhaseTime> {
        self.times.lock().map(|times| times.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Verb;
    use crate::verdict::Step;
    use rstest::rstest;

    fn report(verdicts: &[Verdict], ending: Ending) -> RunReport {
        let node = |verdict: &Verdict| NodeReport {
            node: "a".into(),
            run: "1".into(),
            system: "/nix/store/a".into(),
            verdict: verdict.clone(),
            copied_bytes: 0,
            milliseconds: 0,
        };
        RunReport {
            run: "1".into(),
            work: Work::Steady(Verb::Apply),
            nodes: verdicts.iter().map(node).collect(),
            outputs: BTreeMap::new(),
            state: StatePlace::Nowhere,
            phases: Vec::new(),
            lock: LockRelease::Released,
            changes: None,
            ending,
            logs: PathBuf::new(),
        }
    }

    fn degraded() -> Verdict {
        Verdict::Degraded {
            units: vec!["nginx.service".into()],
        }
    }

    fn failed() -> Verdict {
        Verdict::Failed {
            step: Step::Check,
            code: Some(1),
            message: String::new(),
        }
    }

    fn unknown() -> Verdict {
        Verdict::Unknown {
            message: String::new(),
        }
    }

    #[rstest]
    #[case::all_well(&[Verdict::Deployed, Verdict::Unchanged, Verdict::Off], Ending::Done, 0)]
    #[case::a_reboot(&[Verdict::Deployed, Verdict::Reboot], Ending::Done, 100)]
    #[case::degraded_beats_reboot(&[Verdict::Reboot, degraded()], Ending::Done, 4)]
    #[case::failed_beats_degraded(&[degraded(), failed()], Ending::Done, 1)]
    #[case::unknown_is_a_failure(&[unknown()], Ending::Done, 1)]
    #[case::a_failure_besides_the_nodes(&[Verdict::Deployed], Ending::Failed { message: String::new() }, 1)]
    #[case::interrupted_beats_all(&[failed()], Ending::Interrupted, 130)]
    fn the_exit_code_is_that_of_the_worst(
        #[case] verdicts: &[Verdict],
        #[case] ending: Ending,
        #[case] code: u8,
    ) {
        assert_eq!(report(verdicts, ending).exit_code(), code);
    }

    #[test]
    fn a_lock_that_is_still_held_is_told_apart_from_a_failure() {
        let held = LockRelease::NotReleased { holder: "bob".into() };
        let report = RunReport {
            lock: held,
            ..report(&[Verdict::Deployed], Ending::Done)
        };
        assert_eq!(report.exit_code(), 4);
    }

    #[test]
    fn a_plan_with_changes_is_2() {
        let changes = |any| {
            Some(PlannedChanges {
                any,
                counts: Counts::default(),
                nodes: BTreeMap::new(),
            })
        };
        assert_eq!(
            RunReport {
                changes: changes(true),
                ..report(&[], Ending::Done)
            }
            .exit_code(),
            2
        );
        assert_eq!(
            RunReport {
                changes: changes(false),
                ..report(&[], Ending::Done)
            }
            .exit_code(),
            0
        );
    }
}
