//! What the transport is to do on one node, as a file: the graph's `local-exec` gets only its path.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provisor_model::node_plan::GrantFile;
use serde::{Deserialize, Serialize};

use crate::entry::NodeEntry;

/// One node's deployment. It holds paths of this deployer and no secret's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The node, its system and its SSH settings.
    pub entry: NodeEntry,
    /// Grants to deliver before the activation.
    pub deliveries: Vec<Delivery>,
    /// Keys of hosts that were trusted on first use; it outlives the run.
    pub known_hosts: PathBuf,
    /// OpenSSH's client.
    pub ssh: PathBuf,
    /// Folder with `nix` and `nix-store`; `None` means `PATH`.
    pub nix: Option<PathBuf>,
    /// How long each part may take.
    pub deadlines: Deadlines,
}

/// The run that asks, and where it wants the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The run's id.
    pub run: String,
    /// Where the [`crate::verdict::NodeReport`] is written.
    pub report: PathBuf,
}

/// One grant on its way to the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The grant's name.
    pub grant: String,
    /// The file at rest that holds the values; it is read by the step that delivers, and nowhere before.
    pub at_rest: PathBuf,
    /// Files on the node.
    pub files: Vec<GrantFile>,
    /// Units that must not go on with an older file.
    pub units: Vec<String>,
}

/// How long each part may take, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// One command on the host, and the time to reach it.
    pub step: u64,
    /// Sending the closure.
    pub copy: u64,
    /// The activation, from its start to its result.
    pub activate: u64,
    /// After a lost connection: how long to try to reach the host again.
    pub reconnect: u64,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines {
            step: 120,
            copy: 3600,
            activate: 1800,
            reconnect: 300,
        }
    }
}

impl Deadlines {
    /// The deadline of one command.
    pub fn step(&self) -> Duration {
        Duration::from_secs(self.step)
    }

    /// The deadline of the copy.
    pub fn copy(&self) -> Duration {
        Duration::from_secs(self.copy)
    }

    /// The deadline of the activation.
    pub fn activate(&self) -> Duration {
        Duration::from_secs(self.activate)
    }

    /// How long to try to reach a lost host.
    pub fn reconnect(&self) -> Duration {
        Duration::from_secs(self.reconnect)
    }
}

/// Why a job could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The file system refused.
    #[error("cannot {action} the job file {path}: {source}; run `provisor tf apply` again")]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The job file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is no job.
    #[error("{path} is not a job of this version: {source}; run `provisor tf apply` again")]
    NotAJob {
        /// The job file.
        path: PathBuf,
        /// What did not fit.
        source: serde_json::Error,
    },
}

impl Job {
    /// Writes the job with mode 0600: temporary name, fsync, rename.
    pub fn write(&self, path: &Path) -> Result<(), JobError> {
        let failed = |source| JobError::File {
            action: "write",
            path: path.to_owned(),
            source,
        };
        let parent = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(failed)?;
        // A named temporary file has mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(parent).map_err(failed)?;
        let text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        file.write_all(&text).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Reads a job.
    pub fn read(path: &Path) -> Result<Job, JobError> {
        let text = std::fs::read(path).map_err(|source| JobError::File {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        serde_json::from_slice(&text).map_err(|source| JobError::NotAJob {
            path: path.to_owned(),
            source,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::entry::HostKey;

    pub(in crate::transport) fn entry() -> NodeEntry {
        NodeEntry {
            name: "forge".into(),
            system: "/nix/store/00000000000000000000000000000000-system-forge".into(),
            address: "192.0.2.20".into(),
            port: 22,
            user: "root".into(),
            host_key: HostKey::Pinned("ssh-ed25519 AAAAkey".into()),
            ssh_options: vec![],
            grants: BTreeMap::new(),
            identity: None,
        }
    }

    pub(in crate::transport) fn job(directory: &Path) -> Job {
        Job {
            entry: entry(),
            deliveries: vec![],
            known_hosts: directory.join("known_hosts"),
            ssh: "ssh".into(),
            nix: None,
            deadlines: Deadlines::default(),
        }
    }

    pub(in crate::transport) fn order(directory: &Path) -> Order {
        Order {
            run: "run-1".into(),
            report: directory.join("report.json"),
        }
    }

    #[test]
    fn a_job_is_read_back_as_it_was_written_and_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs/forge.json");
        let job = job(directory.path());
        job.write(&path).unwrap();
        assert_eq!(Job::read(&path).unwrap(), job);
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn a_file_that_is_no_job_says_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("job.json");
        std::fs::write(&path, "{}").unwrap();
        let message = Job::read(&path).unwrap_err().to_string();
        assert!(message.ends_with("run `provisor tf apply` again"), "{message}");
    }
}
