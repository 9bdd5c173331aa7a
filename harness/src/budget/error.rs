//! What can go wrong with a budget.

use std::io;
use std::path::PathBuf;

use super::size::MEMORY_VARIABLE;

/// Why there is no share of the budget.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// A variable does not say a size.
    #[error("{variable}=`{value}` is no size: set it to a whole number above 0, or unset it")]
    Setting {
        /// The variable.
        variable: &'static str,
        /// What it holds.
        value: String,
    },
    /// The machine does not tell its memory.
    #[error(
        "cannot read the machine's memory from /proc/meminfo: set {MEMORY_VARIABLE} to the MiB that tests may use"
    )]
    Unmeasured,
    /// More than there will ever be.
    #[error(
        "{wanted} MiB of memory are needed{}, and tests on this machine may use {total} together: start fewer machines in one test, give \
         them less memory, or set {MEMORY_VARIABLE} to more MiB if the machine has them", beside(*.own)
    )]
    TooLarge {
        /// MiB that are wanted now.
        wanted: u64,
        /// MiB that the same test holds.
        own: u64,
        /// MiB there are.
        total: u64,
    },
    /// Each test that holds memory waits for more.
    #[error(
        "{wanted} MiB of memory are needed, {free} of {total} are free, and all tests that hold some wait for more: start all machines of \
         a test together, or set {MEMORY_VARIABLE} to more MiB if the machine has them; held: {}", .holders.join("; ")
    )]
    Deadlock {
        /// MiB that are wanted.
        wanted: u64,
        /// MiB that are free.
        free: u64,
        /// MiB there are.
        total: u64,
        /// Who holds how much.
        holders: Vec<String>,
    },
    /// A file of the budget cannot be read or written.
    #[error(
        "cannot use {}: {source}; check the folder's permissions and free space, or set PROVISOR_CACHE to another", .path.display()
    )]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No thread to wait in.
    #[error("cannot start a thread to wait for memory: is the limit of processes reached?")]
    Thread {
        /// Why.
        #[source]
        source: io::Error,
    },
}

fn beside(own: u64) -> String {
    match own {
        0 => String::new(),
        own => format!(" beside the {own} MiB that this test holds"),
    }
}
