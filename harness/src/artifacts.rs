//! The evidence a test leaves behind: one folder a test, emptied at its start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Overrides the folder under which all tests leave their evidence.
pub const ARTIFACTS_VARIABLE: &str = "PROVISOR_ARTIFACTS";

/// Which test it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestName {
    /// The test binary, without the hash that cargo adds to its name.
    pub binary: String,
    /// The test's full name within it, such as `mesh::a_cut_link_heals`.
    pub test: String,
}

/// One test's folder. Everything in it outlives the test; nothing in it is a secret.
///
/// | file | content |
/// |---|---|
/// | `started`, then `passed`, `failed` or `ended` | how far the test came |
/// | `timeline.txt` | what the test did, on one clock, written as it happens |
/// | `timeline.html` | the same with every line of consoles and journals, for a browser |
/// | `everything.txt` | the same as text |
/// | `memory`, `peak-memory-mib` | what test and guests took together: seconds since 1970 and MiB; the most of it |
/// | `VLAN.pcapng` | the frames of a VLAN, if it was captured |
/// | `MACHINE/command` | QEMU's command line |
/// | `MACHINE/console` | all that the guest's console printed, as bytes |
/// | `MACHINE/journal` | the guest's journal, even of a guest that no command reaches |
/// | `MACHINE/growth` | when both were how long: seconds, bytes, bytes |
/// | `MACHINE/state` | after a failure: units, processes, sockets, memory of the guest, before it was killed |
/// | `MACHINE/stderr` | what QEMU itself said |
/// | `MACHINE/qmp` | the talk with QEMU's monitor |
#[derive(Clone, Debug)]
pub struct Artifacts {
    folder: PathBuf,
}

/// The files of one machine, in its own folder.
#[derive(Clone, Debug)]
pub struct MachineArtifacts {
    /// QEMU's command line, one argument a line.
    pub command: PathBuf,
    /// All that the guest's console printed.
    pub console: PathBuf,
    /// All that the guest's journal said, without the kernel's lines: those are on the console.
    pub journal: PathBuf,
    /// When console and journal were how long.
    pub growth: PathBuf,
    /// What the guest said of itself after a failure.
    pub state: PathBuf,
    /// What QEMU itself said.
    pub stderr: PathBuf,
    /// The talk with QEMU's monitor.
    pub qmp: PathBuf,
}

/// How a test ended, as far as its lab can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The lab was stopped in order, without an error.
    Passed,
    /// The test panicked, or stopping the lab failed.
    Failed,
    /// The lab was dropped without being stopped: the test runner knows more.
    Ended,
}

/// Why there is no folder for the evidence.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactsError {
    /// Neither cargo-nextest nor the thread says which test this is.
    #[error(
        "cannot tell which test this is: run it by cargo nextest or cargo test, or name it by `Lab::named`"
    )]
    Nameless,
    /// The place of the target folder cannot be found.
    #[error("cannot find the target folder: set {ARTIFACTS_VARIABLE} to a folder for the tests' evidence")]
    NoTargetFolder,
    /// The folder cannot be made or emptied.
    #[error("cannot prepare {} for the test's evidence: check its permissions, or set {ARTIFACTS_VARIABLE}", .folder.display())]
    Prepare {
        /// The folder.
        folder: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl TestName {
    /// The test that runs now: by cargo-nextest's environment, else by the name that the standard test runner gives the thread.
    ///
    /// # Errors
    /// [`ArtifactsError::Nameless`] outside a test.
    pub fn current() -> Result<Self, ArtifactsError> {
        let executable = std::env::current_exe().map_err(|_| ArtifactsError::Nameless)?;
        let nextest = std::env::var("NEXTEST_TEST_NAME").ok();
        let thread = std::thread::current()
            .name()
            .map(str::to_owned)
            .filter(|name| name != "main");
        let test = nextest.or(thread).ok_or(ArtifactsError::Nameless)?;
        Ok(Self {
            binary: binary_name(&executable),
            test,
        })
    }
}

impl Artifacts {
    /// Prepares the folder of `test`, empty but for the marker `started`.
    ///
    /// It stands under `$PROVISOR_ARTIFACTS`, or else under `vm-artifacts` in the target folder of the running program.
    ///
    /// # Errors
    /// [`ArtifactsError`].
    pub fn open(test: &TestName) -> Result<Self, ArtifactsError> {
        let base = match std::env::var_os(ARTIFACTS_VARIABLE) {
            Some(chosen) => PathBuf::from(chosen),
            None => std::env::current_exe()
                .ok()
                .and_then(|executable| Some(target_folder(&executable)?.join("vm-artifacts")))
                .ok_or(ArtifactsError::NoTargetFolder)?,
        };
        Self::prepare(base.join(file_safe(&test.binary)).join(file_safe(&test.test)))
    }

    /// Prepares `folder` itself: what is in it goes away.
    ///
    /// # Errors
    /// [`ArtifactsError::Prepare`].
    pub fn prepare(folder: PathBuf) -> Result<Self, ArtifactsError> {
        let empty = || {
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => fs::create_dir_all(&folder)?,
            }
            fs::write(folder.join("started"), "")
        };
        match empty() {
            Ok(()) => Ok(Self { folder }),
            Err(source) => Err(ArtifactsError::Prepare { folder, source }),
        }
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the timeline is written.
    pub fn timeline(&self) -> PathBuf {
        self.folder.join("timeline.txt")
    }

    /// Where the timeline is written for a browser, with all that guests printed.
    pub fn timeline_page(&self) -> PathBuf {
        self.folder.join("timeline.html")
    }

    /// Where the same is written as text.
    pub fn everything(&self) -> PathBuf {
        self.folder.join("everything.txt")
    }

    /// Where it is written what memory the test takes.
    pub fn memory(&self) -> PathBuf {
        self.folder.join("memory")
    }

    /// Where the most of it is written, in MiB.
    pub fn peak_memory(&self) -> PathBuf {
        self.folder.join("peak-memory-mib")
    }

    /// Makes the folder of one machine.
    ///
    /// # Errors
    /// [`ArtifactsError::Prepare`].
    pub fn machine(&self, name: &str) -> Result<MachineArtifacts, ArtifactsError> {
        let folder = self.folder.join(file_safe(name));
        if let Err(source) = fs::create_dir_all(&folder) {
            return Err(ArtifactsError::Prepare { folder, source });
        }
        Ok(MachineArtifacts {
            command: folder.join("command"),
            console: folder.join("console"),
            journal: folder.join("journal"),
            growth: folder.join("growth"),
            state: folder.join("state"),
            stderr: folder.join("stderr"),
            qmp: folder.join("qmp"),
        })
    }

    /// Leaves a marker of how the test ended, with `note` in it.
    pub fn mark(&self, outcome: Outcome, note: &str) {
        let name = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Ended => "ended",
        };
        if let Err(error) = fs::write(self.folder.join(name), note) {
            tracing::warn!(%error, "cannot leave the marker `{name}`");
        }
    }
}

/// The program's name without the hash cargo appends: `guests` of `deps/guests-0123456789abcdef`.
fn binary_name(executable: &Path) -> String {
    let name = executable.file_stem().unwrap_or_default().to_string_lossy();
    match name.rsplit_once('-') {
        Some((stem, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            stem.to_owned()
        }
        _ => name.into_owned(),
    }
}

/// The target folder of a program in `TARGET/PROFILE/`, `TARGET/PROFILE/deps/` or `TARGET/TRIPLE/PROFILE/deps/`: the nearest one
/// that cargo marked with `CACHEDIR.TAG`, else the folder of the profile.
pub(crate) fn target_folder(executable: &Path) -> Option<PathBuf> {
    let marked = executable
        .ancestors()
        .skip(1)
        .find(|folder| folder.join("CACHEDIR.TAG").is_file());
    let parent = executable.parent()?;
    let profile = if parent.ends_with("deps") {
        parent.parent()?
    } else {
        parent
    };
    Some(marked.unwrap_or(profile).to_owned())
}

/// `name` as one path component: `::` becomes a dot, and what may not stand in a file's name an underscore.
pub(crate) fn file_safe(name: &str) -> String {
    let safe = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' => character,
        _ => '_',
    };
    let name: String = name.replace("::", ".").chars().map(safe).collect();
    if name.starts_with('.') {
        format!("_{name}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_finds_its_own_name() {
        let name = TestName::current().unwrap();
        assert_eq!(name.binary, "provisor_harness");
        assert_eq!(name.test, "artifacts::tests::a_test_finds_its_own_name");
    }

    #[test]
    fn cargo_s_hash_is_not_part_of_the_binary_s_name() {
        let cases = [
            ("/t/debug/deps/guests-0123456789abcdef", "guests"),
            ("/t/debug/deps/two-guests-0123456789abcdef", "two-guests"),
            ("/t/debug/two-guests", "two-guests"),
        ];
        for (executable, name) in cases {
            assert_eq!(binary_name(Path::new(executable)), name);
        }
    }

    #[test]
    fn the_target_folder_is_the_one_cargo_marked_or_else_the_profile_s() {
        let target = tempfile::tempdir().unwrap();
        let deps = target.path().join("x86_64-unknown-linux-gnu/debug/deps");
        fs::create_dir_all(&deps).unwrap();
        assert_eq!(
            target_folder(&deps.join("guests")).unwrap(),
            deps.parent().unwrap()
        );

        fs::write(target.path().join("CACHEDIR.TAG"), "").unwrap();
        assert_eq!(target_folder(&deps.join("guests")).unwrap(), target.path());
    }

    #[test]
    fn a_name_stays_one_path_component() {
        let cases = [
            ("mesh::a_link_heals", "mesh.a_link_heals"),
            ("case/1 é", "case_1__"),
            ("..", "_.."),
            ("::hidden", "_.hidden"),
        ];
        for (name, component) in cases {
            assert_eq!(file_safe(name), component);
        }
    }

    #[test]
    fn a_second_run_finds_nothing_of_the_first() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("guests").join("a_test");
        let first = Artifacts::prepare(folder.clone()).unwrap();
        fs::write(first.machine("app").unwrap().console, "old").unwrap();
        first.mark(Outcome::Failed, "why");

        Artifacts::prepare(folder.clone()).unwrap();
        let names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["started"]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named_with_the_way_out() {
        let base = tempfile::NamedTempFile::new().unwrap();
        let message = Artifacts::prepare(base.path().join("test"))
            .unwrap_err()
            .to_string();
        assert!(message.contains(&base.path().display().to_string()), "{message}");
        assert!(message.ends_with("or set PROVISOR_ARTIFACTS"), "{message}");
    }
}
