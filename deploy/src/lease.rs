//! A backend lock that a step of ours holds, on record in the working directory before it is taken.
//!
//! When a run dies between LOCK and UNLOCK, the record proves to the next run that the lock is its own, so that an
//! interrupted migration resumes without a person.

use jiff::Timestamp;

use crate::lock::{Holder, LockInfo};
use crate::store::{Client, LockAnswer, StoreError};
use crate::workdir::{WorkDir, WorkDirError, read_if_there, remove_if_there, write_whole};

/// A lock that is held; dropping it tries to give it back.
#[derive(Debug)]
pub struct Lease<'a> {
    client: &'a Client,
    workdir: &'a WorkDir,
    info: LockInfo,
    held: bool,
}

/// What became of an attempt.
#[derive(Debug)]
pub enum Attempt<'a> {
    /// The lock is ours.
    Taken(Lease<'a>),
    /// A dead run of this working directory has it, and the server does not take its LOCK a second time.
    Abandoned(Holder),
    /// Somebody else has it.
    Held(Holder),
}

/// Why a lock could not be taken or given back.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The backend.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record.
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
}

impl<'a> Lease<'a> {
    /// Takes the lock for `operation`, or takes up the one that a dead run left on record: most servers answer 200 to the
    /// holder's own LOCK.
    pub fn take(
        client: &'a Client,
        workdir: &'a WorkDir,
        operation: &str,
    ) -> Result<Attempt<'a>, LeaseError> {
        let recorded = read_if_there(&workdir.lease())?
            .map(Holder::read)
            .and_then(|record| record.info);
        let info = match recorded {
            Some(info) => info,
            None => {
                let info = LockInfo::new(operation, Timestamp::now());
                write_whole(&workdir.lease(), &info.body())?;
                info
            }
        };
        match client.lock(&info) {
            Ok(LockAnswer::Taken) => Ok(Attempt::Taken(Lease {
                client,
                workdir,
                info,
                held: true,
            })),
            Ok(LockAnswer::Held(holder)) if holder.info.as_ref().is_some_and(|held| held.id == info.id) => {
                Ok(Attempt::Abandoned(holder))
            }
            Ok(LockAnswer::Held(holder)) => {
                remove_if_there(&workdir.lease())?;
                Ok(Attempt::Held(holder))
            }
            // The record stays: whether the lock was taken is not known.
            Err(error) => Err(error.into()),
        }
    }

    /// What to write under.
    pub fn info(&self) -> &LockInfo {
        &self.info
    }

    /// Gives it back.
    pub fn release(mut self) -> Result<(), LeaseError> {
        self.held = false;
        self.client.unlock(&self.info.body())?;
        Ok(remove_if_there(&self.workdir.lease())?)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if self.held && self.client.unlock(&self.info.body()).is_ok() {
            // Left behind, the record names a lock that nobody holds: harmless.
            let _ = remove_if_there(&self.workdir.lease());
        }
    }
}
