//! What stands in the way of a run. Each says what was found, and ends in what to do.

use jiff::Timestamp;

use crate::observe::Verb;
use crate::state::Relation;

/// A reason to stop a verb that changes the state, and to warn with one that only looks.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Obstacle {
    /// TF FR-009.
    #[error(
        "--bootstrap brings up the backend and applies, so it takes no verb (`{verb}` was given); leave out one of both"
    )]
    BootstrapWithVerb {
        /// The verb that was given.
        verb: Verb,
    },
    /// Nobody marked the graph as holding its own backend.
    #[error(
        "--bootstrap needs a graph that holds its own state backend, and no group of this fleet names one; set `backend` on the group whose node runs it, or run without --bootstrap against the backend you have"
    )]
    BootstrapElsewhere,
    /// TF edge case: the backend is unreachable outside the bootstrap mode.
    #[error("{reason}\n{advice}")]
    Unreachable {
        /// What the client says.
        reason: String,
        /// What to do.
        advice: Advice,
    },
    /// The backend had the state and is gone: a bootstrap would start a second one.
    #[error(
        "{reason}\nthis fleet's state is on that backend since {since:.0}, so a bootstrap would start a second state; bring the backend back, or give up its state with --allow-lost-state"
    )]
    SecondState {
        /// What the client says.
        reason: String,
        /// When it was last known to have the state.
        since: Timestamp,
    },
    /// The backend refuses or is sick; the text is the client's.
    #[error("{text}")]
    Backend {
        /// What the client says.
        text: String,
    },
    /// Something that is no state answers at the address.
    #[error(
        "what the address of the state answers is no state: {reason}\nnothing is written over it; check the address (is it a login page, a proxy, another service?), or restore the state from a version the backend keeps"
    )]
    Corrupt {
        /// What is wrong with it.
        reason: String,
    },
    /// TF FR-009, after the backend was known to have the state.
    #[error(
        "the backend has no state at this address, and had it on {since:.0}: it lost the state, or user or password are those of another state\ncheck TF_HTTP_USERNAME and TF_HTTP_PASSWORD, or restore the state on the backend; --allow-lost-state starts anew and deploys every node"
    )]
    LostAfter {
        /// When it was last known to have the state.
        since: Timestamp,
    },
    /// TF FR-009, while the working directory has a fleet.
    #[error(
        "the backend has no state at this address, but the working directory holds the state of a fleet ({resources})\nfinish an interrupted bootstrap with --bootstrap, or check TF_HTTP_ADDRESS and the credentials; --allow-lost-state starts anew and deploys every node"
    )]
    LostWithLocal {
        /// Resources in the local state.
        resources: String,
    },
    /// The backend went back in time.
    #[error(
        "the backend has serial {found} of the state, and had serial {known} on {since:.0}: it lost what came between\nrestore the newer version on the backend; --allow-lost-state goes on from the older one"
    )]
    Regressed {
        /// Serial on the backend.
        found: u64,
        /// Serial it was known to have.
        known: u64,
        /// When that was.
        since: Timestamp,
    },
    /// A state of another lineage is there.
    #[error(
        "the backend has a state of lineage {found}, and the last run here saw lineage {known}: another deployer started anew\nmake sure that this is wanted"
    )]
    OtherLineage {
        /// Lineage on the backend.
        found: String,
        /// Lineage it was known to have.
        known: String,
    },
    /// An interrupted bootstrap.
    #[error(
        "the working directory holds a state that did not reach the backend yet\nrun with --bootstrap to finish the migration"
    )]
    Unmigrated,
    /// Both sides hold fleets, and neither follows from the other.
    #[error(
        "the working directory and the backend hold two different fleets ({local} and {remote}); nothing is written over either\nmove terraform.tfstate out of the working directory if the backend's is right, or give the local fleet an address of its own"
    )]
    TwoFleets {
        /// Lineage and serial in the working directory.
        local: String,
        /// Lineage and serial on the backend.
        remote: String,
    },
    /// The local state is no state.
    #[error(
        "terraform.tfstate in the working directory is damaged: {reason}\nthe state of before is beside it as terraform.tfstate.backup: copy it over the damaged file, or move both away to deploy every node again"
    )]
    LocalDamaged {
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody else works.
    #[error("the state is locked by {holder}\nwait until they are done, then run again")]
    Locked {
        /// Who, what for, since when.
        holder: String,
    },
    /// A run of ours died, or runs elsewhere on this host.
    #[error(
        "the state is locked by {holder}: that is you on this host\nif no run of yours is alive, release it with --reclaim-lock"
    )]
    LockedByUs {
        /// Who, what for, since when.
        holder: String,
    },
    /// An errored state waits.
    #[error(
        "the last apply could not store its state, which waits in the working directory (errored.tfstate); what you see is older\nrun an apply: it stores that state first"
    )]
    ErroredWaits,
    /// An errored state waits, and the backend is not there.
    #[error(
        "the last apply could not store its state, which waits in the working directory (errored.tfstate), and the backend cannot be reached\nbring the backend back and run without --bootstrap"
    )]
    ErroredUnreachable,
    /// The errored state follows from no state that is there.
    #[error("the errored state of the last apply is {} the state it was for, so it is not stored over it\nit is kept in the salvage folder; compare both, and run again to go on from the stored one", relation_words(*.relation))]
    ErroredConflicts {
        /// How the errored state stands to its destination.
        relation: Relation,
    },
    /// The errored state is none.
    #[error(
        "the errored state of the last apply is damaged: {reason}\nit is kept in the salvage folder; run again to go on from the stored state, which deploys again what it does not know"
    )]
    ErroredDamaged {
        /// What is wrong with it.
        reason: String,
    },
}

/// What to do about a backend that cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It may never have been there.
    Bootstrap,
    /// It was there, or is not ours to bring up.
    BringBack,
}

impl std::fmt::Display for Advice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Advice::Bootstrap => {
                "if this fleet's backend was never deployed, run with --bootstrap; else bring it back, or correct TF_HTTP_ADDRESS"
            }
            Advice::BringBack => "bring the backend back, or correct TF_HTTP_ADDRESS, then run again",
        })
    }
}

fn relation_words(relation: Relation) -> &'static str {
    match relation {
        Relation::Newer => "newer than",
        Relation::Older => "older than",
        Relation::Equal => "equal to",
        Relation::Diverged => "of the same serial as, but different from,",
        Relation::Unrelated => "unrelated to",
    }
}
