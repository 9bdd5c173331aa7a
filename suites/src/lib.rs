//! The registry of Provisor's test suites.
//!
//! A suite is a name for a set of tests: a nextest filterset over tests that stand beside their code.
//! `suites/suites.toml` is the one list. From it come `.config/` (one nextest profile a suite) and
//! `.forgejo/workflows/` (one workflow a suite); `cargo run -p provisor-suites -- generate` writes both.
//! `suites/requirements.toml` says which tests show which requirement of `suites/ids.toml`.
//!
//! `docs/suites.md` says how to run a suite, how to add one, and how a requirement is mapped.

pub mod generated;
pub mod name;
pub mod profiles;
pub mod registry;
pub mod requirements;
pub mod workflows;
pub mod workspace_tests;

use std::path::{Path, PathBuf};

/// The folder of the workspace this program was built in.
///
/// # Panics
///
/// Never: the package stands one folder below the workspace.
#[must_use]
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package stands in the workspace")
        .to_owned()
}
