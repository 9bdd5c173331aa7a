//! The migration marker: a local file that means that the backend holds the state.
//!
//! It is needed because the states alone cannot tell: a backend that lost a state answers like one that never had it, and
//! some servers answer a mistyped password in the same way.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What was last known to be on the backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Lineage of the state there.
    pub lineage: String,
    /// Its serial, when it was looked at.
    pub serial: u64,
    /// When that was.
    pub at: Timestamp,
    /// How the state came there.
    pub cause: Cause,
}

/// How the state came to the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A bootstrap migrated it.
    Migrated,
    /// An apply against the backend wrote it.
    Applied,
}
