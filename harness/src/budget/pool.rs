//! One thing that is shared: a folder with a locked file for each share that is held or waited for.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use super::claim::Claim;
use super::decide::{Filed, Standing, Tenure, Verdict};
use super::watch::watch;
use super::{BudgetError, Claimant, Wish};

/// A number of MiB or processors, shared by all processes that name the same folder.
///
/// | file | locked by |
/// |---|---|
/// | `lock` | who reads or changes the rest, for a moment |
/// | `queue/NUMBER-RANDOM` | who waits, from when it asks until it is served |
/// | `held/RANDOM` | who holds a share |
#[derive(Clone, Debug)]
pub struct Pool {
    folder: PathBuf,
    total: u64,
    tenure: Tenure,
}

/// A share that is held. It goes back when this is dropped, or when the process ends.
#[derive(Debug)]
pub struct Lease {
    _file: Locked,
}

/// Why somebody has to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How much is wanted.
    pub wanted: u64,
    /// How much is free.
    pub free: u64,
    /// How much there is.
    pub total: u64,
    /// Who holds the rest, a line each.
    pub holders: Vec<String>,
}

impl Pool {
    pub(super) fn memory(folder: PathBuf, total: u64) -> Self {
        Self {
            folder,
            total,
            tenure: Tenure::Long,
        }
    }

    pub(super) fn boots(folder: PathBuf, total: u64) -> Self {
        Self {
            folder,
            total,
            tenure: Tenure::Short,
        }
    }

    /// How much there is.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Waits until all of `wishes` can be held together; answers one lease for each. `on_wait` is told each time it has to wait on.
    ///
    /// Who drops the future leaves the queue. It needs a tokio runtime.
    ///
    /// # Errors
    /// [`BudgetError::TooLarge`] and [`BudgetError::Deadlock`] when waiting would never end; otherwise the folder cannot be used.
    pub async fn take(
        &self,
        claimant: &Claimant,
        wishes: &[Wish],
        mut on_wait: impl FnMut(Waiting),
    ) -> Result<Vec<Lease>, BudgetError> {
        let claims: Vec<Claim> = wishes.iter().map(|wish| claim(claimant, wish)).collect();
        let together = Claim {
            claimant: claimant.clone(),
            name: claims
                .iter()
                .map(|claim| claim.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            amount: claims.iter().map(|claim| claim.amount).sum(),
        };
        let (pool, wanted) = (self.clone(), together.clone());
        let ticket = blocking(move || pool.enter(&wanted)).await?;
        let (sender, mut ended) = mpsc::unbounded_channel();
        let mut watched = BTreeSet::new();
        loop {
            let (pool, file) = (self.clone(), ticket.name());
            let (together, claims) = (together.clone(), claims.clone());
            let (waiting, others) = match blocking(move || pool.attempt(&file, &together, &claims)).await? {
                Attempt::Taken(leases) => return Ok(leases),
                Attempt::Wait(waiting, others) => (waiting, others),
            };
            on_wait(waiting);
            // No name comes twice, so one watch a file is enough.
            for path in others.into_iter().filter(|path| watched.insert(path.clone())) {
                watch(path, sender.clone()).map_err(|source| BudgetError::Thread { source })?;
            }
            let mut next = ended.recv().await;
            while let Some(seen) = next {
                seen.map_err(error_at(&self.folder))?;
                next = ended.try_recv().ok();
            }
        }
    }

    /// Gets in the queue.
    fn enter(&self, claim: &Claim) -> Result<Locked, BudgetError> {
        let _alone = self.alone()?;
        let queue = self.list(QUEUE)?;
        let last = queue
            .last()
            .and_then(|filed| filed.file.split('-').next()?.parse::<u64>().ok());
        // The random part tells it from one of the same number that came and went before.
        let name = format!("{:012}-{:016x}", last.unwrap_or(0) + 1, rand::random::<u64>());
        Locked::create(self.folder.join(QUEUE).join(name), claim)
    }

    /// Takes the shares if it is time to.
    fn attempt(&self, file: &str, together: &Claim, claims: &[Claim]) -> Result<Attempt, BudgetError> {
        let _alone = self.alone()?;
        let (held, queue) = (self.list(HELD)?, self.list(QUEUE)?);
        let standing = Standing {
            total: self.total,
            tenure: self.tenure,
            held: &held,
            queue: &queue,
        };
        let waiting = || Waiting {
            wanted: together.amount,
            free: self.total.saturating_sub(standing.used()),
            total: self.total,
            holders: held.iter().map(|held| held.claim.to_string()).collect(),
        };
        let wait = |folder: &str, files: Vec<String>| {
            let folder = self.folder.join(folder);
            Ok(Attempt::Wait(
                waiting(),
                files.iter().map(|file| folder.join(file)).collect(),
            ))
        };
        let verdict = standing.decide(file, together);
        if !matches!(verdict, Verdict::WaitForHolders(_) | Verdict::WaitForQueue(_)) {
            // Out of the queue in the same step: who holds and waits is another case.
            let ticket = self.folder.join(QUEUE).join(file);
            remove(&ticket).map_err(error_at(&ticket))?;
        }
        match verdict {
            Verdict::Take => {
                let lease = |claim: &Claim| {
                    let name = format!("{:016x}", rand::random::<u64>());
                    Locked::create(self.folder.join(HELD).join(name), claim).map(|file| Lease { _file: file })
                };
                Ok(Attempt::Taken(
                    claims.iter().map(lease).collect::<Result<_, _>>()?,
                ))
            }
            Verdict::WaitForHolders(files) => wait(HELD, files),
            Verdict::WaitForQueue(files) => wait(QUEUE, files),
            Verdict::TooLarge { own } => Err(BudgetError::TooLarge {
                wanted: together.amount,
                own,
                total: self.total,
            }),
            Verdict::Deadlock => {
                let Waiting {
                    wanted,
                    free,
                    total,
                    holders,
                } = waiting();
                Err(BudgetError::Deadlock {
                    wanted,
                    free,
                    total,
                    holders,
                })
            }
        }
    }

    /// Nobody else reads or changes the folder while this is held.
    fn alone(&self) -> Result<File, BudgetError> {
        for folder in [QUEUE, HELD] {
            let folder = self.folder.join(folder);
            fs::create_dir_all(&folder).map_err(error_at(&folder))?;
        }
        let path = self.folder.join("lock");
        let lock = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(error_at(&path))?;
        lock.lock().map_err(error_at(&path))?;
        Ok(lock)
    }

    /// What stands in `folder`, in the order of names. What nobody locks is removed.
    fn list(&self, folder: &str) -> Result<Vec<Filed>, BudgetError> {
        let folder = self.folder.join(folder);
        let entries: Vec<DirEntry> = fs::read_dir(&folder)
            .and_then(Iterator::collect)
            .map_err(error_at(&folder))?;
        let mut filed = Vec::new();
        for entry in entries {
            let path = entry.path();
            if let Some(claim) = living(&path).map_err(error_at(&path))? {
                let file = entry.file_name().to_string_lossy().into_owned();
                filed.push(Filed { file, claim });
            }
        }
        filed.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(filed)
    }
}

const QUEUE: &str = "queue";
const HELD: &str = "held";

enum Attempt {
    Taken(Vec<Lease>),
    /// These files may give way.
    Wait(Waiting, Vec<PathBuf>),
}

/// A file that stands as long as this value, or else is not locked.
#[derive(Debug)]
struct Locked {
    path: PathBuf,
    _file: File,
}

impl Locked {
    /// Only for who is [`Pool::alone`]: nobody sees it before it is locked and written.
    fn create(path: PathBuf, claim: &Claim) -> Result<Self, BudgetError> {
        let create = || {
            let mut file = File::options().write(true).create_new(true).open(&path)?;
            file.lock()?;
            file.write_all(&serde_json::to_vec(claim)?)?;
            Ok(file)
        };
        let file = create().map_err(error_at(&path))?;
        Ok(Self { path, _file: file })
    }

    fn name(&self) -> String {
        self.path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // One that cannot be removed is not locked any more, and counts for nothing.
        let _ = fs::remove_file(&self.path);
    }
}

/// The claim in the file, if somebody locks it. It is removed otherwise.
fn living(path: &Path) -> io::Result<Option<Claim>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.try_lock_shared() {
        Ok(()) => remove(path).map(|()| None),
        Err(fs::TryLockError::WouldBlock) => Ok(Some(serde_json::from_reader(file)?)),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn claim(claimant: &Claimant, wish: &Wish) -> Claim {
    Claim {
        claimant: claimant.clone(),
        name: wish.name.clone(),
        amount: wish.amount,
    }
}

fn error_at(path: &Path) -> impl Fn(io::Error) -> BudgetError {
    move |source| BudgetError::Io {
        path: path.to_owned(),
        source,
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
