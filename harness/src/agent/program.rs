//! The agent's program, which this library carries.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

/// The agent: a static, stripped ELF program for the library's own target.
pub const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/provisor-agent"));

/// The agent's program could not be stored.
#[derive(Debug, thiserror::Error)]
#[error("cannot store the agent's program as {}: {source}; make its folder writable, or choose another", path.display())]
pub struct InstallError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Stores [`PROGRAM`] in a folder, as an executable file named after its content, and gives its path. If it is there
/// already nothing is written, so any number of processes may do this at once.
///
/// # Errors
/// [`InstallError`] if the folder cannot be made or written.
pub fn install(folder: &Path) -> Result<PathBuf, InstallError> {
    let digest = Sha256::digest(PROGRAM);
    let key: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("provisor-agent-{key}"));
    if path.exists() {
        return Ok(path);
    }
    match store(folder, &path) {
        Ok(()) => Ok(path),
        Err(source) => Err(InstallError { path, source }),
    }
}

/// The file is written by a process of its own. If this one had it open for writing, a program that another thread
/// starts meanwhile would inherit the descriptor for a moment, and starting the agent would fail ("text file busy").
fn store(folder: &Path, path: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let random: u64 = rand::random();
    let beside = path.with_extension(format!("{random:016x}.new"));
    let mut writer = Command::new("/bin/sh");
    writer
        .args(["-c", "cat >\"$0\" && chmod 755 \"$0\""])
        .arg(&beside);
    let mut writer = writer
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    // A writer that fails closes its end; what it says tells more than the broken pipe.
    let sent = writer
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(PROGRAM));
    let output = writer.wait_with_output()?;
    let stored = if output.status.success() {
        sent.and_then(|()| fs::rename(&beside, path))
    } else {
        Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
        ))
    };
    if stored.is_err() {
        let _ = fs::remove_file(&beside);
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_stored_once_and_runs() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| install(folder.path()).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(paths.iter().all(|path| *path == paths[0]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read(&paths[0]).unwrap(), PROGRAM);
        let output = Command::new(&paths[0]).output().unwrap();
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .contains("usage: provisor-agent serve PORT")
        );
    }

    #[test]
    fn it_is_static_and_small() {
        // A dynamic program names its interpreter.
        assert!(
            !PROGRAM
                .windows(9)
                .any(|window| window == b"/ld-linux" || window == b"/ld-musl-")
        );
        assert!(PROGRAM.len() < 1_500_000, "{} bytes", PROGRAM.len());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let message = install(&file.join("below")).unwrap_err().to_string();
        assert!(message.contains("file/below/provisor-agent-"), "{message}");
    }
}
