//! What a run finds before it decides: the backend, the working directory, the marker, the lock, and what was asked.

use serde::Serialize;

use crate::lease::{Attempt, Lease, LeaseError};
use crate::lock::{self, Holder};
use crate::marker::Marker;
use crate::state::State;
use crate::store::{Client, Read, StoreError};
use crate::workdir::{Cycle, WorkDir, WorkDirError, read_if_there};

/// All that [`decide`](crate::decide::decide) looks at.
#[derive(Clone, Debug)]
pub struct Observation {
    /// What is at the state address.
    pub remote: Remote,
    /// The state in the working directory.
    pub local: Local,
    /// A state that OpenTofu could not store.
    pub errored: Errored,
    /// Whether the backend is known to hold the state.
    pub marker: Option<Marker>,
    /// The backend's lock.
    pub lock: Lock,
    /// Who runs the backend.
    pub hosting: Hosting,
    /// What was asked.
    pub asked: Asked,
}

/// What is at the state address.
#[derive(Clone, Debug)]
pub enum Remote {
    /// Nobody listens.
    Unreachable(StoreError),
    /// No state: never written, or lost.
    Absent,
    /// A state without resources: a destroyed fleet.
    Empty(State),
    /// A fleet's state.
    Held(State),
    /// An answer that is no state.
    Corrupt {
        /// What is wrong with it.
        reason: String,
    },
    /// The credentials are refused.
    Denied(StoreError),
    /// It is there and does not serve.
    Failing(StoreError),
}

/// The state in the working directory.
#[derive(Clone, Debug)]
pub enum Local {
    /// No file.
    None,
    /// A file of 0 bytes: OpenTofu makes it before it has anything to store.
    Zero,
    /// A state without resources.
    Empty(State),
    /// A fleet's state.
    Held(State),
    /// Something else.
    Corrupt {
        /// What is wrong with it.
        reason: String,
    },
}

/// A state that OpenTofu could not store.
#[derive(Clone, Debug)]
pub enum Errored {
    /// There is none.
    None,
    /// It waits where OpenTofu ran.
    Waits {
        /// In which folder.
        cycle: Cycle,
        /// The state.
        state: State,
    },
    /// A file that is no state.
    Damaged {
        /// In which folder.
        cycle: Cycle,
        /// What is wrong with it.
        reason: String,
    },
}

/// The backend's lock, which can only be learned by trying to take it.
#[derive(Clone, Debug)]
pub enum Lock {
    /// Not asked: the verb takes no lock, or nobody could answer.
    Unasked,
    /// Nobody has it.
    Free,
    /// A dead run of this working directory has it; its record proves that.
    Abandoned(Holder),
    /// This user on this host has it, and no run of this working directory is alive.
    Mine(Holder),
    /// Somebody else, or somebody unknown.
    Other(Holder),
}

/// Who runs the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosting {
    /// A node of this very graph (TF FR-007).
    OwnNode,
    /// Somebody else.
    Elsewhere,
}

/// What was asked of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Whether a bootstrap was asked for.
    pub mode: Mode,
    /// The verb, if one was named; without one a run applies.
    pub verb: Option<Verb>,
    /// What is allowed by name.
    pub flags: Flags,
}

/// How a run treats a backend that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The backend holds the state.
    #[default]
    Steady,
    /// Bring up the graph's own backend (`--bootstrap`).
    Bootstrap,
}

/// What to do with the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Deploy what changed.
    Apply,
    /// Say what an apply would change.
    Plan,
    /// Remove the resources from the state; hosts keep their last configuration.
    Destroy,
    /// List the resources.
    State,
    /// Print the outputs.
    Output,
    /// Read the state anew.
    Refresh,
    /// Deploy nodes that did not change.
    Redeploy,
    /// Show who holds the lock.
    Lock,
    /// Release a lock of ours.
    Unlock,
}

/// What is allowed by name; the default refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--allow-lost-state`.
    pub lost_state: LostState,
    /// `--reclaim-lock`.
    pub stale_lock: StaleLock,
}

/// Whether an apply may start anew over a state that the backend lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostState {
    /// It stops.
    #[default]
    Refuse,
    /// It starts a new state.
    Allow,
}

/// Whether a lock that this user holds from this host may be released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaleLock {
    /// It stops.
    #[default]
    Refuse,
    /// It is released first.
    Release,
}

impl Verb {
    /// Whether it writes to the state, so that nothing may be unsettled about it.
    pub fn changes_state(self) -> bool {
        match self {
            Verb::Apply | Verb::Destroy | Verb::Refresh | Verb::Redeploy => true,
            Verb::Plan | Verb::State | Verb::Output | Verb::Lock | Verb::Unlock => false,
        }
    }

    /// Whether it runs under the backend's lock.
    pub fn takes_lock(self) -> bool {
        self.changes_state() || self == Verb::Plan
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Verb::Apply => "apply",
            Verb::Plan => "plan",
            Verb::Destroy => "destroy",
            Verb::State => "state",
            Verb::Output => "output",
            Verb::Refresh => "refresh",
            Verb::Redeploy => "redeploy",
            Verb::Lock => "lock",
            Verb::Unlock => "unlock",
        })
    }
}

impl Asked {
    /// The verb, apply when none was named.
    pub fn verb(&self) -> Verb {
        self.verb.unwrap_or(Verb::Apply)
    }
}

/// Looks at everything. Only the lock is touched: taken and given back.
pub fn observe(
    client: &Client,
    workdir: &WorkDir,
    hosting: Hosting,
    asked: Asked,
) -> Result<Observation, LeaseError> {
    let remote = remote(client.read());
    let answers = matches!(remote, Remote::Absent | Remote::Empty(_) | Remote::Held(_));
    let lock = if answers && asked.verb().takes_lock() {
        probe(client, workdir)?
    } else {
        Lock::Unasked
    };
    Ok(Observation {
        remote,
        local: local(workdir)?,
        errored: errored(workdir)?,
        marker: workdir.read_marker()?,
        lock,
        hosting,
        asked,
    })
}

/// What an answer to GET says about the backend.
pub fn remote(answer: Result<Read, StoreError>) -> Remote {
    match answer {
        Ok(Read::Absent) => Remote::Absent,
        Ok(Read::Held(state)) if state.view().is_empty() => Remote::Empty(state),
        Ok(Read::Held(state)) => Remote::Held(state),
        Ok(Read::Corrupt(error)) => Remote::Corrupt {
            reason: error.to_string(),
        },
        Err(error @ StoreError::Unreachable { .. }) => Remote::Unreachable(error),
        Err(error @ StoreError::Denied { .. }) => Remote::Denied(error),
        Err(error) => Remote::Failing(error),
    }
}

/// The state in the working directory.
pub fn local(workdir: &WorkDir) -> Result<Local, WorkDirError> {
    Ok(match read_if_there(&workdir.state())? {
        None => Local::None,
        Some(bytes) if bytes.is_empty() => Local::Zero,
        Some(bytes) => match State::parse(bytes) {
            Ok(state) if state.view().is_empty() => Local::Empty(state),
            Ok(state) => Local::Held(state),
            Err(error) => Local::Corrupt {
                reason: error.to_string(),
            },
        },
    })
}

/// A state that OpenTofu could not store; that of the remote cycle first, since it is the later one.
pub fn errored(workdir: &WorkDir) -> Result<Errored, WorkDirError> {
    for cycle in [Cycle::Remote, Cycle::Local] {
        if let Some(bytes) = read_if_there(&workdir.errored(cycle))? {
            return Ok(match State::parse(bytes) {
                Ok(state) => Errored::Waits { cycle, state },
                Err(error) => Errored::Damaged {
                    cycle,
                    reason: error.to_string(),
                },
            });
        }
    }
    Ok(Errored::None)
}

fn probe(client: &Client, workdir: &WorkDir) -> Result<Lock, LeaseError> {
    Ok(match Lease::take(client, workdir, "lock probe")? {
        Attempt::Taken(lease) => {
            lease.release()?;
            Lock::Free
        }
        Attempt::Abandoned(holder) => Lock::Abandoned(holder),
        Attempt::Held(holder) => match &holder.info {
            Some(info) if info.who == lock::who() => Lock::Mine(holder),
            _ => Lock::Other(holder),
        },
    })
}
