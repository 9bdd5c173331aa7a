//! What a run says while it works, as data; the program renders it for a terminal, a log or a machine.

use serde::Serialize;

use crate::verdict::NodeReport;

/// A phase of a run, in the order in which a bootstrap goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Fleet files are read, checked and resolved.
    Resolve,
    /// Grants that are missing are made.
    Grants,
    /// Node plans become closures.
    Build,
    /// The remote, the working directory, the marker and the lock are looked at.
    Observe,
    /// A bootstrap's first cycle: an apply against local state.
    LocalCycle,
    /// The backend that the first cycle deployed starts to serve.
    WaitForBackend,
    /// The state moves to the backend.
    Migrate,
    /// An apply against the backend.
    SteadyCycle,
    /// A plan against the backend.
    Plan,
}

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// A phase begins.
    PhaseStarted {
        /// Which.
        phase: Phase,
        /// What it works on, for a person.
        detail: String,
    },
    /// A phase ended well.
    PhaseFinished {
        /// Which.
        phase: Phase,
        /// What it found or did, for a person.
        detail: String,
    },
    /// Work on a node begins or goes on.
    NodeStep {
        /// Deployment name.
        node: String,
        /// What is being done, for a person.
        detail: String,
    },
    /// A node has its outcome.
    NodeFinished(NodeReport),
    /// Something worth a line, such as which program is used and why.
    Note {
        /// The line.
        message: String,
    },
    /// Something to look at, with what to do.
    Warning {
        /// The line.
        message: String,
    },
}

/// Where events go.
pub trait Progress: Send + Sync {
    /// Takes one event; must not fail and must not block for long.
    fn event(&self, event: Event);
}
