//! One run: its course, carried out.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;

use super::{Error, Request};
use crate::address::StateAddress;
use crate::cycle::Tofu;
use crate::decide::{Course, Preparation, Work, decide};
use crate::graph::Graph;
use crate::lock::Holder;
use crate::marker::{Cause, Marker};
use crate::migrate::finish;
use crate::observe::{Errored, Hosting, Local, Observation, Remote, Verb, local, observe, remote};
use crate::progress::{Event, Phase, Progress};
use crate::report::{Ending, LockRelease, Phases, RunReport, StatePlace};
use crate::runner::{Interrupts, Program};
use crate::salvage;
use crate::state::State;
use crate::store::{Client, Credentials};
use crate::verdict::NodeReport;
use crate::workdir::{WorkDir, remove_if_there};

/// All that a run has.
pub(super) struct Session<'a> {
    pub(super) client: Client,
    /// The same, for polling.
    pub(super) poll: Client,
    pub(super) interrupts: Interrupts,
    pub(super) program: &'a Program,
    pub(super) shell: &'a Path,
    pub(super) workdir: &'a WorkDir,
    pub(super) graph: &'a Graph<'a>,
    pub(super) run: &'a str,
    pub(super) logs: &'a Path,
    pub(super) address: &'a StateAddress,
    pub(super) credentials: &'a Credentials,
    pub(super) request: &'a Request,
    pub(super) hosting: Hosting,
    pub(super) progress: &'a dyn Progress,
}

/// What the work came to.
pub(super) struct Outcome {
    pub(super) nodes: BTreeMap<String, NodeReport>,
    pub(super) lock: LockRelease,
    pub(super) ending: Ending,
}

impl Session<'_> {
    pub(super) fn carry_out(&self) -> Result<RunReport, Error> {
        let phases = Phases::new(self.progress);
        let observed = phases.run(
            Phase::Observe,
            self.address.to_string(),
            || observe(&self.client, self.workdir, self.hosting, self.request.asked),
            told_of,
        )?;
        let (before, work, warnings) = match decide(&observed) {
            Course::Refuse(obstacle) => return Err(Error::Refused(obstacle)),
            Course::SetAside { cycle, obstacle } => {
                let kept = salvage::set_aside(self.workdir, cycle, Timestamp::now())?;
                return Err(Error::SetAside { obstacle, kept });
            }
            Course::Run {
                before,
                work,
                warnings,
            } => (before, work, warnings),
        };
        for warning in warnings {
            self.progress.event(Event::Warning {
                message: warning.to_string(),
            });
        }
        for preparation in before {
            self.prepare(preparation, &observed)?;
        }
        match work {
            Work::Steady(Verb::Plan) => self.plan(work, &phases),
            Work::Steady(Verb::Apply) => {
                let outcome = self.steady_cycle(&phases)?;
                self.report(work, outcome, &phases)
            }
            Work::Migrate => {
                let outcome = self.migrate_and_apply(&phases, BTreeMap::new())?;
                self.report(work, outcome, &phases)
            }
            Work::LocalCycle => {
                let outcome = self.bootstrap(&phases)?;
                self.report(work, outcome, &phases)
            }
            Work::Steady(verb) => Err(Error::NotOffered { verb }),
            Work::DetachThenDestroy => Err(Error::NotOffered { verb: Verb::Destroy }),
        }
    }

    fn prepare(&self, preparation: Preparation, observed: &Observation) -> Result<(), Error> {
        let now = Timestamp::now();
        match (preparation, &observed.errored) {
            (Preparation::ReleaseLock(holder), _) => {
                self.unlock(&holder)?;
                self.note(format!("released the lock of {holder}"));
            }
            (Preparation::PushErrored, Errored::Waits { state, .. }) => {
                let (kept, _) = salvage::push(&self.client, self.workdir, state, now)?;
                self.note(format!(
                    "stored the state that the last apply could not; a copy is {}",
                    kept.display()
                ));
            }
            (Preparation::AdoptErrored, Errored::Waits { state, .. }) => {
                let kept = salvage::adopt(self.workdir, state, now)?;
                self.note(format!(
                    "took up the state that the last local cycle could not store; a copy is {}",
                    kept.display()
                ));
            }
            (Preparation::ArchiveErrored(cycle), _) => {
                let kept = salvage::set_aside(self.workdir, cycle, now)?;
                self.note(format!(
                    "the errored state of the last apply is stored already; a copy is {}",
                    kept.display()
                ));
            }
            (Preparation::FinishMigration, _) => {
                if let Remote::Held(state) | Remote::Empty(state) = &observed.remote {
                    finish(self.workdir, state, now)?;
                    self.note("finished an interrupted migration: the backend has the state".to_owned());
                }
            }
            (Preparation::RetireLocal, _) => {
                self.workdir.retire_state(now)?;
                self.note("set the local state aside: the backend has it".to_owned());
            }
            (Preparation::ForgetMarker, _) => remove_if_there(&self.workdir.marker())?,
            // There is nothing to store where nothing waits.
            (
                Preparation::PushErrored | Preparation::AdoptErrored,
                Errored::None | Errored::Damaged { .. },
            ) => {}
        }
        Ok(())
    }

    pub(super) fn unlock(&self, holder: &Holder) -> Result<(), Error> {
        self.client.unlock(&holder.body).map_err(|source| Error::Unlock {
            source,
            holder: holder.to_string(),
        })?;
        Ok(remove_if_there(&self.workdir.lease())?)
    }

    /// Looks where the state is now, and remembers it.
    pub(super) fn report(
        &self,
        work: Work,
        outcome: Outcome,
        phases: &Phases<'_>,
    ) -> Result<RunReport, Error> {
        let kept_locally = matches!(local(self.workdir)?, Local::Held(_));
        let mut outputs = BTreeMap::new();
        let state = match remote(self.client.read()) {
            Remote::Held(state) | Remote::Empty(state) if !kept_locally => {
                outputs = state.outputs();
                if work != Work::Steady(Verb::Plan) {
                    self.remember(&state)?;
                }
                let view = state.view();
                let (address, lineage) = (self.address.to_string(), view.lineage.clone());
                StatePlace::Backend {
                    address,
                    lineage,
                    serial: view.serial,
                }
            }
            _ if kept_locally => StatePlace::WorkingDirectory {
                path: self.workdir.state(),
            },
            Remote::Absent if work == Work::Steady(Verb::Plan) => StatePlace::Nowhere,
            Remote::Absent if outcome.ending == Ending::Done && !self.graph.entries.is_empty() => {
                return Err(Error::NotSaved {
                    address: self.address.to_string(),
                });
            }
            Remote::Absent => StatePlace::Nowhere,
            Remote::Unreachable(error) | Remote::Denied(error) | Remote::Failing(error) => {
                StatePlace::Unknown {
                    reason: error.to_string(),
                }
            }
            Remote::Corrupt { reason } => StatePlace::Unknown { reason },
            Remote::Held(_) | Remote::Empty(_) => StatePlace::Nowhere,
        };
        Ok(RunReport {
            run: self.run.to_owned(),
            work,
            nodes: outcome.nodes.into_values().collect(),
            outputs,
            state,
            phases: phases.times(),
            lock: outcome.lock,
            changes: None,
            ending: outcome.ending,
            logs: self.logs.to_owned(),
        })
    }

    /// The marker says what the backend was last seen to have: without it, a backend that lost the state, or a mistyped
    /// password on a server that answers it with 404, would look like a fleet that was never deployed.
    fn remember(&self, state: &State) -> Result<(), Error> {
        let view = state.view();
        let known = self.workdir.read_marker()?;
        let cause = match &known {
            Some(marker) if marker.lineage == view.lineage && marker.serial == view.serial => return Ok(()),
            Some(marker) if marker.lineage == view.lineage => marker.cause,
            _ => Cause::Applied,
        };
        let marker = Marker {
            lineage: view.lineage.clone(),
            serial: view.serial,
            at: Timestamp::now(),
            cause,
        };
        Ok(self.workdir.write_marker(&marker)?)
    }

    pub(super) fn tofu(&self) -> Tofu<'_> {
        Tofu {
            program: self.program,
            shell: self.shell,
            workdir: self.workdir,
            graph: self.graph,
            run: self.run,
            logs: self.logs,
            address: self.address,
            credentials: self.credentials,
            parallelism: self.request.parallelism,
            interrupts: &self.interrupts,
            progress: self.progress,
        }
    }

    fn note(&self, message: String) {
        self.progress.event(Event::Note { message });
    }
}

fn told_of(observed: &Observation) -> String {
    let remote = match &observed.remote {
        Remote::Unreachable(_) => "the backend cannot be reached".to_owned(),
        Remote::Absent => "the backend has no state".to_owned(),
        Remote::Empty(state) => format!("the backend has a destroyed fleet ({})", state.view().name()),
        Remote::Held(state) => format!(
            "the backend has {} ({})",
            state.view().resources(),
            state.view().name()
        ),
        Remote::Corrupt { .. } => "what answers is no state".to_owned(),
        Remote::Denied(_) => "the backend refuses the credentials".to_owned(),
        Remote::Failing(_) => "the backend does not serve".to_owned(),
    };
    let local = match &observed.local {
        Local::None | Local::Zero | Local::Empty(_) => "",
        Local::Held(_) => "; the working directory has a state",
        Local::Corrupt { .. } => "; the working directory has a damaged state",
    };
    format!("{remote}{local}")
}
