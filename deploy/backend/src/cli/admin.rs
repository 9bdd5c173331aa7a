//! `versions`, `restore` and `check`: what works on the database beside a server.

use std::io::Write;

use serde::Serialize;

use super::{CliError, DatabaseArgument, Format, StateArguments};
use crate::state::{Identity, Resources};
use crate::store::{KeepVersions, Restored, SqliteStore, Standing, Store as _, Version};

/// The author of a version that was restored.
const AUTHOR: &str = "restore";

/// A version as JSON shows it; `null` is what an encrypted state hides.
#[derive(Serialize)]
struct Row<'a> {
    version: u64,
    current: bool,
    stored_at: &'a str,
    author: &'a str,
    bytes: u64,
    lineage: Option<&'a str>,
    serial: Option<u64>,
    resources: Option<u64>,
}

pub(super) fn versions(state: &StateArguments, format: Format, out: &mut dyn Write) -> Result<(), CliError> {
    let versions = open(&state.database)?.versions(&state.key)?;
    let rows: Vec<Row<'_>> = versions.iter().map(Row::from).collect();
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &rows).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        Format::Text => {
            for row in rows {
                row.write(out)?;
            }
        }
    }
    Ok(())
}

pub(super) fn restore(state: &StateArguments, version: u64, out: &mut dyn Write) -> Result<(), CliError> {
    let key = &state.key;
    match open(&state.database)?.restore(key, version, AUTHOR)? {
        Restored::Stored { version: new } => {
            writeln!(out, "version {version} of {key} is current, as version {new}")?
        }
        Restored::AlreadyCurrent => writeln!(out, "version {version} of {key} is current already")?,
        Restored::NoSuchVersion => {
            return Err(CliError::NoSuchVersion {
                key: key.clone(),
                version,
            });
        }
        Restored::Held(lock) => {
            let holder = String::from_utf8_lossy(lock.bytes()).into_owned();
            return Err(CliError::Locked {
                key: key.clone(),
                holder,
            });
        }
    }
    Ok(())
}

pub(super) fn check(database: &DatabaseArgument, out: &mut dyn Write) -> Result<(), CliError> {
    let store = open(database)?;
    let problems = store.check()?;
    for problem in &problems {
        writeln!(out, "{problem}")?;
    }
    if !problems.is_empty() {
        return Err(CliError::Damaged {
            problems: problems.len(),
        });
    }
    let totals = store.totals()?;
    writeln!(
        out,
        "ok: {} state(s), {} version(s), {} lock(s)",
        totals.states, totals.versions, totals.locks
    )?;
    Ok(())
}

/// Nothing here writes a state, so how many versions are kept is the server's matter: a restore prunes nothing.
fn open(database: &DatabaseArgument) -> Result<SqliteStore, CliError> {
    Ok(SqliteStore::open_existing(&database.path, KeepVersions::ALL)?)
}

impl Row<'_> {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let Row {
            version,
            stored_at,
            author,
            bytes,
            ..
        } = self;
        let mark = if self.current { '*' } else { ' ' };
        let text = |number: Option<u64>| number.map_or("encrypted".to_owned(), |number| number.to_string());
        let (serial, resources) = (text(self.serial), text(self.resources));
        let lineage = self.lineage.unwrap_or("encrypted");
        writeln!(
            out,
            "{mark} {version:>5}  {stored_at}  serial {serial:<5} resources {resources:<5} {bytes:>9} bytes  \
             lineage {lineage}  by {author}"
        )
    }
}

impl<'a> From<&'a Version> for Row<'a> {
    fn from(version: &'a Version) -> Self {
        let identity = version.summary.identity.as_ref();
        Self {
            version: version.number,
            current: version.standing == Standing::Current,
            stored_at: &version.stored_at,
            author: &version.author,
            bytes: version.bytes,
            lineage: identity.map(|Identity { lineage, .. }| lineage.as_str()),
            serial: identity.map(|Identity { serial, .. }| *serial),
            resources: match version.summary.resources {
                Resources::Count(count) => Some(count),
                Resources::Sealed => None,
            },
        }
    }
}
