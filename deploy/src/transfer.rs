//! Storing a state on the backend by our own hand: under the lock, never over what it does not follow from, and read back.
//!
//! `tofu init -migrate-state` gives the state a new lineage and serial 1, after which a stale local copy looks newer;
//! `-force-copy` overwrites a stranger's state and says nothing. So both are avoided.

use crate::lease::{Attempt, Lease, LeaseError};
use crate::lock::Holder;
use crate::state::{Relation, State, StateError};
use crate::store::{Client, Read, StoreError};
use crate::workdir::WorkDir;

/// Over what a state may be stored, besides an absent one and an older one of its lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// A destroyed fleet of any lineage: a new fleet moves in.
    DestroyedFleets,
    /// Nothing else.
    Nothing,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transferred {
    /// The bytes were stored.
    Stored,
    /// The very same was there already: an earlier run got that far.
    WasThere,
}

/// Why a state was not stored.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The lock or the backend.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// Somebody else has the lock.
    #[error("the state is locked by {holder}; wait until they are done, then run again")]
    Locked {
        /// Who.
        holder: Box<Holder>,
    },
    /// What is there does not precede the state.
    #[error(
        "the backend holds {found}, over which {offered} is not stored ({relation:?}); find out who wrote it, then run again"
    )]
    Conflict {
        /// What is there.
        found: String,
        /// What was to be stored.
        offered: String,
        /// How the state to store stands to what is there.
        relation: Relation,
    },
    /// What is there is no state.
    #[error(
        "what the address of the state answers is no state: {reason}; nothing was written over it, check the address"
    )]
    Corrupt {
        /// What is wrong with it.
        reason: StateError,
    },
    /// The backend does not return what it was given.
    #[error(
        "the backend took the state and returns another one ({found}); do not apply, look at the backend's log and disk"
    )]
    NotReadBack {
        /// What it returns.
        found: String,
    },
}

impl From<StoreError> for TransferError {
    fn from(error: StoreError) -> TransferError {
        TransferError::Lease(error.into())
    }
}

/// LOCK, look at the destination, POST the very bytes, read back, UNLOCK.
///
/// Repeating it after any interruption ends in the same state.
pub fn transfer(
    client: &Client,
    workdir: &WorkDir,
    state: &State,
    over: Over,
    operation: &str,
) -> Result<Transferred, TransferError> {
    let lease = match Lease::take(client, workdir, operation)? {
        Attempt::Taken(lease) => lease,
        Attempt::Abandoned(holder) | Attempt::Held(holder) => {
            return Err(TransferError::Locked {
                holder: Box::new(holder),
            });
        }
    };
    let transferred = store(client, &lease, state, over)?;
    lease.release()?;
    Ok(transferred)
}

fn store(
    client: &Client,
    lease: &Lease<'_>,
    state: &State,
    over: Over,
) -> Result<Transferred, TransferError> {
    match client.read()? {
        Read::Absent => {}
        Read::Corrupt(reason) => return Err(TransferError::Corrupt { reason }),
        Read::Held(found) => match state.relation_to(&found) {
            Relation::Equal => return Ok(Transferred::WasThere),
            Relation::Newer => {}
            Relation::Unrelated if over == Over::DestroyedFleets && found.view().is_empty() => {}
            relation @ (Relation::Older | Relation::Diverged | Relation::Unrelated) => {
                let (found, offered) = (found.view().name(), state.view().name());
                return Err(TransferError::Conflict {
                    found,
                    offered,
                    relation,
                });
            }
        },
    }
    let written = client.write(state, lease.info());
    match (written, client.read()?) {
        // A connection that broke after the write says nothing about the write; the read does.
        (Ok(()) | Err(StoreError::CutOff { .. }), Read::Held(found)) if found.same_content(state) => {
            Ok(Transferred::Stored)
        }
        (Err(error), _) => Err(error.into()),
        (Ok(()), Read::Held(found)) => Err(TransferError::NotReadBack {
            found: found.view().name(),
        }),
        (Ok(()), Read::Absent) => Err(TransferError::NotReadBack {
            found: "no state".to_owned(),
        }),
        (Ok(()), Read::Corrupt(reason)) => Err(TransferError::Corrupt { reason }),
    }
}
