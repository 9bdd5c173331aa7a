//! The folder of one lab while it runs: sockets and disks, gone afterwards.
//!
//! A folder whose owner was killed is found by its lock, which the kernel let go, and never by its age.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::{NamedTempFile, TempDir};

/// The longest path of a unix socket that this harness makes. Linux allows 107 bytes; the rest is room for a name.
const LONGEST_SOCKET_PATH: usize = 100;

/// A folder that goes away with its value, or, if the process is killed, with the next lab that starts.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    /// Nothing, once it was kept.
    owned: Mutex<Option<Owned>>,
}

#[derive(Debug)]
struct Owned {
    // Before the lock, since fields are dropped in order: nobody sweeps a folder that is being removed.
    folder: TempDir,
    lock: NamedTempFile,
}

/// Why there is no folder to run in.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// A folder or a lock cannot be made.
    #[error("cannot prepare {} for running guests: check its permissions and free space, or set PROVISOR_CACHE to another folder", .path.display())]
    Prepare {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its path is too long for sockets to stand in it.
    #[error(
        "{} is too long a path for unix sockets ({} bytes, {LONGEST_SOCKET_PATH} at most): set PROVISOR_CACHE to a folder with a shorter path",
        .path.display(), .path.as_os_str().len()
    )]
    TooLong {
        /// The path of a socket.
        path: PathBuf,
    },
}

impl RunDir {
    /// Removes what killed labs left under `base`, and makes a new folder there.
    ///
    /// # Errors
    /// [`RunDirError::Prepare`].
    pub(crate) fn create(base: &Path) -> Result<Self, RunDirError> {
        let prepare = || {
            fs::create_dir_all(base)?;
            // A lock is born and locked while this one is held, so that nobody sweeps it in between.
            let births = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(base.join("births"))?;
            births.lock()?;
            sweep(base)?;
            // The lock comes first and stands beside its folder, as in the cache: pruning that leaves what is locked.
            let lock = tempfile::Builder::new()
                .prefix("r")
                .suffix(LOCK)
                .rand_bytes(6)
                .tempfile_in(base)?;
            lock.as_file().lock()?;
            let name = lock.path().file_stem().unwrap_or_default();
            let folder = tempfile::Builder::new()
                .prefix(name)
                .rand_bytes(0)
                .tempdir_in(base)?;
            Ok(Self {
                path: folder.path().to_owned(),
                owned: Mutex::new(Some(Owned { folder, lock })),
            })
        };
        prepare().map_err(|source| RunDirError::Prepare {
            path: base.to_owned(),
            source,
        })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder to whoever holds a copy of the answer, its lock: it is swept when the last one has closed it.
    ///
    /// # Errors
    /// It was kept before, or its lock cannot be left.
    pub(crate) fn keep(&self) -> io::Result<File> {
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Owned { folder, lock } = owned.ok_or(io::ErrorKind::NotFound)?;
        let (lock, _) = lock.keep().map_err(|error| error.error)?;
        let _ = folder.keep();
        Ok(lock)
    }

    /// The path for a socket in it.
    ///
    /// # Errors
    /// [`RunDirError::TooLong`].
    pub(crate) fn socket(&self, name: &str) -> Result<PathBuf, RunDirError> {
        let path = self.path().join(name);
        if path.as_os_str().len() <= LONGEST_SOCKET_PATH {
            Ok(path)
        } else {
            Err(RunDirError::TooLong { path })
        }
    }
}

/// Ends the name of a lock; what is before it names the folder.
const LOCK: &str = ".lock";

/// The folders under `base` that somebody holds, in order.
pub(crate) fn held(base: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(base) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut held = Vec::new();
    for entry in entries {
        let folder = entry?.path();
        let lock = File::open(folder.with_extension("lock"));
        if folder.is_dir() && lock.is_ok_and(|lock| lock.try_lock_shared().is_err()) {
            held.push(folder);
        }
    }
    held.sort();
    Ok(held)
}

/// Removes what nobody holds under `base`, as each new lab does.
pub(crate) fn sweep_all(base: &Path) -> io::Result<()> {
    if !base.exists() {
        return Ok(());
    }
    let births = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(base.join("births"))?;
    births.lock()?;
    sweep(base)
}

/// Removes the folders whose lock nobody holds. What cannot be removed is left to the next one.
fn sweep(base: &Path) -> io::Result<()> {
    let paths = fs::read_dir(base)?.map(|entry| entry.map(|entry| entry.path()));
    let names: BTreeSet<PathBuf> = paths
        .map(|path| path.map(|path| path.with_extension("")))
        .collect::<Result<_, _>>()?;
    for folder in names.into_iter().filter(|folder| !folder.ends_with("births")) {
        let path = folder.with_extension("lock");
        let lock = File::open(&path);
        if lock.as_ref().is_ok_and(|lock| lock.try_lock().is_err()) {
            continue;
        }
        for removed in [fs::remove_dir_all(&folder), fs::remove_file(&path)] {
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(folder = %folder.display(), %error, "cannot remove what a killed lab left");
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(base: &Path) -> BTreeSet<PathBuf> {
        fs::read_dir(base)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect()
    }

    #[test]
    fn a_lab_s_folder_goes_away_with_it_and_not_with_another_one() {
        let base = tempfile::tempdir().unwrap();
        let first = RunDir::create(base.path()).unwrap();
        fs::write(first.path().join("disk"), "data").unwrap();
        let second = RunDir::create(base.path()).unwrap();
        assert_eq!(
            folders(base.path()),
            [first.path().to_owned(), second.path().to_owned()].into()
        );

        let left = second.path().to_owned();
        drop(first);
        assert_eq!(folders(base.path()), [left].into());
    }

    #[test]
    fn what_a_killed_lab_left_is_swept_by_the_next_one() {
        let base = tempfile::tempdir().unwrap();
        for left in ["rkilled", "rpruned"] {
            fs::create_dir(base.path().join(left)).unwrap();
            fs::write(base.path().join(left).join("disk"), "data").unwrap();
        }
        for left in ["rkilled.lock", "runborn.lock"] {
            fs::write(base.path().join(left), "").unwrap();
        }
        drop(RunDir::create(base.path()).unwrap());
        let left: Vec<_> = fs::read_dir(base.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["births"]);
    }

    #[test]
    fn labs_that_start_at_once_do_not_sweep_each_other() {
        let base = tempfile::tempdir().unwrap();
        let labs: Vec<_> = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| RunDir::create(base.path()).unwrap()))
                .collect();
            starting.into_iter().map(|lab| lab.join().unwrap()).collect()
        });
        assert_eq!(folders(base.path()).len(), labs.len());
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_an_error_that_says_what_to_set() {
        let base = tempfile::tempdir().unwrap();
        let run = RunDir::create(&base.path().join("d".repeat(90))).unwrap();
        let message = run.socket("m0.qmp").unwrap_err().to_string();
        assert!(message.contains("too long a path for unix sockets"), "{message}");
        assert!(message.contains("PROVISOR_CACHE"), "{message}");
    }
}
