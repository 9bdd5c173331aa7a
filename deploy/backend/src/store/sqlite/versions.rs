//! The versions of a state, and which of them is current.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::KeepVersions;
use crate::state::{Document, Identity, Resources, StateKey, StoredBytes, Summary};
use crate::store::{Restored, Standing, StoreError, Version};

pub(super) fn current_bytes(connection: &Connection, key: &StateKey) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT body FROM current JOIN versions USING (key, number) WHERE key = ?1";
    Ok(connection
        .query_row(sql, [key.as_str()], |row| row.get(0))
        .optional()?)
}

/// The current version, and whether its bytes are `bytes`; SQLite compares them, so that they are not loaded.
pub(super) fn compare_current(
    transaction: &Transaction<'_>,
    key: &StateKey,
    bytes: &[u8],
) -> Result<Option<(Summary, StoredBytes)>, StoreError> {
    let sql = "SELECT lineage, serial, resources, body = ?2
               FROM current JOIN versions USING (key, number) WHERE key = ?1";
    let compared = transaction.query_row(sql, params![key.as_str(), bytes], |row| {
        let same = if row.get(3)? {
            StoredBytes::Same
        } else {
            StoredBytes::Different
        };
        Ok((summary(row)?, same))
    });
    Ok(compared.optional()?)
}

/// Adds a version and makes it current.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    key: &StateKey,
    document: &Document,
    author: &str,
) -> Result<u64, StoreError> {
    let Summary { identity, resources } = document.summary();
    let resources = match resources {
        Resources::Count(count) => Some(*count),
        Resources::Sealed => None,
    };
    let sql = "INSERT INTO versions (key, number, lineage, serial, resources, author, body)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let number = next_number(transaction, key)?;
    let (lineage, serial) = identity.as_ref().map(|is| (&is.lineage, is.serial)).unzip();
    transaction.execute(
        sql,
        params![
            key.as_str(),
            number,
            lineage,
            serial,
            resources,
            author,
            document.bytes()
        ],
    )?;
    make_current(transaction, key, number)?;
    Ok(number)
}

/// Copies an old version to a new one and makes that current.
pub(super) fn restore(
    transaction: &Transaction<'_>,
    key: &StateKey,
    version: u64,
    author: &str,
) -> Result<Restored, StoreError> {
    let sql = "SELECT number FROM current WHERE key = ?1";
    let current: Option<u64> = transaction
        .query_row(sql, [key.as_str()], |row| row.get(0))
        .optional()?;
    if current == Some(version) {
        return Ok(Restored::AlreadyCurrent);
    }
    let Ok(version) = i64::try_from(version) else {
        return Ok(Restored::NoSuchVersion);
    };
    let number = next_number(transaction, key)?;
    let sql = "INSERT INTO versions (key, number, lineage, serial, resources, author, body)
               SELECT key, ?3, lineage, serial, resources, ?4, body FROM versions WHERE key = ?1 AND number = ?2";
    let copied = transaction.execute(sql, params![key.as_str(), version, number, author])?;
    if copied == 0 {
        return Ok(Restored::NoSuchVersion);
    }
    make_current(transaction, key, number)?;
    Ok(Restored::Stored { version: number })
}

/// Forgets the oldest versions. The newest stays even when no version is current, so numbers go on from it.
pub(super) fn prune(
    transaction: &Transaction<'_>,
    key: &StateKey,
    keep: KeepVersions,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM versions WHERE key = ?1 AND number <= (
                   SELECT number FROM versions WHERE key = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2
               )";
    transaction.execute(sql, params![key.as_str(), keep.0.get()])?;
    Ok(())
}

pub(super) fn list(connection: &Connection, key: &StateKey) -> Result<Vec<Version>, StoreError> {
    let sql = "SELECT lineage, serial, resources, versions.number, length(body), author, stored_at,
                      current.number IS NOT NULL
               FROM versions LEFT JOIN current USING (key, number)
               WHERE versions.key = ?1 ORDER BY versions.number";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([key.as_str()], |row| {
        let standing = if row.get(7)? {
            Standing::Current
        } else {
            Standing::Past
        };
        Ok(Version {
            summary: summary(row)?,
            number: row.get(3)?,
            bytes: row.get(4)?,
            author: row.get(5)?,
            stored_at: row.get(6)?,
            standing,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Reads the columns `lineage, serial, resources`, which come first.
pub(super) fn summary(row: &Row<'_>) -> rusqlite::Result<Summary> {
    let lineage: Option<String> = row.get(0)?;
    let identity = lineage
        .zip(row.get(1)?)
        .map(|(lineage, serial)| Identity { lineage, serial });
    let resources = row
        .get::<_, Option<u64>>(2)?
        .map_or(Resources::Sealed, Resources::Count);
    Ok(Summary { identity, resources })
}

fn next_number(transaction: &Transaction<'_>, key: &StateKey) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(max(number), 0) + 1 FROM versions WHERE key = ?1";
    Ok(transaction.query_row(sql, [key.as_str()], |row| row.get(0))?)
}

fn make_current(transaction: &Transaction<'_>, key: &StateKey, number: u64) -> Result<(), StoreError> {
    let sql = "INSERT INTO current (key, number) VALUES (?1, ?2)
               ON CONFLICT (key) DO UPDATE SET number = excluded.number";
    transaction.execute(sql, params![key.as_str(), number])?;
    Ok(())
}
