//! The store on one SQLite file, for one server and the command line beside it.

mod check;
mod schema;
mod versions;

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params};

use super::{Deleted, Locked, Restored, Store, StoreError, Totals, Unlocked, Version, Write, Written};
use crate::state::{Admission, Claim, Lock, LockError, Release, StateKey, admit};

pub use schema::SqliteError;

/// A store on one SQLite file, in WAL mode and with `synchronous=FULL`.
///
/// Several of them, in one process or in several, may have the same file open.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Mutex<Connection>,
    keep: KeepVersions,
}

/// How many versions of each state are kept, the current one included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepVersions(pub NonZeroU32);

impl KeepVersions {
    /// All of them.
    pub const ALL: Self = Self(NonZeroU32::MAX);
}

impl Default for KeepVersions {
    fn default() -> Self {
        Self(const { NonZeroU32::new(100).expect("100 is not zero") })
    }
}

impl SqliteStore {
    /// Opens the file, and makes it, readable by its owner only, where there is none.
    pub fn open(path: &Path, keep: KeepVersions) -> Result<Self, SqliteError> {
        schema::create_private(path)?;
        Self::open_existing(path, keep)
    }

    /// Opens a file that must exist.
    pub fn open_existing(path: &Path, keep: KeepVersions) -> Result<Self, SqliteError> {
        let connection = Mutex::new(schema::connect(path)?);
        Ok(Self { connection, keep })
    }

    /// A panic under the lock rolled its transaction back, so the connection is good to use.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `change` in a transaction that holds the write lock from its first statement on, so that what it reads is
    /// still so when it writes. Whatever it answers is committed; its error rolls back.
    fn change<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let answer = change(&transaction)?;
        transaction.commit()?;
        Ok(answer)
    }
}

impl Store for SqliteStore {
    fn read(&self, key: &StateKey) -> Result<Option<Vec<u8>>, StoreError> {
        versions::current_bytes(&self.connection(), key)
    }

    fn write(&self, key: &StateKey, write: &Write<'_>) -> Result<Written, StoreError> {
        self.change(|transaction| {
            if let Some(held) = holder(transaction, key)?.filter(|held| held.bars(write.claim)) {
                return Ok(Written::Held(held));
            }
            let admission = match versions::compare_current(transaction, key, write.document.bytes())? {
                None => Admission::Store,
                Some((summary, bytes)) => admit(&summary, bytes, write.document.summary()),
            };
            match admission {
                Admission::AlreadyStored => Ok(Written::AlreadyStored),
                Admission::Refuse(refusal) => Ok(Written::Refused(refusal)),
                Admission::Store => {
                    let version = versions::insert(transaction, key, write.document, write.author)?;
                    versions::prune(transaction, key, self.keep)?;
                    Ok(Written::Stored { version })
                }
            }
        })
    }

    fn delete(&self, key: &StateKey, claim: &Claim) -> Result<Deleted, StoreError> {
        self.change(|transaction| {
            if let Some(held) = holder(transaction, key)?.filter(|held| held.bars(claim)) {
                return Ok(Deleted::Held(held));
            }
            transaction.execute("DELETE FROM current WHERE key = ?1", [key.as_str()])?;
            Ok(Deleted::Gone)
        })
    }

    fn lock(&self, key: &StateKey, lock: &Lock) -> Result<Locked, StoreError> {
        self.change(|transaction| match holder(transaction, key)? {
            Some(held) if held.id() == lock.id() => Ok(Locked::Taken),
            Some(held) => Ok(Locked::Held(held)),
            None => {
                transaction.execute(
                    "INSERT INTO locks (key, id, body) VALUES (?1, ?2, ?3)",
                    params![key.as_str(), lock.id().as_str(), lock.bytes()],
                )?;
                Ok(Locked::Taken)
            }
        })
    }

    fn unlock(&self, key: &StateKey, release: &Release) -> Result<Unlocked, StoreError> {
        self.change(|transaction| match (holder(transaction, key)?, release) {
            (None, _) => Ok(Unlocked::WasFree),
            (Some(held), Release::Holder(id)) if held.id() != id => Ok(Unlocked::Held(held)),
            (Some(_), _) => {
                transaction.execute("DELETE FROM locks WHERE key = ?1", [key.as_str()])?;
                Ok(Unlocked::Released)
            }
        })
    }

    fn versions(&self, key: &StateKey) -> Result<Vec<Version>, StoreError> {
        versions::list(&self.connection(), key)
    }

    fn restore(&self, key: &StateKey, version: u64, author: &str) -> Result<Restored, StoreError> {
        self.change(|transaction| {
            if let Some(held) = holder(transaction, key)? {
                return Ok(Restored::Held(held));
            }
            let restored = versions::restore(transaction, key, version, author)?;
            versions::prune(transaction, key, self.keep)?;
            Ok(restored)
        })
    }

    fn totals(&self) -> Result<Totals, StoreError> {
        let sql = "SELECT (SELECT count(*) FROM current), (SELECT count(*) FROM versions), \
                   (SELECT count(*) FROM locks)";
        let connection = self.connection();
        let totals = connection.query_row(sql, [], |row| {
            Ok(Totals {
                states: row.get(0)?,
                versions: row.get(1)?,
                locks: row.get(2)?,
            })
        })?;
        Ok(totals)
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        check::problems(&self.connection())
    }
}

fn holder(transaction: &Transaction<'_>, key: &StateKey) -> Result<Option<Lock>, StoreError> {
    let body: Option<Vec<u8>> = transaction
        .query_row("SELECT body FROM locks WHERE key = ?1", [key.as_str()], |row| {
            row.get(0)
        })
        .optional()?;
    let damaged = |error: LockError| StoreError::Damaged {
        key: key.clone(),
        reason: error.to_string(),
    };
    body.map(|body| Lock::parse(body).map_err(damaged)).transpose()
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            _ => Self::Failed {
                reason: error.to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
