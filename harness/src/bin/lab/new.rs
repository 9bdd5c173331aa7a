//! `lab new`: a project of one's own, with a first scenario that passes.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

/// What to write, and where.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// The folder of the project, which must not be there yet; its last part is the package's name.
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// The folder of the harness's sources, to depend on [default: those this program was built from, if they are a checkout].
    #[arg(long, value_name = "FOLDER")]
    harness: Option<PathBuf>,
}

/// Why there is no project.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NewError {
    /// Cargo would refuse the name.
    #[error("`{name}` cannot name a package: begin with an ASCII letter, then letters, digits, - or _")]
    Name {
        /// The last part of the folder.
        name: String,
    },
    /// Something is there already.
    #[error("{} is there already; choose another name, or remove it", .folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// The sources asked for are none.
    #[error("{} is not the folder of provisor-harness: it has no Cargo.toml; correct --harness", .folder.display())]
    NoHarness {
        /// The folder.
        folder: PathBuf,
    },
    /// Its path cannot stand in a TOML file.
    #[error("{} is not UTF-8, which a Cargo.toml must be; move it", .folder.display())]
    NotText {
        /// The folder.
        folder: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}; check the folder's permissions and free space", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
}

/// Writes the project, and gives its folder.
///
/// # Errors
/// [`NewError`]. What stands there already is never touched.
pub(crate) fn new(asked: &New) -> Result<&Path, NewError> {
    let name = package_name(&asked.folder)?;
    let harness = match &asked.harness {
        Some(folder) => Harness::at(folder)?,
        None => Harness::of_this_build(Path::new(env!("CARGO_MANIFEST_DIR"))),
    };
    fs::create_dir(&asked.folder).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => NewError::Exists {
            folder: asked.folder.clone(),
        },
        _ => write_error(&asked.folder)(source),
    })?;
    for (file, template) in FILES {
        let path = asked.folder.join(file);
        let text = template
            .replace("{{name}}", &name)
            .replace("{{harness}}", &harness.to_string());
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, text))
            .map_err(write_error(&path))?;
    }
    Ok(&asked.folder)
}

const FILES: [(&str, &str); 5] = [
    (
        "Cargo.toml",
        include_str!("../../../templates/project/Cargo.toml.in"),
    ),
    (
        ".config/nextest.toml",
        include_str!("../../../templates/project/nextest.toml"),
    ),
    (".gitignore", include_str!("../../../templates/project/gitignore")),
    ("README.md", include_str!("../../../templates/project/README.md")),
    (
        "tests/hello.rs",
        include_str!("../../../templates/project/hello.rs"),
    ),
];

/// What the project's Cargo.toml says of the harness.
#[derive(Debug, PartialEq, Eq)]
enum Harness {
    Version(&'static str),
    Sources(String),
}

impl Harness {
    /// These sources, which must be some.
    fn at(folder: &Path) -> Result<Self, NewError> {
        if !folder.join("Cargo.toml").is_file() {
            let folder = folder.to_owned();
            return Err(NewError::NoHarness { folder });
        }
        let folder = fs::canonicalize(folder).map_err(write_error(folder))?;
        match folder.to_str() {
            Some(text) => Ok(Self::Sources(text.to_owned())),
            None => Err(NewError::NotText { folder }),
        }
    }

    /// A checkout is depended on where it lies. A registry's copy has the manifest as it was before packaging beside its own, and
    /// is depended on by version.
    fn of_this_build(manifest: &Path) -> Self {
        let packaged = manifest.join("Cargo.toml.orig").exists();
        match Self::at(manifest) {
            Ok(sources) if !packaged => sources,
            _ => Self::Version(env!("CARGO_PKG_VERSION")),
        }
    }
}

impl fmt::Display for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "\"{version}\""),
            // A JSON string is a TOML string too.
            Self::Sources(folder) => write!(f, "{{ path = {} }}", serde_json::Value::from(folder.as_str())),
        }
    }
}

fn package_name(folder: &Path) -> Result<String, NewError> {
    let name = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let goes_on = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if begins && name.chars().all(goes_on) {
        Ok(name)
    } else {
        Err(NewError::Name { name })
    }
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> NewError {
    let path = path.to_owned();
    move |source| NewError::Write { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(folder: PathBuf) -> New {
        New {
            folder,
            harness: None,
        }
    }

    #[test]
    fn the_folder_s_last_part_names_the_package() {
        for (folder, expected) in [
            ("scenarios", Some("scenarios")),
            ("../my-scenarios_2", Some("my-scenarios_2")),
            ("2nd", None),
            ("-x", None),
            ("a b", None),
            ("café", None),
            ("..", None),
            ("", None),
        ] {
            assert_eq!(
                package_name(Path::new(folder)).ok().as_deref(),
                expected,
                "{folder}"
            );
        }
    }

    #[test]
    fn what_is_there_already_is_left_alone() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("scenarios");
        fs::create_dir(&folder).unwrap();
        let message = new(&ask(folder.clone())).unwrap_err().to_string();
        assert!(
            message.ends_with("is there already; choose another name, or remove it"),
            "{message}"
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_without_sources_is_refused_before_anything_is_written() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("scenarios");
        let asked = New {
            folder: folder.clone(),
            harness: Some(base.path().to_owned()),
        };
        assert!(new(&asked).unwrap_err().to_string().contains("correct --harness"));
        assert!(!folder.exists());
    }

    #[test]
    fn a_checkout_is_depended_on_where_it_lies_and_a_package_by_version() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("Cargo.toml"), "").unwrap();
        let sources = Harness::of_this_build(base.path());
        assert!(matches!(&sources, Harness::Sources(_)), "{sources:?}");

        fs::write(base.path().join("Cargo.toml.orig"), "").unwrap();
        let version = Harness::of_this_build(base.path());
        assert_eq!(version.to_string(), format!("\"{}\"", env!("CARGO_PKG_VERSION")));
        assert_eq!(Harness::of_this_build(&base.path().join("gone")), version);
    }

    #[test]
    fn a_path_with_quotes_stays_one_string() {
        let harness = Harness::Sources(r#"/home/a "b\c"#.to_owned());
        assert_eq!(harness.to_string(), r#"{ path = "/home/a \"b\\c" }"#);
    }
}
