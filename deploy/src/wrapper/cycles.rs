//! The work of a course: the cycles of a run and what lies between them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Error;
use super::session::{Outcome, Session};
use crate::bootstrap::wait_for_backend;
use crate::cycle::Applied;
use crate::decide::Work;
use crate::lease::{Attempt, Lease};
use crate::migrate::migrate;
use crate::observe::{Errored, Local, errored, local};
use crate::progress::{Event, Phase};
use crate::report::{Ending, LockRelease, Phases, RunReport};
use crate::salvage::{self, SalvageError};
use crate::state::State;
use crate::transfer::{TransferError, Transferred};
use crate::verdict::{NodeReport, Verdict};
use crate::workdir::Cycle;

impl Session<'_> {
    pub(super) fn plan(&self, work: Work, phases: &Phases<'_>) -> Result<RunReport, Error> {
        let tofu = self.tofu();
        let changes = phases.run(
            Phase::Plan,
            self.address.to_string(),
            || {
                tofu.prepare(Cycle::Remote)?;
                tofu.plan()
            },
            |changes| match changes.nodes.len() {
                0 if !changes.any => "no changes".to_owned(),
                nodes => format!("{nodes} of {} nodes would change", self.graph.entries.len()),
            },
        )?;
        let outcome = Outcome {
            nodes: BTreeMap::new(),
            lock: LockRelease::Released,
            ending: Ending::Done,
        };
        let mut report = self.report(work, outcome, phases)?;
        report.changes = Some(changes);
        report.outputs.clear();
        Ok(report)
    }

    /// A local cycle, the wait, the migration and a steady cycle (TF User Story 2).
    pub(super) fn bootstrap(&self, phases: &Phases<'_>) -> Result<Outcome, Error> {
        let tofu = self.tofu();
        let applied = phases.run(
            Phase::LocalCycle,
            format!("applies against {}", self.workdir.state().display()),
            || {
                tofu.prepare(Cycle::Local)?;
                tofu.apply(Cycle::Local, "local-cycle")
            },
            told_of_nodes,
        )?;
        if let Errored::Waits {
            cycle: Cycle::Local,
            state,
        } = errored(self.workdir)?
        {
            salvage::adopt(self.workdir, &state, Timestamp::now())?;
        }
        let ending = self.ending(&applied);
        let stops = ending != Ending::Done || applied.nodes.values().any(|report| fails(&report.verdict));
        if stops {
            return Ok(Outcome {
                nodes: applied.nodes,
                lock: LockRelease::Released,
                ending,
            });
        }
        phases.run(
            Phase::WaitForBackend,
            self.address.to_string(),
            || {
                wait_for_backend(
                    &self.poll,
                    self.request.backend_wait,
                    &self.interrupts,
                    self.progress,
                )
            },
            |polls| format!("{} serves (poll {polls})", self.address),
        )?;
        self.migrate_and_apply(phases, applied.nodes)
    }

    pub(super) fn migrate_and_apply(
        &self,
        phases: &Phases<'_>,
        before: BTreeMap<String, NodeReport>,
    ) -> Result<Outcome, Error> {
        let (Local::Held(state) | Local::Empty(state)) = local(self.workdir)? else {
            return Err(Error::NoLocalState {
                path: self.workdir.state(),
            });
        };
        phases.run(
            Phase::Migrate,
            format!("moves {} to {}", state.view().name(), self.address),
            || migrate(&self.client, self.workdir, &state, Timestamp::now()),
            |transferred| match transferred {
                Transferred::Stored => "the backend has the state; the local copy is set aside".to_owned(),
                Transferred::WasThere => {
                    "the backend had the state already; the local copy is set aside".to_owned()
                }
            },
        )?;
        let mut outcome = self.steady_cycle(phases)?;
        outcome.nodes = merge(before, outcome.nodes);
        Ok(outcome)
    }

    pub(super) fn steady_cycle(&self, phases: &Phases<'_>) -> Result<Outcome, Error> {
        let detail = format!("applies against {}", self.address);
        phases.run(
            Phase::SteadyCycle,
            detail,
            || self.steady_apply(),
            |outcome| told_of_reports(&outcome.nodes),
        )
    }

    /// An apply against the backend. When OpenTofu could not store the state, as when the graph restarted its own backend,
    /// the state is salvaged and the graph is applied once more: what was deployed is unchanged then.
    fn steady_apply(&self) -> Result<Outcome, Error> {
        let tofu = self.tofu();
        tofu.prepare(Cycle::Remote)?;
        let first = tofu.apply(Cycle::Remote, "steady-cycle")?;
        let Errored::Waits {
            cycle: Cycle::Remote,
            state,
        } = errored(self.workdir)?
        else {
            return self.settle(first);
        };
        self.progress.event(Event::Warning {
            message: "OpenTofu could not store the state on the backend; it is stored now, then the rest is applied".to_owned(),
        });
        self.salvage(&first, &state)?;
        if self.interrupts.seen() > 0 {
            return self.settle(first);
        }
        let again = tofu.apply(Cycle::Remote, "steady-cycle-again")?;
        let before = first.nodes;
        let mut outcome = self.settle(again)?;
        outcome.nodes = merge(before, outcome.nodes);
        Ok(outcome)
    }

    /// Stores the state of an apply that ended without storing it; a lock that its OpenTofu left behind is given back first.
    fn salvage(&self, applied: &Applied, state: &State) -> Result<(), Error> {
        let push = || salvage::push(&self.client, self.workdir, state, Timestamp::now());
        match push() {
            Err(SalvageError::Transfer {
                source: TransferError::Locked { holder },
                ..
            }) if applied.left(&holder) => {
                self.unlock(&holder)?;
                push()?;
            }
            outcome => {
                outcome?;
            }
        }
        Ok(())
    }

    fn settle(&self, applied: Applied) -> Result<Outcome, Error> {
        let lock = if applied.lock_is_stuck {
            self.release_stuck(&applied)
        } else {
            LockRelease::Released
        };
        let ending = self.ending(&applied);
        Ok(Outcome {
            nodes: applied.nodes,
            lock,
            ending,
        })
    }

    /// OpenTofu could not give its lock back. Either the backend forgot it, or it is still there and we give it back.
    fn release_stuck(&self, applied: &Applied) -> LockRelease {
        let held = |holder: String| LockRelease::NotReleased { holder };
        match Lease::take(&self.client, self.workdir, "lock probe") {
            Ok(Attempt::Taken(lease)) => match lease.release() {
                Ok(()) => LockRelease::Released,
                Err(error) => held(error.to_string()),
            },
            Ok(Attempt::Abandoned(holder)) => held(holder.to_string()),
            Ok(Attempt::Held(holder)) if applied.left(&holder) => match self.unlock(&holder) {
                Ok(()) => LockRelease::Released,
                Err(_) => held(holder.to_string()),
            },
            // Somebody took it since: ours is gone.
            Ok(Attempt::Held(_)) => LockRelease::Released,
            Err(error) => held(error.to_string()),
        }
    }

    fn ending(&self, applied: &Applied) -> Ending {
        if self.interrupts.seen() > 0 {
            return Ending::Interrupted;
        }
        if applied.trouble.is_empty() {
            return Ending::Done;
        }
        let message = format!(
            "{}\nthe whole output is in {}",
            applied.trouble.join("\n"),
            applied.log.display()
        );
        Ending::Failed { message }
    }
}

/// A later cycle of one run finds unchanged what an earlier one deployed: the earlier verdict is the run's.
fn merge(
    before: BTreeMap<String, NodeReport>,
    after: BTreeMap<String, NodeReport>,
) -> BTreeMap<String, NodeReport> {
    let mut merged = before;
    for (node, report) in after {
        if report.verdict != Verdict::Unchanged || !merged.contains_key(&node) {
            merged.insert(node, report);
        }
    }
    merged
}

/// Whether a verdict stops a bootstrap after its local cycle.
fn fails(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Degraded { .. } | Verdict::Failed { .. } | Verdict::Unknown { .. } => true,
        Verdict::Deployed | Verdict::Unchanged | Verdict::Reboot | Verdict::Off => false,
    }
}

fn told_of_nodes(applied: &Applied) -> String {
    told_of_reports(&applied.nodes)
}

fn told_of_reports(nodes: &BTreeMap<String, NodeReport>) -> String {
    let unchanged = nodes
        .values()
        .filter(|report| report.verdict == Verdict::Unchanged)
        .count();
    format!(
        "{} of {} nodes had something to do",
        nodes.len() - unchanged,
        nodes.len()
    )
}
