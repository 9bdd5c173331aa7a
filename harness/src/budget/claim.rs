//! Who wants or holds how much: what stands in the files of a pool, for other processes and for people.

use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::artifacts::TestName;

/// Who asks: one test of one process. All labs of a test are the same claimant, since they end together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Claimant {
    /// For people. Not unique among containers.
    pid: u32,
    /// Tells processes apart.
    process: u64,
    binary: String,
    test: String,
}

/// What is asked for one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The machine, for people.
    pub name: String,
    /// MiB or processors.
    pub amount: u64,
}

/// The content of a file: one share, wanted or held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) claimant: Claimant,
    pub(super) name: String,
    pub(super) amount: u64,
}

impl Claimant {
    /// This process, in the name of `test`.
    pub fn of(test: &TestName) -> Self {
        static PROCESS: OnceLock<u64> = OnceLock::new();
        Self {
            pid: std::process::id(),
            process: *PROCESS.get_or_init(rand::random),
            binary: test.binary.clone(),
            test: test.test.clone(),
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Claimant {
            pid, binary, test, ..
        } = &self.claimant;
        write!(
            formatter,
            "{} by `{}` of {binary} {test} (process {pid})",
            self.amount, self.name
        )
    }
}
