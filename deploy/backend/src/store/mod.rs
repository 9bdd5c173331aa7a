//! Where states, their versions and their locks are kept.
//!
//! [`Store`] is the whole contract; `store/conformance.rs` holds its claims, and each implementation runs them all.

#[cfg(test)]
mod conformance;
mod sqlite;

use crate::state::{Claim, Document, Lock, Refusal, Release, StateKey, Summary};

pub use sqlite::{KeepVersions, SqliteError, SqliteStore};

/// Keeps states, their versions and their locks.
///
/// Each method is one transaction: it happens whole or not at all, and what it answered survives a loss of power.
/// Methods block; call them where blocking is allowed.
pub trait Store: Send + Sync + 'static {
    /// The bytes of the state, exactly as they were written; `None` when there is none.
    fn read(&self, key: &StateKey) -> Result<Option<Vec<u8>>, StoreError>;

    /// Makes a document the state, unless a lock or [`crate::state::admit`] forbids it.
    fn write(&self, key: &StateKey, write: &Write<'_>) -> Result<Written, StoreError>;

    /// Takes the state away, unless a lock forbids it. Its versions stay.
    fn delete(&self, key: &StateKey, claim: &Claim) -> Result<Deleted, StoreError>;

    /// Takes the lock. Taking it again with the same ID succeeds and changes nothing.
    fn lock(&self, key: &StateKey, lock: &Lock) -> Result<Locked, StoreError>;

    /// Releases the lock.
    fn unlock(&self, key: &StateKey, release: &Release) -> Result<Unlocked, StoreError>;

    /// What is known of each version that is kept, oldest first.
    fn versions(&self, key: &StateKey) -> Result<Vec<Version>, StoreError>;

    /// Makes the bytes of an old version the state, as a new version. Serials are not compared: going back is what is
    /// asked for.
    fn restore(&self, key: &StateKey, version: u64, author: &str) -> Result<Restored, StoreError>;

    /// Counts what is stored. It reads from the store itself, so it also shows that the store works.
    fn totals(&self) -> Result<Totals, StoreError>;

    /// Looks for damage in everything that is stored, and says a line about each; empty when all is well.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}

/// A write, as a client asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// What becomes the state.
    pub document: &'a Document,
    /// The lock that the client says it holds.
    pub claim: &'a Claim,
    /// Name of the user, kept with the version.
    pub author: &'a str,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is the state now.
    Stored {
        /// Number of the new version.
        version: u64,
    },
    /// It was the state already.
    AlreadyStored,
    /// Somebody else holds the lock.
    Held(Lock),
    /// It must not replace what is stored.
    Refused(Refusal),
}

/// What became of a DELETE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// There is no state now.
    Gone,
    /// Somebody else holds the lock.
    Held(Lock),
}

/// What became of a LOCK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The lock is the caller's.
    Taken,
    /// Somebody else holds it.
    Held(Lock),
}

/// What became of an UNLOCK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlocked {
    /// The lock is free now.
    Released,
    /// It was free: a client repeats a request whose answer it lost.
    WasFree,
    /// Somebody else holds it.
    Held(Lock),
}

/// What became of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The old bytes are the state now.
    Stored {
        /// Number of the new version.
        version: u64,
    },
    /// The version is the state already.
    AlreadyCurrent,
    /// Somebody holds the lock.
    Held(Lock),
    /// That version is not kept.
    NoSuchVersion,
}

/// What is known of one version of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Counts from 1 for each key, and is never used twice.
    pub number: u64,
    /// Lineage, serial and content.
    pub summary: Summary,
    /// Length in bytes.
    pub bytes: u64,
    /// Name of the user who wrote it.
    pub author: String,
    /// When, in RFC 3339 and UTC, to the second.
    pub stored_at: String,
    /// Whether it is the state.
    pub standing: Standing,
}

/// Whether a version is the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the state.
    Current,
    /// Another one is, or none.
    Past,
}

/// How much is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Keys with a state.
    pub states: u64,
    /// Versions, of all keys.
    pub versions: u64,
    /// Locks that are held.
    pub locks: u64,
}

/// Why a store could not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process keeps the store busy.
    #[error("the database is busy; try again")]
    Busy,
    /// The disk is full, or the database may grow no more.
    #[error("the database cannot grow: the disk is full; free some space")]
    Full,
    /// What is stored is damaged.
    #[error("what is stored for {key} is damaged ({reason}); run `provisor-backend check`")]
    Damaged {
        /// Whose.
        key: StateKey,
        /// How.
        reason: String,
    },
    /// The database refused.
    #[error("the database failed ({reason}); run `provisor-backend check`")]
    Failed {
        /// What it says.
        reason: String,
    },
}
