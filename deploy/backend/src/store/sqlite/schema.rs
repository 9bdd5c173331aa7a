//! The tables, and how a connection is set up.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// How long a transaction waits for another process, such as the command line beside a server.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Written into the file's header, so that another program's database is never taken for ours: "Prov".
const APPLICATION_ID: u32 = 0x5072_6f76;

/// Grows when the tables change.
const SCHEMA_VERSION: u32 = 1;

/// `versions` only grows and is pruned; `current` points into it. A DELETE takes the pointer away.
const SCHEMA: &str = "
    CREATE TABLE versions (
        key       TEXT    NOT NULL,
        number    INTEGER NOT NULL CHECK (number > 0),
        lineage   TEXT,
        serial    INTEGER CHECK (serial >= 0),
        resources INTEGER CHECK (resources >= 0),
        author    TEXT    NOT NULL,
        stored_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
        body      BLOB    NOT NULL,
        PRIMARY KEY (key, number),
        CHECK ((lineage IS NULL) = (serial IS NULL))
    ) STRICT;
    CREATE TABLE current (
        key    TEXT    NOT NULL PRIMARY KEY,
        number INTEGER NOT NULL,
        FOREIGN KEY (key, number) REFERENCES versions (key, number)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE locks (
        key  TEXT NOT NULL PRIMARY KEY,
        id   TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// Why a file could not be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    /// The file is not there and could not be made.
    #[error("cannot create the database {}: {source}; check its folder and who owns it", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite could not open it.
    #[error("cannot open the database {}: {source}; check that it is there, and who owns it", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// Another program's.
    #[error("{} is the database of another program; choose another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer release's.
    #[error("{} has tables of version {found}, newer than {SCHEMA_VERSION}; use a newer release", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version of its tables.
        found: u32,
    },
}

/// Makes the file with mode 0600 before SQLite sees it: it holds states, which hold secrets. SQLite gives its `-wal`
/// and `-shm` files the same mode.
pub(super) fn create_private(path: &Path) -> Result<(), SqliteError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
        .open(path)
        .map(drop)
        .map_err(|source| SqliteError::Create {
            path: path.to_owned(),
            source,
        })
}

/// Opens the file, and makes the tables where there are none.
pub(super) fn connect(path: &Path) -> Result<Connection, SqliteError> {
    let failed = |source| SqliteError::Open {
        path: path.to_owned(),
        source,
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(failed)?;
    connection
        .pragma_update(None, "foreign_keys", true)
        .map_err(failed)?;

    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(failed)?;
    let number = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let application = number("application_id").map_err(failed)?;
    let version = number("user_version").map_err(failed)?;
    let tables: u32 = transaction
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    match (application, version) {
        (0, 0) if tables == 0 => {
            transaction.execute_batch(SCHEMA).map_err(failed)?;
            transaction
                .pragma_update(None, "application_id", APPLICATION_ID)
                .map_err(failed)?;
            transaction
                .pragma_update(None, "user_version", SCHEMA_VERSION)
                .map_err(failed)?;
        }
        (APPLICATION_ID, SCHEMA_VERSION) => {}
        (APPLICATION_ID, found) => {
            return Err(SqliteError::Newer {
                path: path.to_owned(),
                found,
            });
        }
        _ => {
            return Err(SqliteError::Foreign {
                path: path.to_owned(),
            });
        }
    }
    transaction.commit().map_err(failed)?;
    // After the file is known to be ours: this writes into its header.
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .map_err(failed)?;
    Ok(connection)
}
