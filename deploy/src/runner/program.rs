//! Which program runs the graph, found and checked before any state is touched (TF FR-001).

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::setup::Programs;

/// The program of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Absolute path.
    pub path: PathBuf,
    /// Which of the two it is.
    pub flavor: Flavor,
    /// Its version.
    pub version: Version,
}

/// Two programs that agree in all that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Preferred.
    OpenTofu,
    /// Accepted.
    Terraform,
}

/// Major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

/// Where a program is looked for that the setup does not name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// A `PATH`: first for `tofu`, then for `terraform`.
    pub path: Option<OsString>,
    /// The folder in which `./dev` keeps the releases of OpenTofu that it fetched and verified: `VERSION/tofu`.
    pub fetched: Option<PathBuf>,
}

/// Why no program can be used.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Neither is there.
    #[error(
        "neither `tofu` nor `terraform` is on PATH; install OpenTofu (https://opentofu.org/docs/intro/install/), or give the path of one with --tofu, or have `./dev setup` fetch a release"
    )]
    NotFound,
    /// The setup names a file that cannot be run.
    #[error("{path} is not a program; give the path of OpenTofu or Terraform")]
    NotAProgram {
        /// The path.
        path: PathBuf,
    },
    /// It does not say what it is.
    #[error(
        "{path} does not tell an OpenTofu or Terraform version ({output:?}); give the path of one of them"
    )]
    Unrecognised {
        /// The path.
        path: PathBuf,
        /// The first bytes it printed.
        output: String,
    },
    /// Too old.
    #[error(
        "{path} is {flavor} {version}, and {flavor} {least} or later is needed; update it, or give the path of another with --tofu"
    )]
    TooOld {
        /// The path.
        path: PathBuf,
        /// Which of the two.
        flavor: Flavor,
        /// Its version.
        version: Version,
        /// The least version.
        least: Version,
    },
}

impl Places {
    /// Those of this process: its `PATH`, and the cache of its user.
    pub fn of_this_process() -> Places {
        let folder = |name: &str, below: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .map(|path| path.join(below))
        };
        let cache = folder("PROVISOR_CACHE", "")
            .or_else(|| folder("XDG_CACHE_HOME", "provisor"))
            .or_else(|| folder("HOME", ".cache/provisor"));
        Places {
            path: std::env::var_os("PATH"),
            fetched: cache.map(|cache| cache.join("opentofu")),
        }
    }

    fn tofu(&self) -> Option<PathBuf> {
        ["tofu", "terraform"]
            .into_iter()
            .find_map(|name| find_on_path(name, self.path.as_deref()))
            .or_else(|| newest_release(self.fetched.as_deref()?))
    }
}

impl Program {
    /// The one of the setup, else `tofu` on PATH, else `terraform`, else a release that was fetched; its version is checked.
    pub fn find(programs: &Programs, places: &Places) -> Result<Program, ProgramError> {
        let found = match &programs.tofu {
            Some(path) if is_executable(path) => path.clone(),
            Some(path) => return Err(ProgramError::NotAProgram { path: path.clone() }),
            None => places.tofu().ok_or(ProgramError::NotFound)?,
        };
        Program::check(found)
    }

    /// A command of this program whose environment has no `TF_*` of the operator's: those change what it does.
    pub fn command(&self) -> Command {
        clean_command(&self.path)
    }

    fn check(path: PathBuf) -> Result<Program, ProgramError> {
        let output = clean_command(&path)
            .arg("version")
            .current_dir("/")
            .stdin(Stdio::null())
            .output();
        let text = output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default();
        let Some((flavor, version)) = text.lines().find_map(read_version) else {
            return Err(ProgramError::Unrecognised {
                path,
                output: text.chars().take(80).collect(),
            });
        };
        let least = flavor.least();
        if version < least {
            return Err(ProgramError::TooOld {
                path,
                flavor,
                version,
                least,
            });
        }
        Ok(Program {
            path,
            flavor,
            version,
        })
    }
}

impl Flavor {
    /// The first version with `terraform_data` and the JSON output that we read.
    fn least(self) -> Version {
        match self {
            Flavor::OpenTofu => Version(1, 6, 0),
            Flavor::Terraform => Version(1, 4, 0),
        }
    }
}

/// The first executable file of this name on a PATH.
pub fn find_on_path(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

/// The newest of the fetched releases.
fn newest_release(folder: &Path) -> Option<PathBuf> {
    std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = read_numbers(entry.file_name().to_str()?)?;
            Some((version, entry.path().join("tofu")))
        })
        .filter(|(_, path)| is_executable(path))
        .max()
        .map(|(_, path)| path)
}

/// Whether a path is a file that may be run.
pub fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn clean_command(path: &Path) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"TF_")) {
        command.env_remove(name);
    }
    command
        .env("TF_IN_AUTOMATION", "1")
        .env("CHECKPOINT_DISABLE", "1");
    command
}

/// Reads `OpenTofu v1.10.6` or `Terraform v1.11.4-dev`.
fn read_version(line: &str) -> Option<(Flavor, Version)> {
    let (flavor, rest) = if let Some(rest) = line.strip_prefix("OpenTofu v") {
        (Flavor::OpenTofu, rest)
    } else {
        (Flavor::Terraform, line.strip_prefix("Terraform v")?)
    };
    Some((flavor, read_numbers(rest)?))
}

/// Reads `1.10.6`, whatever follows it.
fn read_numbers(text: &str) -> Option<Version> {
    let digits = text
        .split(|character: char| character != '.' && !character.is_ascii_digit())
        .next()?;
    let mut numbers = digits.split('.').map(str::parse);
    let mut next = || numbers.next().and_then(Result::ok);
    Some(Version(next()?, next()?, next()?))
}

impl std::fmt::Display for Program {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{} {} ({})",
            self.flavor,
            self.version,
            self.path.display()
        )
    }
}

impl std::fmt::Display for Flavor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Flavor::OpenTofu => "OpenTofu",
            Flavor::Terraform => "Terraform",
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::opentofu("OpenTofu v1.10.6", Some((Flavor::OpenTofu, Version(1, 10, 6))))]
    #[case::terraform("Terraform v1.11.4", Some((Flavor::Terraform, Version(1, 11, 4))))]
    #[case::a_development_version("Terraform v1.12.0-dev", Some((Flavor::Terraform, Version(1, 12, 0))))]
    #[case::another_line("on linux_amd64", None)]
    #[case::half_a_version("OpenTofu v1.10", None)]
    fn a_version_line_is_read(#[case] line: &str, #[case] expected: Option<(Flavor, Version)>) {
        assert_eq!(read_version(line), expected);
    }

    /// A folder with programs that print a line, as the only place there is.
    fn folder(programs: &[(&str, &str)]) -> (tempfile::TempDir, Places) {
        let folder = tempfile::tempdir().unwrap();
        for (name, line) in programs {
            write_program(&folder.path().join(name), line);
        }
        let places = Places {
            path: Some(folder.path().as_os_str().to_owned()),
            fetched: None,
        };
        (folder, places)
    }

    fn write_program(path: &Path, line: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("#!/bin/sh\necho '{line}'\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn opentofu_on_path_is_preferred_to_terraform() {
        let (folder, places) = folder(&[("tofu", "OpenTofu v1.10.6"), ("terraform", "Terraform v1.11.4")]);
        let program = Program::find(&Programs::default(), &places).unwrap();
        assert_eq!(
            (program.path, program.flavor),
            (folder.path().join("tofu"), Flavor::OpenTofu)
        );
    }

    #[test]
    fn the_setups_program_is_used_before_any_on_path() {
        let (folder, places) = folder(&[("tofu", "OpenTofu v1.10.6"), ("mine", "Terraform v1.4.0")]);
        let programs = Programs {
            tofu: Some(folder.path().join("mine")),
            ..Programs::default()
        };
        assert_eq!(
            Program::find(&programs, &places).unwrap().flavor,
            Flavor::Terraform
        );
    }

    #[test]
    fn a_fetched_release_is_used_where_path_has_none() {
        let (folder, mut places) = folder(&[]);
        let fetched = folder.path().join("opentofu");
        for version in ["1.9.4", "1.10.6", "1.10.5"] {
            let path = fetched.join(version).join("tofu");
            write_program(&path, &format!("OpenTofu v{version}"));
        }
        // One that is being fetched.
        std::fs::create_dir(fetched.join("1.11.0")).unwrap();
        places.fetched = Some(fetched.clone());
        let find = |places| Program::find(&Programs::default(), places).unwrap().path;
        assert_eq!(find(&places), fetched.join("1.10.6/tofu"));

        write_program(&folder.path().join("terraform"), "Terraform v1.11.4");
        assert_eq!(find(&places), folder.path().join("terraform"));
    }

    #[test]
    fn without_one_the_error_says_how_to_get_one() {
        let (_folder, places) = folder(&[]);
        let error = Program::find(&Programs::default(), &places)
            .unwrap_err()
            .to_string();
        assert!(error.contains("install OpenTofu"), "{error}");
        assert!(error.contains("./dev setup"), "{error}");
    }

    #[rstest]
    #[case::terraform("Terraform v1.3.9")]
    #[case::opentofu("OpenTofu v1.5.9")]
    fn an_old_version_is_refused(#[case] line: &str) {
        let (_folder, places) = folder(&[("tofu", line)]);
        assert!(matches!(
            Program::find(&Programs::default(), &places),
            Err(ProgramError::TooOld { .. })
        ));
    }

    #[test]
    fn a_program_that_is_neither_is_refused() {
        let (folder, places) = folder(&[("tofu", "hello")]);
        assert!(matches!(
            Program::find(&Programs::default(), &places),
            Err(ProgramError::Unrecognised { .. })
        ));
        let programs = Programs {
            tofu: Some(folder.path().to_owned()),
            ..Programs::default()
        };
        assert!(matches!(
            Program::find(&programs, &Places::default()),
            Err(ProgramError::NotAProgram { .. })
        ));
    }
}
