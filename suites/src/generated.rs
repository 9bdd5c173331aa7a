//! The files that are generated from the list: what they are to be, and how the committed ones differ.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::profiles::{self, Vms};
use crate::registry::{Registry, RegistryError};
use crate::workflows;

/// The first lines of every generated file.
pub const NOTICE: &str = "# Generated from suites/suites.toml by `cargo run -p provisor-suites -- generate`: edit that, not this.\n";

/// The folder that holds workflows and nothing else.
const WORKFLOWS: &str = ".forgejo/workflows";

/// A failure to read the list, or to read or write a generated file.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The list is wrong.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A file could not be read or written.
    #[error("{path}: {source}; run it in a checkout that you may write to")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// How a committed file differs from what is generated.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Difference {
    /// It is not there.
    Missing(PathBuf),
    /// It has another text.
    Changed(PathBuf),
    /// It is a workflow of no suite.
    Stale(PathBuf),
}

/// Reads `suites/suites.toml` of the workspace at `root`.
///
/// # Errors
///
/// The file cannot be read, or the list is wrong.
pub fn registry(root: &Path) -> Result<Registry, GenerateError> {
    let path = root.join("suites/suites.toml");
    let text = fs::read_to_string(&path).map_err(|source| GenerateError::Io { path, source })?;
    Ok(Registry::parse(&text)?)
}

/// Every generated file: its path below the root, and its text.
#[must_use]
pub fn files(registry: &Registry) -> BTreeMap<PathBuf, String> {
    let workflow = |name: &str| Path::new(WORKFLOWS).join(format!("{name}.yaml"));
    let mut files = BTreeMap::from([
        (
            PathBuf::from(".config/nextest.toml"),
            profiles::render(registry, Vms::On),
        ),
        (
            PathBuf::from(".config/nextest-without-vms.toml"),
            profiles::render(registry, Vms::Off),
        ),
        (workflow("weekly"), workflows::weekly()),
    ]);
    for (name, suite) in registry.suites() {
        files.insert(workflow(name.as_str()), workflows::suite(name, suite));
    }
    files
}

/// How the files below `root` differ from `files`: missing ones first, then changed, then stale ones.
///
/// # Errors
///
/// A file or the folder of the workflows cannot be read.
pub fn differences(root: &Path, files: &BTreeMap<PathBuf, String>) -> Result<Vec<Difference>, GenerateError> {
    let mut differences = Vec::new();
    for (path, text) in files {
        match fs::read_to_string(root.join(path)) {
            Ok(found) if found == *text => {}
            Ok(_) => differences.push(Difference::Changed(path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                differences.push(Difference::Missing(path.clone()));
            }
            Err(source) => {
                return Err(GenerateError::Io {
                    path: path.clone(),
                    source,
                });
            }
        }
    }
    let stale = workflows_below(root)?
        .into_iter()
        .filter(|path| !files.contains_key(path));
    differences.extend(stale.map(Difference::Stale));
    differences.sort();
    Ok(differences)
}

/// Makes the files below `root` what they are to be, and says what had to change.
///
/// # Errors
///
/// A file cannot be read, written or removed.
pub fn write(root: &Path, files: &BTreeMap<PathBuf, String>) -> Result<Vec<Difference>, GenerateError> {
    let differences = differences(root, files)?;
    for difference in &differences {
        let (Difference::Missing(path) | Difference::Changed(path) | Difference::Stale(path)) = difference;
        let target = root.join(path);
        let done = match files.get(path) {
            Some(text) => target
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&target, text)),
            None => fs::remove_file(&target),
        };
        done.map_err(|source| GenerateError::Io { path: target, source })?;
    }
    Ok(differences)
}

fn workflows_below(root: &Path) -> Result<Vec<PathBuf>, GenerateError> {
    let folder = root.join(WORKFLOWS);
    let fail = |source| GenerateError::Io {
        path: folder.clone(),
        source,
    };
    match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries
            .map_err(fail)?
            .map(|entry| {
                entry
                    .map(|entry| Path::new(WORKFLOWS).join(entry.file_name()))
                    .map_err(fail)
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::TWO_OF_EACH;

    #[test]
    fn writing_settles_every_difference_and_writing_again_changes_nothing() {
        let root = tempfile::tempdir().expect("a folder");
        let files = files(&Registry::parse(TWO_OF_EACH).expect("a good list"));
        write(root.path(), &files).expect("written");
        assert_eq!(differences(root.path(), &files).expect("read"), []);

        let edited = PathBuf::from(".config/nextest.toml");
        let removed = Path::new(WORKFLOWS).join("vm-x.yaml");
        let stale = Path::new(WORKFLOWS).join("vm-z.yaml");
        fs::write(root.path().join(&edited), "retries = 3\n").expect("edited");
        fs::remove_file(root.path().join(&removed)).expect("removed");
        fs::write(root.path().join(&stale), "name: vm-z\n").expect("added");

        let expected = [
            Difference::Missing(removed),
            Difference::Changed(edited),
            Difference::Stale(stale),
        ];
        assert_eq!(differences(root.path(), &files).expect("read"), expected);
        assert_eq!(write(root.path(), &files).expect("written"), expected);
        assert_eq!(write(root.path(), &files).expect("written"), []);
    }
}
