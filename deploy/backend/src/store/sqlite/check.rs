//! Looks for damage.

use rusqlite::Connection;

use super::versions::summary;
use crate::state::{Document, Lock, StateKey};
use crate::store::StoreError;

/// One line for each thing that is wrong: pages and indexes as SQLite sees them, pointers that lead nowhere, keys,
/// documents and locks that cannot be read or are not what their row says.
pub(super) fn problems(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut found = integrity(connection)?;
    found.extend(lost_versions(connection)?);
    found.extend(bad_versions(connection)?);
    found.extend(bad_locks(connection)?);
    Ok(found)
}

fn integrity(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let lines: Vec<String> = statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

fn lost_versions(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT key, number FROM current
               WHERE NOT EXISTS (SELECT 1 FROM versions WHERE versions.key = current.key
                                 AND versions.number = current.number)";
    let mut statement = connection.prepare(sql)?;
    let lines = statement.query_map([], |row| {
        let (key, number): (String, u64) = (row.get(0)?, row.get(1)?);
        Ok(format!("{key}: version {number} is current but is not stored"))
    })?;
    Ok(lines.collect::<Result<_, _>>()?)
}

fn bad_versions(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT lineage, serial, resources, key, number, body FROM versions ORDER BY key, number";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (key, number): (String, u64) = (row.get(3)?, row.get(4)?);
        if let Err(error) = key.parse::<StateKey>() {
            found.push(format!("{}: {error}", key.escape_debug()));
        }
        match Document::parse(row.get(5)?) {
            Err(error) => found.push(format!("{key}: version {number}: {error}")),
            Ok(document) if *document.summary() != summary(row)? => {
                found.push(format!(
                    "{key}: version {number}: its bytes are not what its row says"
                ));
            }
            Ok(_) => {}
        }
    }
    Ok(found)
}

fn bad_locks(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("SELECT key, id, body FROM locks ORDER BY key")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (key, id): (String, String) = (row.get(0)?, row.get(1)?);
        match Lock::parse(row.get(2)?) {
            Err(error) => found.push(format!("{key}: lock: {error}")),
            Ok(lock) if lock.id().as_str() != id => {
                found.push(format!("{key}: lock: its bytes are not what its row says"));
            }
            Ok(_) => {}
        }
    }
    Ok(found)
}
