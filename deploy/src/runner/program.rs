//! Which program runs the graph, found and checked before any state is touched (TF FR-001).

use std::ffi::OsStr;
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

/// Why no program can be used.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Neither is there.
    #[error(
        "neither `tofu` nor `terraform` is on PATH; install OpenTofu (https://opentofu.org/docs/intro/install/), or give the path of one with --tofu"
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

impl Program {
    /// The one of the setup, else `tofu` on PATH, else `terraform`; its version is checked.
    pub fn find(programs: &Programs, path: Option<&OsStr>) -> Result<Program, ProgramError> {
        let found = match &programs.tofu {
            Some(path) if is_executable(path) => path.clone(),
            Some(path) => return Err(ProgramError::NotAProgram { path: path.clone() }),
            None => ["tofu", "terraform"]
                .into_iter()
                .find_map(|name| find_on_path(name, path))
                .ok_or(ProgramError::NotFound)?,
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
    let digits = rest
        .split(|character: char| character != '.' && !character.is_ascii_digit())
        .next()?;
    let mut numbers = digits.split('.').map(str::parse);
    let mut next = || numbers.next().and_then(Result::ok);
    Some((flavor, Version(next()?, next()?, next()?)))
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
    use std::ffi::OsString;

    #[rstest]
    #[case::opentofu("OpenTofu v1.10.6", Some((Flavor::OpenTofu, Version(1, 10, 6))))]
    #[case::terraform("Terraform v1.11.4", Some((Flavor::Terraform, Version(1, 11, 4))))]
    #[case::a_development_version("Terraform v1.12.0-dev", Some((Flavor::Terraform, Version(1, 12, 0))))]
    #[case::another_line("on linux_amd64", None)]
    #[case::half_a_version("OpenTofu v1.10", None)]
    fn a_version_line_is_read(#[case] line: &str, #[case] expected: Option<(Flavor, Version)>) {
        assert_eq!(read_version(line), expected);
    }

    /// A folder with programs that print a line.
    fn folder(programs: &[(&str, &str)]) -> (tempfile::TempDir, OsString) {
        let folder = tempfile::tempdir().unwrap();
        for (name, line) in programs {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\necho '{line}'\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = folder.path().as_os_str().to_owned();
        (folder, path)
    }

    #[test]
    fn opentofu_on_path_is_preferred_to_terraform() {
        let (folder, path) = folder(&[("tofu", "OpenTofu v1.10.6"), ("terraform", "Terraform v1.11.4")]);
        let program = Program::find(&Programs::default(), Some(&path)).unwrap();
        assert_eq!(
            (program.path, program.flavor),
            (folder.path().join("tofu"), Flavor::OpenTofu)
        );
    }

    #[test]
    fn the_setups_program_is_used_before_any_on_path() {
        let (folder, path) = folder(&[("tofu", "OpenTofu v1.10.6"), ("mine", "Terraform v1.4.0")]);
        let programs = Programs {
            tofu: Some(folder.path().join("mine")),
            ..Programs::default()
        };
        assert_eq!(
            Program::find(&programs, Some(&path)).unwrap().flavor,
            Flavor::Terraform
        );
    }

    #[test]
    fn without_one_the_error_says_how_to_get_one() {
        let (_folder, path) = folder(&[]);
        let error = Program::find(&Programs::default(), Some(&path)).unwrap_err();
        assert!(error.to_string().contains("install OpenTofu"));
    }

    #[rstest]
    #[case::terraform("Terraform v1.3.9")]
    #[case::opentofu("OpenTofu v1.5.9")]
    fn an_old_version_is_refused(#[case] line: &str) {
        let (_folder, path) = folder(&[("tofu", line)]);
        assert!(matches!(
            Program::find(&Programs::default(), Some(&path)),
            Err(ProgramError::TooOld { .. })
        ));
    }

    #[test]
    fn a_program_that_is_neither_is_refused() {
        let (folder, path) = folder(&[("tofu", "hello")]);
        assert!(matches!(
            Program::find(&Programs::default(), Some(&path)),
            Err(ProgramError::Unrecognised { .. })
        ));
        let programs = Programs {
            tofu: Some(folder.path().to_owned()),
            ..Programs::default()
        };
        assert!(matches!(
            Program::find(&programs, None),
            Err(ProgramError::NotAProgram { .. })
        ));
    }
}
