//! The typed outcome for one node, and for a run.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What became of one node in one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// The closure was activated and the activation reported success.
    Deployed,
    /// Nothing was asked of the host.
    Unchanged,
    /// Activated, but units failed (`switch-to-configuration` exit 4).
    Degraded {
        /// Failed units, sorted.
        units: Vec<String>,
    },
    /// Activated; a reboot is needed to finish (exit 100).
    Reboot,
    /// A step failed and its code is known.
    Failed {
        /// The step that failed.
        step: Step,
        /// Exit code, where there was one.
        code: Option<i32>,
        /// What happened and what to do.
        message: String,
    },
    /// The connection was lost and the host could not be asked what happened.
    Unknown {
        /// What is known, and what to do.
        message: String,
    },
    /// Dropped from the graph by the submission.
    Off,
}

/// A step of the transport, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Reaching the host over SSH.
    Connect,
    /// Copying the closure.
    Copy,
    /// Proving that the closure arrived whole.
    VerifyCopy,
    /// Writing the grants' secret files.
    Deliver,
    /// `switch-to-configuration check`.
    Check,
    /// Setting the system profile.
    Profile,
    /// `switch-to-configuration switch` in a unit of its own.
    Activate,
}

/// What the transport writes for one node; it is bound to a run and a store path, so that a stale file is never
/// taken for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Deployment name.
    pub node: String,
    /// The run that asked for it.
    pub run: String,
    /// Store path that was to be activated.
    pub system: PathBuf,
    /// The outcome.
    pub verdict: Verdict,
    /// Bytes of store paths sent to the host.
    pub copied_bytes: u64,
    /// Milliseconds from start to outcome.
    pub milliseconds: u64,
}

impl NodeReport {
    /// Writes the report as JSON: temporary name, fsync, rename.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent)?;
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Reads a report; `None` when the file is absent or belongs to another run or store path.
    pub fn read(path: &Path, run: &str, system: &Path) -> std::io::Result<Option<NodeReport>> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let report: NodeReport = serde_json::from_slice(&text)?;
        Ok((report.run == run && report.system == system).then_some(report))
    }
}
