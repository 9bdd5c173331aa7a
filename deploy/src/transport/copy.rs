//! Sending a closure: what the host lacks is asked first and once more afterwards, so that a copy is proved.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::host::{Host, HostError};
use super::job::Job;
use crate::process::{self, ProcessError};

/// What a copy came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Store paths the host lacked.
    pub paths: usize,
    /// Their size as archives (NAR), which is what goes over the wire.
    pub bytes: u64,
}

/// Why a closure is not on the host.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The host gave no answer.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A program could not be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The local store does not know the system.
    #[error("the local Nix store cannot tell the closure of {system}: {reason}; build the fleet again")]
    Closure {
        /// The system.
        system: PathBuf,
        /// Nix's last lines.
        reason: String,
    },
    /// `nix copy` failed.
    #[error("copying the closure failed:\n{reason}\n{advice}")]
    Copy {
        /// Exit code, where there was one.
        code: Option<i32>,
        /// Nix's last lines.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
    /// The host's store could not be asked.
    #[error(
        "the host cannot tell which store paths it has: {reason}; install Nix there (`nix-store` must be on PATH)"
    )]
    Ask {
        /// The host's last lines.
        reason: String,
    },
    /// After the copy the host still lacks paths.
    #[error(
        "{count} store paths did not arrive, {first} among them; check the host's disk, then apply again"
    )]
    Incomplete {
        /// How many.
        count: usize,
        /// One of them.
        first: String,
    },
}

/// The system's closure in the local store, dependencies first.
pub fn closure(job: &Job) -> Result<Vec<String>, CopyError> {
    let mut command = nix_store(job);
    command.args(["--query", "--requisites"]).arg(&job.entry.system);
    query(command, job)
}

/// The paths of `closure` that the host does not have.
pub fn missing(host: &Host, job: &Job, closure: &[String]) -> Result<Vec<String>, CopyError> {
    let answer = host.run(
        include_str!("remote/missing.sh"),
        &[],
        closure.join("\n").as_bytes(),
        job.deadlines.step(),
    )?;
    if answer.code != 0 {
        return Err(CopyError::Ask {
            reason: process::last_lines(&answer.stderr, 3),
        });
    }
    Ok(answer.all("missing").map(str::to_owned).collect())
}

/// Sends what is missing; nothing is started when nothing is.
pub fn send(host: &Host, job: &Job, missing: &[String]) -> Result<Sent, CopyError> {
    if missing.is_empty() {
        return Ok(Sent { paths: 0, bytes: 0 });
    }
    let bytes = sizes(job, missing)?;
    let mut command = Command::new(tool(job, "nix"));
    command
        .args(["--extra-experimental-features", "nix-command", "copy", "--to"])
        .arg(format!("ssh://{}", host.name()))
        .arg(&job.entry.system);
    let finished = process::run(host.lend_to(&mut command), b"", job.deadlines.copy(), &mut |_| {})?;
    if !finished.status.success() {
        let reason = finished.last_lines();
        return Err(CopyError::Copy {
            code: finished.status.code(),
            advice: advice(&reason),
            reason,
        });
    }
    Ok(Sent {
        paths: missing.len(),
        bytes,
    })
}

/// Proves that the closure is there.
pub fn verify(host: &Host, job: &Job, closure: &[String]) -> Result<(), CopyError> {
    let missing = missing(host, job, closure)?;
    match missing.first() {
        None => Ok(()),
        Some(first) => Err(CopyError::Incomplete {
            count: missing.len(),
            first: first.clone(),
        }),
    }
}

fn sizes(job: &Job, paths: &[String]) -> Result<u64, CopyError> {
    // In portions: a large closure is longer than a command line may be.
    let mut bytes = 0;
    for portion in paths.chunks(500) {
        let mut command = nix_store(job);
        command.args(["--query", "--size"]).args(portion);
        bytes += query(command, job)?
            .iter()
            .filter_map(|line| line.parse::<u64>().ok())
            .sum::<u64>();
    }
    Ok(bytes)
}

fn query(mut command: Command, job: &Job) -> Result<Vec<String>, CopyError> {
    let finished = process::run(&mut command, b"", job.deadlines.step(), &mut |_| {})?;
    if !finished.status.success() {
        return Err(CopyError::Closure {
            system: job.entry.system.clone(),
            reason: finished.last_lines(),
        });
    }
    Ok(String::from_utf8_lossy(&finished.stdout)
        .lines()
        .map(str::to_owned)
        .collect())
}

fn nix_store(job: &Job) -> Command {
    Command::new(tool(job, "nix-store"))
}

fn tool(job: &Job, name: &str) -> PathBuf {
    job.nix
        .as_deref()
        .map_or_else(|| Path::new(name).to_owned(), |folder| folder.join(name))
}

fn advice(reason: &str) -> &'static str {
    if reason.contains("lacks a signature by a trusted key") || reason.contains("lacks a valid signature") {
        "let the host trust the sender: log in as root, or add the user to its `trusted-users`, or sign the paths"
    } else if reason.contains("No space left") {
        "make room on the host (`nix-collect-garbage`), then apply again"
    } else {
        "correct it, then apply again"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nix_s_words_lead_to_what_to_do() {
        assert!(advice("error: path lacks a signature by a trusted key").contains("trusted-users"));
        assert!(advice("No space left on device").contains("nix-collect-garbage"));
        assert!(advice("other").contains("apply again"));
    }
}
