//! The tests of the workspace, as nextest lists them.
//!
//! The binaries are built (or found built) once; each profile is then asked about those same binaries, without
//! cargo. Called from a test this needs no lock that the caller holds: cargo and nextest both release theirs before
//! they run the first test. After `cargo nextest run --workspace` nothing is built again; after a run of one package the
//! rest of the workspace is built first, and after a run with another cargo profile all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs, io};

use serde::Deserialize;

/// The built test binaries of a workspace.
#[derive(Debug)]
pub struct TestBinaries {
    root: PathBuf,
    folder: tempfile::TempDir,
}

/// A failure to list tests.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The list could not be kept.
    #[error("no temporary file for the list of tests: {0}; free some disk space")]
    Io(#[from] io::Error),
    /// Cargo did not start.
    #[error("cargo did not start: {0}; is Rust installed?")]
    Start(io::Error),
    /// Nextest failed: a build error, an unknown profile, a filter that does not parse.
    #[error("`cargo nextest {arguments}` failed; correct what it says:\n{stderr}")]
    Failed {
        /// What it was asked.
        arguments: String,
        /// What it said.
        stderr: String,
    },
    /// Nextest printed something else than a list.
    #[error("nextest printed no list of tests: {0}; is it as new as .config/nextest.toml asks?")]
    Json(#[from] serde_json::Error),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawList {
    rust_suites: BTreeMap<String, RawBinary>,
}

#[derive(Deserialize)]
struct RawBinary {
    testcases: BTreeMap<String, RawTest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawTest {
    filter_match: RawMatch,
}

#[derive(Deserialize)]
struct RawMatch {
    status: String,
}

impl TestBinaries {
    /// Builds what is not built of the workspace at `root`, offline and with its lock file as it stands.
    ///
    /// # Errors
    ///
    /// Cargo or nextest is missing, or the workspace does not build.
    pub fn build(root: &Path) -> Result<Self, ListError> {
        let folder = tempfile::tempdir()?;
        let arguments = [
            "--workspace",
            "--offline",
            "--locked",
            "--list-type",
            "binaries-only",
        ];
        fs::write(
            folder.path().join(METADATA),
            nextest_list(root, arguments)?.stdout,
        )?;
        Ok(Self {
            root: root.to_owned(),
            folder,
        })
    }

    /// The tests a profile selects, each as `<binary id>::<test>`.
    ///
    /// # Errors
    ///
    /// There is no such profile, or its filter does not parse.
    pub fn selected_by(&self, profile: &str) -> Result<BTreeSet<String>, ListError> {
        let metadata = self.folder.path().join(METADATA);
        let arguments = [
            OsStr::new("--binaries-metadata"),
            metadata.as_os_str(),
            OsStr::new("--profile"),
            OsStr::new(profile),
        ];
        let list: RawList = serde_json::from_slice(&nextest_list(&self.root, arguments)?.stdout)?;
        let tests = list
            .rust_suites
            .into_iter()
            .flat_map(|(binary, RawBinary { testcases })| {
                let selected = testcases
                    .into_iter()
                    .filter(|(_, test)| test.filter_match.status == "matches");
                selected.map(move |(name, _)| format!("{binary}::{name}"))
            });
        Ok(tests.collect())
    }
}

const METADATA: &str = "binaries.json";

fn nextest_list<A: AsRef<OsStr>, const N: usize>(
    root: &Path,
    arguments: [A; N],
) -> Result<Output, ListError> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(root)
        .args(["nextest", "list", "--message-format", "json", "--color", "never"]);
    command.args(arguments);
    // A test runs with the variables of the nextest that started it, its profile among them.
    for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"NEXTEST")) {
        command.env_remove(name);
    }
    let output = command.output().map_err(ListError::Start)?;
    if output.status.success() {
        return Ok(output);
    }
    let shown: Vec<_> = command.get_args().skip(1).map(OsStr::to_string_lossy).collect();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(ListError::Failed {
        arguments: shown.join(" "),
        stderr,
    })
}
