//! Secrets at rest on the deployer: one private file a grant, with its generation in the same file.
//!
//! Folders have mode 0700 and files 0600. A file is replaced by a rename after an fsync, so that a crash leaves the
//! old value with the old number or the new value with the new number.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use provisor_model::node_plan::{GrantPart, Login};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A value that no log may show.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: String) -> Secret {
        Secret(value)
    }

    /// The value itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// One grant at rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Rises by one each time the grant is made anew.
    pub generation: u64,
    /// What it was made for: where that has changed, the grant is made anew.
    pub made: Made,
    /// The values.
    pub parts: BTreeMap<GrantPart, Secret>,
}

/// What a grant was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Made {
    /// A certificate.
    Certificate {
        /// Its DNS name.
        domain: String,
        /// Its last whole day.
        not_after: Date,
        /// SHA-256 of the CA certificate that signed it, hexadecimal.
        authority: String,
    },
    /// The users of the state backend; the parts tell the rest.
    BackendUsers,
    /// A role's password: for which component of which node, at which provider.
    Role(Login),
    /// An access key, for the same.
    AccessKey(Login),
    /// Nothing any more. The number goes on, so that a grant that is wanted again is not taken for the one before.
    Discarded,
}

/// What is at rest for a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nothing.
    Nothing,
    /// A record.
    Record(Record),
    /// A file with a generation that does not say, in words of this version, what it was made for.
    Unclear {
        /// Its generation.
        generation: u64,
    },
}

/// Why a file at rest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AtRestError {
    /// The file system refused.
    #[error("cannot {action} {path}: {source}; make the state folder writable for you, and for nobody else")]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The content is not what this version writes. The content is not shown.
    #[error(
        "{path} is damaged (line {line}, column {column}); restore it from a backup, or remove it so that it is made anew and deployed again"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line of the first mistake.
        line: usize,
        /// Its column.
        column: usize,
    },
}

impl Record {
    /// Reads a record that must be there.
    pub fn read(path: &Path) -> Result<Record, AtRestError> {
        read(path)
    }

    /// What is left of a discarded grant: its number.
    pub fn discarded(generation: u64) -> Record {
        Record {
            generation,
            made: Made::Discarded,
            parts: BTreeMap::new(),
        }
    }

    /// A part's value.
    pub fn part(&self, part: GrantPart) -> Option<&str> {
        self.parts.get(&part).map(Secret::reveal)
    }
}

/// A folder with the records of one fleet's grants.
#[derive(Clone, Debug)]
pub struct Shelf {
    folder: PathBuf,
}

impl Shelf {
    /// Uses a folder, which is made when something is first written to it.
    pub fn at(folder: &Path) -> Shelf {
        Shelf {
            folder: folder.to_owned(),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a grant's record is. Two names never share a file.
    pub fn path(&self, grant: &str) -> PathBuf {
        self.folder.join(format!("{}.json", file_safe(grant)))
    }

    /// A grant's record, if there is one.
    pub fn record(&self, grant: &str) -> Result<Option<Record>, AtRestError> {
        self.load(&self.path(grant))
    }

    /// What there is for a grant.
    pub fn kept(&self, grant: &str) -> Result<Kept, AtRestError> {
        self.kept_in(&self.path(grant))
    }

    /// What one file of the shelf holds.
    pub(super) fn kept_in(&self, path: &Path) -> Result<Kept, AtRestError> {
        match self.load(path) {
            Ok(None) => Ok(Kept::Nothing),
            Ok(Some(record)) => Ok(Kept::Record(record)),
            Err(damaged @ AtRestError::Damaged { .. }) => {
                let numbered: Numbered = read(path).map_err(|_| damaged)?;
                Ok(Kept::Unclear {
                    generation: numbered.generation,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Every file of grants, whatever made it, sorted.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>, AtRestError> {
        let failed = |source| AtRestError::File {
            action: "read",
            path: self.folder.clone(),
            source,
        };
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    /// Replaces a grant's record.
    pub fn keep(&self, grant: &str, record: &Record) -> Result<(), AtRestError> {
        self.store(&self.path(grant), record)
    }

    /// A file of the shelf, if there is one.
    pub(super) fn load<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, AtRestError> {
        match read(path) {
            Ok(value) => Ok(Some(value)),
            Err(AtRestError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces a file of the shelf.
    pub(super) fn store<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), AtRestError> {
        let failed = |source| AtRestError::File {
            action: "write",
            path: path.to_owned(),
            source,
        };
        let text = serde_json::to_vec_pretty(value).map_err(|error| failed(error.into()))?;
        self.write(path, &text).map_err(failed)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        std::fs::set_permissions(&self.folder, std::fs::Permissions::from_mode(0o700))?;
        // A named temporary file has mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        std::fs::File::open(&self.folder)?.sync_all()
    }
}

/// The least that a file of a grant has said in any version.
#[derive(Deserialize)]
struct Numbered {
    generation: u64,
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, AtRestError> {
    let text = std::fs::read(path).map_err(|source| AtRestError::File {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|error| AtRestError::Damaged {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
    })
}

/// Bytes outside `[A-Za-z0-9_-]` become `%XX`: injective, and never a path of its own.
fn file_safe(name: &str) -> String {
    let mut safe = String::new();
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => safe.push(char::from(byte)),
            _ => safe.push_str(&format!("%{byte:02X}")),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(generation: u64, value: &str) -> Record {
        Record {
            generation,
            made: Made::BackendUsers,
            parts: BTreeMap::from([(GrantPart::Users, Secret::new(value.into()))]),
        }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_record_is_private_and_comes_back_as_it_went() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(&directory.path().join("state/grants"));
        assert_eq!(shelf.record("a/b").unwrap(), None);
        shelf.keep("a/b", &record(3, "value")).unwrap();
        assert_eq!(shelf.record("a/b").unwrap(), Some(record(3, "value")));
        assert_eq!(mode(shelf.folder()), 0o700);
        assert_eq!(mode(&shelf.path("a/b")), 0o600);
    }

    #[test]
    fn a_folder_that_was_open_to_others_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("grants");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        Shelf::at(&folder).keep("a", &record(1, "value")).unwrap();
        assert_eq!(mode(&folder), 0o700);
    }

    /// Whoever has the old file open goes on reading the old value with the old number: it is never written over.
    #[test]
    fn a_record_is_replaced_and_never_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(directory.path());
        shelf.keep("a", &record(1, "old")).unwrap();
        let mut open = std::fs::File::open(shelf.path("a")).unwrap();
        shelf.keep("a", &record(2, "new")).unwrap();
        let before: Record = serde_json::from_reader(&mut open).unwrap();
        assert_eq!(before, record(1, "old"));
        assert_eq!(shelf.record("a").unwrap(), Some(record(2, "new")));
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }

    #[test]
    fn names_never_share_a_file_nor_leave_the_folder() {
        let shelf = Shelf::at(Path::new("/grants"));
        let names = ["a/b", "a%2Fb", "a-b", "../a", ".", "A/b"];
        let paths: std::collections::BTreeSet<_> = names.iter().map(|name| shelf.path(name)).collect();
        assert_eq!(paths.len(), names.len());
        assert!(
            paths
                .iter()
                .all(|path| path.parent() == Some(Path::new("/grants")))
        );
    }

    #[test]
    fn a_value_is_in_no_debug_output_and_in_no_error() {
        assert!(!format!("{:?}", record(1, "canary")).contains("canary"));
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(directory.path());
        std::fs::write(shelf.path("a"), r#"{"generation": "canary"}"#).unwrap();
        let error = shelf.record("a").unwrap_err();
        assert!(matches!(error, AtRestError::Damaged { .. }));
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
}
