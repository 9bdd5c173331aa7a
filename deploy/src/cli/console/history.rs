//! Lines of earlier sessions, in a file that only its user can read.
//!
//! No verb takes a secret as an argument. A line is kept only if it is a verb's, so that a password typed at the wrong
//! moment is not, and only if it holds no address with a login in it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// How many lines a session starts with. The file is cut to them when it has twice as many.
const LINES: usize = 1000;

/// The file, or nothing where it cannot be used.
#[derive(Debug)]
pub(super) struct History {
    path: PathBuf,
    file: File,
    lines: Vec<String>,
}

impl History {
    /// Opens `console-history` in the state home, and makes both where they are missing.
    pub(super) fn open(state_home: &Path) -> io::Result<History> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(state_home)?;
        let path = state_home.join("console-history");
        let mut lines: Vec<String> = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes)
                .lines()
                .map(str::to_owned)
                .collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
            Err(error) => return Err(error),
        };
        if lines.len() > 2 * LINES {
            lines.drain(..lines.len() - LINES);
            replace(&path, &lines)?;
        }
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        Ok(History { path, file, lines })
    }

    /// The last lines, oldest first.
    pub(super) fn lines(&self) -> &[String] {
        &self.lines[self.lines.len().saturating_sub(LINES)..]
    }

    /// Keeps a line that a verb was run with.
    pub(super) fn keep(&mut self, line: &str) -> io::Result<()> {
        if holds_login(line) {
            return Ok(());
        }
        // One write, so that lines of two sessions do not mix.
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a word has the form `scheme://user…@host`.
fn holds_login(line: &str) -> bool {
    line.split_whitespace().any(|word| {
        word.split_once("://")
            .is_some_and(|(_, rest)| rest.split('/').next().is_some_and(|host| host.contains('@')))
    })
}

fn replace(path: &Path, lines: &[String]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // A temporary file is 0600 from its first moment.
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    for line in lines {
        writeln!(new, "{line}")?;
    }
    new.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn lines_come_back_in_order_from_a_file_of_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("state/provisor");
        let mut history = History::open(&home).unwrap();
        history.keep("check").unwrap();
        history.keep("show app").unwrap();
        assert_eq!((mode(&home), mode(history.path())), (0o700, 0o600));
        assert_eq!(History::open(&home).unwrap().lines(), ["check", "show app"]);
    }

    #[test]
    fn a_file_that_others_could_read_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("console-history");
        std::fs::write(&path, "check\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let history = History::open(folder.path()).unwrap();
        assert_eq!((mode(&path), history.lines()), (0o600, &["check".to_owned()][..]));
    }

    #[test]
    fn a_line_with_a_login_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = History::open(folder.path()).unwrap();
        history
            .keep("backend check --database postgres://alice:canary@db/states")
            .unwrap();
        history
            .keep("backend check --database postgres://db/a@b")
            .unwrap();
        assert_eq!(
            std::fs::read_to_string(history.path()).unwrap(),
            "backend check --database postgres://db/a@b\n"
        );
    }

    #[test]
    fn a_long_file_is_cut_to_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let text: String = (0..=2 * LINES).map(|n| format!("show node-{n}\n")).collect();
        let path = folder.path().join("console-history");
        std::fs::write(&path, text).unwrap();
        let history = History::open(folder.path()).unwrap();
        assert_eq!(
            history.lines().last().unwrap(),
            &format!("show node-{}", 2 * LINES)
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), LINES);
        assert_eq!(mode(&path), 0o600);
    }
}
