//! Files by way of commands: `cat`, and a checksum on both sides.

use sha2::{Digest, Sha256};

use super::command::Command;
use super::error::ExecError;
use super::process::Run;

/// `$1` is the path, `$2` the mode, `$3` the checksum.
const WRITE: &str = r#"set -eu
new="$1.provisor-$$"
trap 'rm -f -- "$new"' EXIT
umask 077
cat >"$new"
arrived=$(sha256sum <"$new")
[ "${arrived%% *}" = "$3" ] || { echo "the checksum differs" >&2; exit 1; }
chmod "$2" "$new"
mv -f -- "$new" "$1"
"#;

/// `$1` is the path. The checksum goes to standard error, the content to standard output.
const READ: &str = r#"set -eu
cat -- "$1"
sha256sum <"$1" >&2
"#;

pub(super) fn write_command(path: &str, content: &[u8], mode: u32) -> Command {
    let mode = format!("{mode:o}");
    Command::shell(WRITE)
        .args(["write-file", path, &mode, &checksum(content)])
        .stdin(content)
}

pub(super) fn read_command(path: &str) -> Command {
    Command::shell(READ).args(["read-file", path])
}

pub(super) async fn write(run: Run<'_>, path: &str, content: &[u8]) -> Result<(), ExecError> {
    let output = run.await?;
    if output.status.is_success() {
        return Ok(());
    }
    let reason = format!(
        "{} bytes were not written ({}): {}",
        content.len(),
        output.status,
        output.stderr_text()
    );
    Err(ExecError::File {
        path: path.to_owned(),
        reason,
    })
}

pub(super) async fn read(run: Run<'_>, path: &str) -> Result<Vec<u8>, ExecError> {
    let output = run.await?;
    let said = output.stderr_text();
    let failed = |reason| {
        Err(ExecError::File {
            path: path.to_owned(),
            reason,
        })
    };
    if !output.status.is_success() {
        return failed(format!("it was not read ({}): {said}", output.status));
    }
    if said.split_whitespace().next() != Some(checksum(&output.stdout).as_str()) {
        return failed(
            "the checksum differs; something writes to it, read it when that has ended".to_owned(),
        );
    }
    Ok(output.stdout)
}

pub(crate) fn checksum(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
