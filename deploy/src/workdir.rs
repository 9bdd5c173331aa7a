//! The working directory of one state key: what a deployer keeps between runs, and the lock that keeps its runs apart.
//!
//! ```text
//! <state home>/<state key>/
//!   lock                 flock, held for a run (and by OpenTofu while it runs); its text says by whom
//!   address              the state address it belongs to
//!   marker.json          the backend holds the state
//!   lease.json           the backend lock that a run of ours took last and has not given back
//!   terraform.tfstate    state of a bootstrap's local cycle, until it is migrated
//!   local/ remote/       where OpenTofu runs, one folder for each kind of backend: no `init` ever migrates
//!   salvage/             errored states, dated
//!   runs/<run>/          logs and node reports
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};

use crate::address::StateAddress;
use crate::lock;
use crate::marker::Marker;

const MARKER_FILE: &str = "marker.json";
/// Name of the local state file.
pub const STATE_FILE: &str = "terraform.tfstate";
/// Name of what OpenTofu leaves where it ran when it could not store the state.
pub const ERRORED_FILE: &str = "errored.tfstate";
/// Runs whose logs are kept.
const KEPT_RUNS: usize = 20;

/// An open working directory; no other run has it.
#[derive(Debug)]
pub struct WorkDir {
    root: PathBuf,
    lock: Flock<File>,
}

/// Which of the two folders OpenTofu runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycle {
    /// State in the working directory.
    Local,
    /// State on the backend.
    Remote,
}

/// Why a working directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkDirError {
    /// Another run of the same state key is alive.
    #[error("another run for this state is alive ({who}); wait for it to end, then run again")]
    Busy {
        /// What it wrote into the lock file.
        who: String,
    },
    /// The directory belongs to another address.
    #[error(
        "{path} belongs to the state address {found}, not to {wanted}; move the directory away, or give the address it belongs to"
    )]
    OtherAddress {
        /// The directory.
        path: PathBuf,
        /// Address recorded in it.
        found: String,
        /// Address of this run.
        wanted: String,
    },
    /// The marker does not parse. Taking it for absent could start a second fleet.
    #[error(
        "{path} is damaged ({reason}); if the backend at this address holds the fleet's state, delete the file and run again"
    )]
    MarkerDamaged {
        /// The marker.
        path: PathBuf,
        /// What the parser says.
        reason: String,
    },
    /// The system refuses.
    #[error("{path}: {source}; make sure that the directory can be written and the disk is not full")]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl WorkDir {
    /// Opens the directory of `address` below `state_home`, makes it where it is missing, and takes its lock.
    pub fn open(state_home: &Path, address: &StateAddress, now: Timestamp) -> Result<WorkDir, WorkDirError> {
        let root = state_home.join(address.key());
        make_dir(&root)?;
        let path = root.join("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let mut lock = match Flock::lock(file.map_err(at(&path))?, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((mut file, nix::errno::Errno::EWOULDBLOCK)) => {
                let mut who = String::new();
                file.read_to_string(&mut who).map_err(at(&path))?;
                return Err(WorkDirError::Busy {
                    who: who.trim().to_owned(),
                });
            }
            Err((_, error)) => return Err(at(&path)(error.into())),
        };
        let who = format!(
            "{}, process {}, since {now:.0}\n",
            lock::who(),
            std::process::id()
        );
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(who.as_bytes()))
            .map_err(at(&path))?;
        let workdir = WorkDir { root, lock };
        workdir.check_address(address)?;
        for cycle in [Cycle::Local, Cycle::Remote] {
            make_dir(&workdir.folder(cycle))?;
        }
        Ok(workdir)
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder OpenTofu runs in.
    pub fn folder(&self, cycle: Cycle) -> PathBuf {
        self.root.join(match cycle {
            Cycle::Local => "local",
            Cycle::Remote => "remote",
        })
    }

    /// The local state.
    pub fn state(&self) -> PathBuf {
        self.root.join(STATE_FILE)
    }

    /// What OpenTofu left in the folder of `cycle` when it could not store the state.
    pub fn errored(&self, cycle: Cycle) -> PathBuf {
        self.folder(cycle).join(ERRORED_FILE)
    }

    /// The record of a backend lock of ours.
    pub fn lease(&self) -> PathBuf {
        self.root.join("lease.json")
    }

    /// The migration marker.
    pub fn marker(&self) -> PathBuf {
        self.root.join(MARKER_FILE)
    }

    /// Makes and returns the folder of a run, and drops the oldest of more than twenty.
    pub fn run(&self, run: &str) -> Result<PathBuf, WorkDirError> {
        let runs = self.root.join("runs");
        let folder = runs.join(run);
        make_dir(&folder)?;
        let entries = std::fs::read_dir(&runs)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .map_err(at(&runs))?;
        let mut names: Vec<PathBuf> = entries
            .into_iter()
            .map(|entry| entry.path())
            .filter(|path| *path != folder)
            .collect();
        names.sort();
        let surplus = names.len().saturating_sub(KEPT_RUNS - 1);
        for old in &names[..surplus] {
            std::fs::remove_dir_all(old).map_err(at(old))?;
        }
        Ok(folder)
    }

    /// The lock as a second handle: given to a child as its standard input, it stays locked while the child lives, even
    /// when this process dies first.
    pub fn shared_lock(&self) -> Result<File, WorkDirError> {
        self.lock.try_clone().map_err(at(&self.root.join("lock")))
    }

    /// Reads the marker.
    pub fn read_marker(&self) -> Result<Option<Marker>, WorkDirError> {
        marker_in(&self.root)
    }

    /// Writes the marker: temporary name, fsync, rename.
    pub fn write_marker(&self, marker: &Marker) -> Result<(), WorkDirError> {
        let path = self.marker();
        let text = serde_json::to_vec_pretty(marker).map_err(|error| at(&path)(error.into()))?;
        write_whole(&path, &text)
    }

    /// Sets the local state and its backup aside under a dated name: the backend has it now.
    pub fn retire_state(&self, now: Timestamp) -> Result<(), WorkDirError> {
        for name in [STATE_FILE.to_owned(), format!("{STATE_FILE}.backup")] {
            rename_if_there(
                &self.root.join(&name),
                &self.root.join(format!("{name}.migrated-{}", stamp(now))),
            )?;
        }
        sync_dir(&self.root)
    }

    /// The dated name of `path` in the salvage folder, which is made where it is missing.
    pub fn salvage(&self, path: &Path, now: Timestamp) -> Result<PathBuf, WorkDirError> {
        let folder = self.root.join("salvage");
        make_dir(&folder)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(folder.join(format!("{}-{name}", stamp(now))))
    }

    /// Moves `path` to its dated name in the salvage folder, and returns where it went.
    pub fn set_aside(&self, path: &Path, now: Timestamp) -> Result<PathBuf, WorkDirError> {
        let target = self.salvage(path, now)?;
        rename_if_there(path, &target)?;
        sync_dir(&self.root.join("salvage"))?;
        Ok(target)
    }

    fn check_address(&self, address: &StateAddress) -> Result<(), WorkDirError> {
        let path = self.root.join("address");
        let wanted = address.to_string();
        match read_if_there(&path)?.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()) {
            None => write_whole(&path, format!("{wanted}\n").as_bytes()),
            Some(found) if StateAddress::parse(&found).is_ok_and(|found| found.key() == address.key()) => {
                Ok(())
            }
            Some(found) => Err(WorkDirError::OtherAddress {
                path: self.root.clone(),
                found,
                wanted,
            }),
        }
    }
}

/// The marker in a working directory that another run may have, or that is not there yet.
pub fn marker_in(root: &Path) -> Result<Option<Marker>, WorkDirError> {
    let path = root.join(MARKER_FILE);
    let Some(bytes) = read_if_there(&path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| WorkDirError::MarkerDamaged {
            path,
            reason: error.to_string(),
        })
}

/// A time as it stands in file names: sorts by age.
pub fn stamp(now: Timestamp) -> String {
    now.strftime("%Y%m%dT%H%M%S.%6fZ").to_string()
}

/// Reads a file; `None` when it is not there.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, WorkDirError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Writes a file of mode 0600 whole or not at all: temporary name, fsync, rename, fsync of the folder.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), WorkDirError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(at(path))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(at(path))?;
    file.persist(path).map_err(|error| at(path)(error.error))?;
    sync_dir(folder)
}

/// Removes a file; one that is not there is removed already.
pub fn remove_if_there(path: &Path) -> Result<(), WorkDirError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

fn rename_if_there(from: &Path, to: &Path) -> Result<(), WorkDirError> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(from)(error)),
        _ => Ok(()),
    }
}

fn sync_dir(path: &Path) -> Result<(), WorkDirError> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(at(path))
}

fn make_dir(path: &Path) -> Result<(), WorkDirError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WorkDirError {
    let path = path.to_owned();
    move |source| WorkDirError::Io { path, source }
}

#[cfg(test)]
mod tests;
