//! The cache of what is slow to make: guest images, initrds, accelerator verdicts.
//!
//! An entry is a folder under `<root>/<kind>/<key>`. It is either complete or absent: it is built beside its place
//! and renamed. However many processes ask at once, one builds and the others wait and say so. A builder that is
//! killed leaves only its unfinished folder, which the next builder removes: whether a folder is in use is told by
//! its lock, never by its age.

use std::fs::{self, File, FileTimes, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

/// Where a step says in a line what it is doing, for a person who waits.
pub type Progress<'a> = &'a dyn Fn(&str);

/// Why the cache could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Neither `PROVISOR_CACHE` nor `XDG_CACHE_HOME` nor `HOME` says where the cache is.
    #[error(
        "no place for the cache: PROVISOR_CACHE, XDG_CACHE_HOME and HOME are all unset; set PROVISOR_CACHE to a folder"
    )]
    NoRoot,
    /// The disk under the cache is too small, or became full during a build.
    #[error(
        "not enough space in {}: {} free, {} needed; free some space, or set PROVISOR_CACHE to a folder on a larger disk",
        path.display(), Size(*free), Size(*need)
    )]
    NoSpace {
        /// The folder on the full disk.
        path: PathBuf,
        /// Bytes that the build needs.
        need: u64,
        /// Bytes that are free now.
        free: u64,
    },
    /// A file of the cache could not be read or written.
    #[error("{action} {}: {source}; check the folder's permissions, or set PROVISOR_CACHE to another", path.display())]
    Io {
        /// What was tried, as a verb: "cannot create".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
}

/// The name of an entry: a digest over everything that goes into it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// The key of an entry whose parts are these `(name, bytes)`, in this order.
    pub fn of<'a>(parts: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut digest = Sha256::new();
        for (name, bytes) in parts {
            for part in [name.as_bytes(), bytes] {
                digest.update((part.len() as u64).to_be_bytes());
                digest.update(part);
            }
        }
        Self(
            digest
                .finalize()
                .iter()
                .take(KEY_BYTES)
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        )
    }

    /// The 32 hexadecimal digits that name the entry's folder.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A finished entry as `lab images list` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The kind it stands under: "image", "initrd".
    pub kind: String,
    /// The folder's name.
    pub key: String,
    /// The folder.
    pub path: PathBuf,
    /// What it takes on the disk, in bytes; holes are not counted.
    pub bytes: u64,
    /// When an entry was last asked for.
    pub used: SystemTime,
}

/// The cache at one root folder.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The user's cache: `$PROVISOR_CACHE`, else `$XDG_CACHE_HOME/provisor`, else `~/.cache/provisor`.
    pub fn open() -> Result<Self, CacheError> {
        root_from(|name| std::env::var_os(name).map(PathBuf::from))
            .map(Self::at)
            .ok_or(CacheError::NoRoot)
    }

    /// A cache at this folder, which is created when something is first kept in it.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the entry, built by `build` when it is not there.
    ///
    /// `build` fills the empty folder it is given; when it fails nothing of it is left.
    pub fn entry<E: From<CacheError>>(
        &self,
        kind: &str,
        key: &Key,
        progress: Progress<'_>,
        build: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let shelf = self.root.join(kind);
        let done = shelf.join(key.as_str());
        fs::create_dir_all(&shelf).map_err(io_error("cannot create", &shelf))?;
        let lock_path = lock_path(&done);
        let lock = open_lock(&lock_path)?;
        if !done.is_dir() {
            wait_for(
                &lock,
                &lock_path,
                &format!("waiting for another process that makes the {kind}"),
                progress,
            )?;
            if !done.is_dir() {
                sweep(&shelf, key.as_str());
                let unfinished = tempfile::Builder::new()
                    .prefix(&format!("{}.", key.as_str()))
                    .suffix(UNFINISHED)
                    // A rootless image build enters it as another user.
                    .permissions(fs::Permissions::from_mode(0o755))
                    .tempdir_in(&shelf)
                    .map_err(io_error("cannot create a folder in", &shelf))?;
                build(unfinished.path())?;
                publish(unfinished, &done)?;
                sync(&shelf).map_err(io_error("cannot write", &shelf))?;
            }
        }
        // Only `prune` reads it, so an entry on a read-only disk is still good.
        let _ = lock.set_times(FileTimes::new().set_modified(SystemTime::now()));
        Ok(done)
    }

    /// Checks that the disk under the cache has `need` bytes free.
    pub fn require_space(&self, need: u64) -> Result<(), CacheError> {
        fs::create_dir_all(&self.root).map_err(io_error("cannot create", &self.root))?;
        require_space(&self.root, need)
    }

    /// The finished entries, by kind and key. A folder that is not named by a key is not the cache's to remove.
    pub fn list(&self) -> Result<Vec<Entry>, CacheError> {
        let mut entries = Vec::new();
        for kind in folders(&self.root)? {
            for path in folders(&kind)?.into_iter().filter(|path| is_key(&name_of(path))) {
                let Ok(used) = fs::metadata(lock_path(&path)).and_then(|lock| lock.modified()) else {
                    continue;
                };
                entries.push(Entry {
                    kind: name_of(&kind),
                    key: name_of(&path),
                    bytes: disk_usage(&path),
                    used,
                    path,
                });
            }
        }
        Ok(entries)
    }

    /// Removes the entries not asked for since `unused_for`, and what killed builders left; returns what it removed.
    ///
    /// An entry that somebody builds or waits for is left alone. A guest that runs keeps its files open, so it is not
    /// disturbed.
    pub fn prune(&self, unused_for: Duration) -> Result<Vec<Entry>, CacheError> {
        let mut removed = Vec::new();
        for entry in self.list()? {
            let idle = SystemTime::now().duration_since(entry.used).unwrap_or_default();
            let lock = open_lock(&lock_path(&entry.path))?;
            if idle >= unused_for && lock.try_lock().is_ok() {
                fs::remove_dir_all(&entry.path).map_err(io_error("cannot remove", &entry.path))?;
                removed.push(entry);
            }
        }
        for kind in folders(&self.root)? {
            sweep(&kind, "");
        }
        Ok(removed)
    }
}

/// Checks that the disk under `path` has `need` bytes free.
pub fn require_space(path: &Path, need: u64) -> Result<(), CacheError> {
    let free = free_space(path)?;
    if free < need {
        return Err(CacheError::NoSpace {
            path: path.to_owned(),
            need,
            free,
        });
    }
    Ok(())
}

/// The bytes that a plain user may still write under `path`.
pub fn free_space(path: &Path) -> Result<u64, CacheError> {
    let stat = nix::sys::statvfs::statvfs(path)
        .map_err(|errno| io_error("cannot ask the free space of", path)(errno.into()))?;
    Ok(stat.blocks_available() as u64 * stat.fragment_size() as u64)
}

/// Bytes, shown to a person.
#[derive(Debug, Clone, Copy)]
pub struct Size(pub u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            bytes @ 0..10_000_000 => write!(f, "{} kB", bytes / 1000),
            bytes @ 10_000_000..10_000_000_000 => write!(f, "{} MB", bytes / 1_000_000),
            bytes => write!(f, "{} GB", bytes / 1_000_000_000),
        }
    }
}

const UNFINISHED: &str = ".unfinished";

/// Bytes of the digest in a key: 128 bits name more entries than there will ever be.
const KEY_BYTES: usize = 16;

fn root_from(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|path| !path.as_os_str().is_empty());
    set("PROVISOR_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|base| base.join("provisor")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/provisor")))
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CacheError {
    let path = path.to_owned();
    move |source| CacheError::Io { action, path, source }
}

fn lock_path(entry: &Path) -> PathBuf {
    entry.with_extension("lock")
}

fn open_lock(path: &Path) -> Result<File, CacheError> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(io_error("cannot open the lock", path))
}

fn wait_for(lock: &File, path: &Path, say: &str, progress: Progress<'_>) -> Result<(), CacheError> {
    match lock.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            progress(say);
            lock.lock().map_err(io_error("cannot lock", path))
        }
        Err(TryLockError::Error(source)) => Err(io_error("cannot lock", path)(source)),
    }
}

/// Removes the unfinished folders whose builder is gone; the caller holds the lock of `held`.
fn sweep(shelf: &Path, held: &str) {
    for path in folders(shelf)
        .unwrap_or_default()
        .into_iter()
        .filter(|path| is_unfinished(path))
    {
        let name = name_of(&path);
        let key = name.split('.').next().unwrap_or_default();
        let lock = open_lock(&shelf.join(key).with_extension("lock")).ok();
        let abandoned = key == held || lock.as_ref().is_some_and(|lock| lock.try_lock().is_ok());
        // A builder's program that is still taking its mounts away is given until the next sweep.
        if abandoned
            && !has_mounts(&path)
            && let Err(error) = fs::remove_dir_all(&path)
        {
            tracing::warn!(path = %path.display(), %error, "cannot remove what a killed build left");
        }
    }
}

/// Whether something is mounted in the folder, which must then not be emptied: it could be the host's `/sys`.
fn has_mounts(folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else {
        return false;
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .any(|at| Path::new(at).starts_with(&folder))
}

/// Moves a complete folder to its place, so that a power cut leaves either all of it or none.
fn publish(unfinished: tempfile::TempDir, done: &Path) -> Result<(), CacheError> {
    let path = unfinished.path();
    sync_tree(path).map_err(io_error("cannot write", path))?;
    fs::rename(path, done).map_err(io_error("cannot create", done))?;
    let _moved = unfinished.keep();
    Ok(())
}

fn sync_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => sync_tree(&entry.path())?,
            kind if kind.is_file() => sync(&entry.path())?,
            _ => {}
        }
    }
    sync(path)
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn folders(path: &Path) -> Result<Vec<PathBuf>, CacheError> {
    let listing = match fs::read_dir(path) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("cannot read", path)(error)),
    };
    let mut found: Vec<_> = listing
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    Ok(found)
}

fn is_key(name: &str) -> bool {
    name.len() == KEY_BYTES * 2 && name.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn is_unfinished(path: &Path) -> bool {
    path.to_string_lossy().ends_with(UNFINISHED)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn disk_usage(path: &Path) -> u64 {
    let listing = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    listing
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk_usage(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests;
