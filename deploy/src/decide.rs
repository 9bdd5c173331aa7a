//! What to do, decided before anything is done: a pure and total function of what was observed.
//!
//! An [`Obstacle`] stops a verb that changes the state. The same obstacle is a warning to a verb that only looks.

use serde::Serialize;

use crate::lock::Holder;
use crate::marker::Marker;
use crate::observe::{
    Asked, Errored, Flags, Hosting, Local, Lock, LostState, Mode, Observation, Remote, StaleLock, Verb,
};
use crate::obstacle::{Advice, Obstacle};
use crate::state::{Relation, State};
use crate::workdir::Cycle;

/// What the wrapper does.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    /// The preparations in their order, then the work.
    Run {
        /// What is settled first.
        before: Vec<Preparation>,
        /// The work.
        work: Work,
        /// What a verb that only looks should tell.
        warnings: Vec<Obstacle>,
    },
    /// The errored state is set aside, then the run stops.
    SetAside {
        /// Where it lies.
        cycle: Cycle,
        /// Why it cannot be pushed.
        obstacle: Obstacle,
    },
    /// Nothing is touched.
    Refuse(Obstacle),
}

/// A thing to settle before the work.
#[derive(Clone, Debug, PartialEq)]
pub enum Preparation {
    /// Give the backend's lock back, by the holder's own bytes.
    ReleaseLock(Holder),
    /// Push the errored state of the remote cycle.
    PushErrored,
    /// Make the errored state of the local cycle the local state.
    AdoptErrored,
    /// Keep the errored state dated: its destination has the very same.
    ArchiveErrored(Cycle),
    /// The migration got as far as its POST: write the marker and retire the local state.
    FinishMigration,
    /// The marker stands and the local state is still there: retire it.
    RetireLocal,
    /// The backend's state is given up: remove the marker.
    ForgetMarker,
}

/// The work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Apply with local state, wait for the backend, migrate, apply against the backend.
    LocalCycle,
    /// Migrate, apply against the backend.
    Migrate,
    /// The verb against the backend.
    Steady(Verb),
    /// Move the state from the backend to the working directory, then destroy by it.
    DetachThenDestroy,
}

/// Decides.
pub fn decide(observed: &Observation) -> Course {
    let Observation {
        asked,
        hosting,
        remote,
        ..
    } = observed;
    let standing = match refused_at_sight(*asked, *hosting) {
        Some(obstacle) => Err(obstacle),
        None => standing(*asked, *hosting, observed.marker.as_ref(), remote),
    };
    match standing {
        Err(obstacle) => Course::Refuse(obstacle),
        Ok(Standing::Unreachable(reason)) => unreachable(observed, &reason),
        Ok(Standing::Serves(state)) => reachable(observed, state),
    }
}

/// What the backend alone rules out, so that nothing has to be made or built to know.
pub fn refused_by_backend(
    asked: Asked,
    hosting: Hosting,
    marker: Option<&Marker>,
    remote: &Remote,
) -> Option<Obstacle> {
    standing(asked, hosting, marker, remote).err()
}

/// A backend with which a run can go on.
enum Standing<'a> {
    /// A bootstrap brings it up.
    Unreachable(String),
    /// It answers, with a state or without one.
    Serves(Option<&'a State>),
}

fn standing<'a>(
    asked: Asked,
    hosting: Hosting,
    marker: Option<&Marker>,
    remote: &'a Remote,
) -> Result<Standing<'a>, Obstacle> {
    match (remote, asked.mode) {
        (Remote::Denied(error) | Remote::Failing(error), _) => Err(Obstacle::Backend {
            text: error.to_string(),
        }),
        (Remote::Corrupt { reason }, _) => Err(Obstacle::Corrupt {
            reason: reason.clone(),
        }),
        (Remote::Unreachable(error), Mode::Steady) => Err(Obstacle::Unreachable {
            reason: error.to_string(),
            advice: match (marker, hosting) {
                (None, Hosting::OwnNode) => Advice::Bootstrap,
                (Some(_), _) | (_, Hosting::Elsewhere) => Advice::BringBack,
            },
        }),
        (Remote::Unreachable(error), Mode::Bootstrap) => Ok(Standing::Unreachable(error.to_string())),
        (Remote::Absent, _) => Ok(Standing::Serves(None)),
        (Remote::Empty(state) | Remote::Held(state), _) => Ok(Standing::Serves(Some(state))),
    }
}

/// What is refused whatever is found, so that nothing has to be looked at.
pub fn refused_at_sight(asked: Asked, hosting: Hosting) -> Option<Obstacle> {
    match (asked.mode, asked.verb, hosting) {
        (Mode::Steady, _, _) => None,
        (Mode::Bootstrap, Some(verb), _) => Some(Obstacle::BootstrapWithVerb { verb }),
        (Mode::Bootstrap, None, Hosting::Elsewhere) => Some(Obstacle::BootstrapElsewhere),
        (Mode::Bootstrap, None, Hosting::OwnNode) => None,
    }
}

/// A bootstrap whose backend is not there yet.
fn unreachable(observed: &Observation, reason: &str) -> Course {
    let mut settling = Settling::of(observed, None);
    if let Some(marker) = &observed.marker {
        match observed.asked.flags.lost_state {
            LostState::Refuse => {
                return Course::Refuse(Obstacle::SecondState {
                    reason: reason.to_owned(),
                    since: marker.at,
                });
            }
            LostState::Allow => settling.before.push(Preparation::ForgetMarker),
        }
    }
    if let Some(course) = settling.errored(observed) {
        return course;
    }
    match &settling.local {
        Fleet::Damaged(reason) => Course::Refuse(Obstacle::LocalDamaged {
            reason: reason.clone(),
        }),
        Fleet::None | Fleet::Held(_) => settling.run(Work::LocalCycle),
    }
}

fn reachable(observed: &Observation, remote: Option<&State>) -> Course {
    let verb = observed.asked.verb();
    let mut settling = Settling::of(observed, remote);
    if let Some(course) = settling.lock(observed).or_else(|| settling.errored(observed)) {
        return course;
    }
    let finding = finding(&settling, observed.marker.as_ref(), observed.asked.mode);
    let flags = observed.asked.flags;
    let work = steady(verb, observed.hosting);
    match finding {
        Finding::Settled => settling.run(work),
        Finding::Leftover(preparation) => {
            if verb.changes_state() {
                settling.before.push(preparation);
            }
            settling.run(work)
        }
        Finding::Unmigrated if observed.asked.mode == Mode::Bootstrap => settling.run(Work::Migrate),
        Finding::Unmigrated => settling.stop_or_warn(verb, work, Obstacle::Unmigrated),
        Finding::Noteworthy(obstacle) => {
            settling.warnings.push(obstacle);
            settling.run(work)
        }
        Finding::Lost(obstacle) if verb.changes_state() && flags.lost_state == LostState::Allow => {
            settling.warnings.push(obstacle);
            settling.run(work)
        }
        Finding::Lost(obstacle) | Finding::Unsettled(obstacle) => settling.stop_or_warn(verb, work, obstacle),
    }
}

/// How the backend, the working directory and the marker stand to each other.
enum Finding {
    /// The backend has the state, or nobody has one.
    Settled,
    /// An interrupted migration left something to do that loses nothing.
    Leftover(Preparation),
    /// The local state has to move to the backend.
    Unmigrated,
    /// Worth a warning and no more.
    Noteworthy(Obstacle),
    /// The backend lost the state, or a part of it; an apply over it can be allowed by name.
    Lost(Obstacle),
    /// Nothing here can be allowed; a person has to look.
    Unsettled(Obstacle),
}

fn finding(settling: &Settling<'_>, marker: Option<&Marker>, mode: Mode) -> Finding {
    match (&settling.local, settling.remote, marker) {
        (_, None, Some(marker)) => Finding::Lost(Obstacle::LostAfter { since: marker.at }),
        (Fleet::None, None, None) => Finding::Settled,
        (Fleet::Damaged(reason), _, None) => Finding::Unsettled(Obstacle::LocalDamaged {
            reason: reason.clone(),
        }),
        (Fleet::Held(_), None, None) if mode == Mode::Bootstrap => Finding::Unmigrated,
        (Fleet::Held(local), None, None) => Finding::Lost(Obstacle::LostWithLocal {
            resources: local.view().resources(),
        }),
        (local, Some(remote), Some(marker)) => marked(local, remote, marker),
        (Fleet::None, Some(_), None) => Finding::Settled,
        (Fleet::Held(local), Some(remote), None) => match local.relation_to(remote) {
            Relation::Equal | Relation::Older => Finding::Leftover(Preparation::FinishMigration),
            Relation::Newer => Finding::Unmigrated,
            Relation::Unrelated if remote.view().is_empty() => Finding::Unmigrated,
            Relation::Unrelated | Relation::Diverged => Finding::Unsettled(Obstacle::TwoFleets {
                local: local.view().name(),
                remote: remote.view().name(),
            }),
        },
    }
}

/// A state and a marker: the marker's word is checked against what the backend has.
fn marked(local: &Fleet<'_>, remote: &State, marker: &Marker) -> Finding {
    let view = remote.view();
    if view.lineage == marker.lineage && view.serial < marker.serial {
        return Finding::Lost(Obstacle::Regressed {
            found: view.serial,
            known: marker.serial,
            since: marker.at,
        });
    }
    match local {
        Fleet::Held(_) => Finding::Leftover(Preparation::RetireLocal),
        Fleet::Damaged(reason) => Finding::Noteworthy(Obstacle::LocalDamaged {
            reason: reason.clone(),
        }),
        Fleet::None if view.lineage != marker.lineage && !view.is_empty() => {
            Finding::Noteworthy(Obstacle::OtherLineage {
                found: view.lineage.clone(),
                known: marker.lineage.clone(),
            })
        }
        Fleet::None => Finding::Settled,
    }
}

fn steady(verb: Verb, hosting: Hosting) -> Work {
    match (verb, hosting) {
        (Verb::Destroy, Hosting::OwnNode) => Work::DetachThenDestroy,
        _ => Work::Steady(verb),
    }
}

/// The local state as far as decisions care.
enum Fleet<'a> {
    None,
    Held(&'a State),
    Damaged(String),
}

/// What the preparations make of both sides, step by step.
struct Settling<'a> {
    remote: Option<&'a State>,
    local: Fleet<'a>,
    before: Vec<Preparation>,
    warnings: Vec<Obstacle>,
}

impl<'a> Settling<'a> {
    fn of(observed: &'a Observation, remote: Option<&'a State>) -> Settling<'a> {
        let local = match &observed.local {
            Local::None | Local::Zero | Local::Empty(_) => Fleet::None,
            Local::Held(state) => Fleet::Held(state),
            Local::Corrupt { reason } => Fleet::Damaged(reason.clone()),
        };
        Settling {
            remote,
            local,
            before: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn run(self, work: Work) -> Course {
        Course::Run {
            before: self.before,
            work,
            warnings: self.warnings,
        }
    }

    fn stop_or_warn(mut self, verb: Verb, work: Work, obstacle: Obstacle) -> Course {
        if verb.changes_state() {
            return Course::Refuse(obstacle);
        }
        self.warnings.push(obstacle);
        self.run(work)
    }

    /// Settles the lock; a course, if it ends the matter.
    fn lock(&mut self, observed: &Observation) -> Option<Course> {
        let Flags { stale_lock, .. } = observed.asked.flags;
        if !observed.asked.verb().takes_lock() {
            return None;
        }
        match (&observed.lock, stale_lock) {
            (Lock::Unasked | Lock::Free, _) => None,
            (Lock::Abandoned(holder), _) | (Lock::Mine(holder), StaleLock::Release) => {
                self.before.push(Preparation::ReleaseLock(holder.clone()));
                None
            }
            (Lock::Mine(holder), StaleLock::Refuse) => Some(Course::Refuse(Obstacle::LockedByUs {
                holder: holder.to_string(),
            })),
            (Lock::Other(holder), _) => Some(Course::Refuse(Obstacle::Locked {
                holder: holder.to_string(),
            })),
        }
    }

    /// Settles an errored state; a course, if it ends the matter.
    fn errored(&mut self, observed: &'a Observation) -> Option<Course> {
        let verb = observed.asked.verb();
        let (cycle, state) = match &observed.errored {
            Errored::None => return None,
            Errored::Waits { .. } | Errored::Damaged { .. } if !verb.changes_state() => {
                self.warnings.push(Obstacle::ErroredWaits);
                return None;
            }
            Errored::Damaged { cycle, reason } => {
                let obstacle = Obstacle::ErroredDamaged {
                    reason: reason.clone(),
                };
                return Some(Course::SetAside {
                    cycle: *cycle,
                    obstacle,
                });
            }
            // Nobody can say how it stands to a state that nobody can read.
            Errored::Waits {
                cycle: Cycle::Remote, ..
            } if matches!(observed.remote, Remote::Unreachable(_)) => {
                return Some(Course::Refuse(Obstacle::ErroredUnreachable));
            }
            Errored::Waits { cycle, state } => (*cycle, state),
        };
        let destination = match (cycle, &self.local) {
            (Cycle::Remote, _) => self.remote,
            (Cycle::Local, Fleet::Held(local)) => Some(*local),
            (Cycle::Local, Fleet::None | Fleet::Damaged(_)) => None,
        };
        match (
            destination.map(|destination| state.relation_to(destination)),
            cycle,
        ) {
            (None | Some(Relation::Newer), Cycle::Remote) => {
                self.before.push(Preparation::PushErrored);
                self.remote = Some(state);
            }
            (None | Some(Relation::Newer), Cycle::Local) => {
                self.before.push(Preparation::AdoptErrored);
                self.local = Fleet::Held(state);
            }
            (Some(Relation::Equal), _) => self.before.push(Preparation::ArchiveErrored(cycle)),
            (Some(relation @ (Relation::Older | Relation::Diverged | Relation::Unrelated)), _) => {
                let obstacle = Obstacle::ErroredConflicts { relation };
                return Some(Course::SetAside { cycle, obstacle });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
