use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rstest::rstest;

use super::*;
use crate::state::Document;
use crate::store::conformance::{KEPT, Place, conforms};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("state.db")
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.database(), KeepVersions(NonZeroU32::new(KEPT).unwrap())).unwrap()
    }

    /// Changes the file behind the store's back.
    fn sql(&self, batch: &str) {
        Connection::open(self.database())
            .unwrap()
            .execute_batch(batch)
            .unwrap();
    }
}

impl Place for Folder {
    fn open(&self) -> Box<dyn Store> {
        Box::new(self.store())
    }
}

conforms!(Folder::new);

fn write_one(store: &SqliteStore) {
    let document =
        Document::parse(r#"{"version":4,"serial":1,"lineage":"A","resources":[]}"#.into()).unwrap();
    let write = Write {
        document: &document,
        claim: &Claim::None,
        author: "alice",
    };
    store.write(&"web".parse().unwrap(), &write).unwrap();
    store
        .lock(
            &"web".parse().unwrap(),
            &Lock::parse(r#"{"ID":"x"}"#.into()).unwrap(),
        )
        .unwrap();
}

#[test]
fn all_files_are_readable_by_their_owner_only() {
    let folder = Folder::new();
    let store = folder.store();
    write_one(&store);
    let mut modes: Vec<_> = std::fs::read_dir(folder.0.path())
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            (entry.file_name().into_string().unwrap(), mode)
        })
        .collect();
    modes.sort();
    let expected = ["state.db", "state.db-shm", "state.db-wal"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(modes, expected);
}

#[test]
fn a_commit_waits_for_the_disk() {
    let store = Folder::new().store();
    let connection = store.connection();
    let ask = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, String>(0));
    assert_eq!(ask("journal_mode").unwrap(), "wal");
    let synchronous: u32 = connection
        .pragma_query_value(None, "synchronous", |row| row.get(0))
        .unwrap();
    assert_eq!(synchronous, 2, "2 is FULL");
}

#[test]
fn a_database_that_must_exist_is_not_made() {
    let folder = Folder::new();
    let opened = SqliteStore::open_existing(&folder.database(), KeepVersions::default());
    assert!(matches!(opened, Err(SqliteError::Open { .. })));
    assert!(!folder.database().exists());
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let folder = Folder::new();
    folder.sql("CREATE TABLE theirs (a)");
    let before = std::fs::read(folder.database()).unwrap();
    let opened = SqliteStore::open(&folder.database(), KeepVersions::default());
    assert!(matches!(opened, Err(SqliteError::Foreign { .. })));
    assert_eq!(std::fs::read(folder.database()).unwrap(), before);
}

#[test]
fn a_newer_database_is_refused() {
    let folder = Folder::new();
    drop(folder.store());
    folder.sql("PRAGMA user_version = 2");
    let opened = SqliteStore::open(&folder.database(), KeepVersions::default());
    assert!(matches!(opened, Err(SqliteError::Newer { found: 2, .. })));
}

#[rstest]
#[case::lost_version(
    "PRAGMA foreign_keys = 0; DELETE FROM versions",
    "web: version 1 is current but is not stored"
)]
#[case::other_bytes(
    r#"UPDATE versions SET body = CAST('{"version":4,"serial":2,"lineage":"A"}' AS BLOB)"#,
    "web: version 1: its bytes are not what its row says"
)]
#[case::no_state("UPDATE versions SET body = x'00'", "web: version 1: the body is not a state")]
#[case::no_lock("UPDATE locks SET body = x'00'", "web: lock: the body is not a lock")]
#[case::other_lock(
    r#"UPDATE locks SET body = CAST('{"ID":"y"}' AS BLOB)"#,
    "web: lock: its bytes are not what its row says"
)]
#[case::no_key(
    "PRAGMA foreign_keys = 0; UPDATE versions SET key = '..'; UPDATE current SET key = '..'",
    "..: \"..\" cannot be a part of a state's name"
)]
fn damage_is_found(#[case] damage: &str, #[case] problem: &str) {
    let folder = Folder::new();
    let store = folder.store();
    write_one(&store);
    folder.sql(damage);
    let problems = store.check().unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with(problem), "{problems:?}");
}

#[test]
fn a_busy_database_is_told_from_a_broken_one() {
    let folder = Folder::new();
    let store = folder.store();
    store
        .connection()
        .busy_timeout(std::time::Duration::ZERO)
        .unwrap();
    let mut other = Connection::open(folder.database()).unwrap();
    let _held = other
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    let answer = store.unlock(&"web".parse().unwrap(), &Release::Forced);
    assert!(matches!(answer, Err(StoreError::Busy)));
}
