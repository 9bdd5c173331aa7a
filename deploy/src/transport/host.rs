//! One host over SSH: scripts go there, answers come back, and an answer that was cut off is known as such.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::job::Job;
use super::ssh_config::{self, ConfigError, Paths};
use crate::entry::HostKey;
use crate::process::{self, ProcessError};

/// The ways to one host, for the length of one job. Dropping it closes the shared connection.
#[derive(Debug)]
pub struct Host {
    ssh: PathBuf,
    name: String,
    /// Holds the configuration, the pinned key and the socket; short, and without blanks where the system's
    /// temporary folder has none.
    directory: TempDir,
}

/// A script's whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its `key=value` lines, in order.
    pub values: Vec<(String, String)>,
    /// The script's own exit code.
    pub code: i32,
    /// Its stderr.
    pub stderr: String,
}

impl Answer {
    /// The last value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }

    /// All values of a key.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.values
            .iter()
            .filter(move |(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }
}

/// Why a host gave no whole answer.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The configuration could not be written.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The folder for the connection could not be made.
    #[error("cannot write {path}: {source}; free some space or set TMPDIR to a short writable folder")]
    Directory {
        /// What was to be written.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// OpenSSH could not be run, or the host was silent for too long.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The connection could not be made, or ended before the script did.
    #[error("no answer from {name} ({reason}); {advice}")]
    Lost {
        /// Deployment name.
        name: String,
        /// OpenSSH's last lines.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
}

const PRELUDE: &str = include_str!("remote/prelude.sh");

impl Host {
    /// Writes the configuration of a job's host; nothing is connected yet.
    pub fn new(job: &Job) -> Result<Host, HostError> {
        let failed = |path: &Path, source| HostError::Directory {
            path: path.to_owned(),
            source,
        };
        let parent = std::env::temp_dir();
        let directory = tempfile::Builder::new()
            .prefix("provisor-ssh-")
            .tempdir()
            .map_err(|e| failed(&parent, e))?;
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).map_err(|source| failed(&path, source))?;
            Ok::<PathBuf, HostError>(path)
        };
        let known_hosts = match &job.entry.host_key {
            HostKey::Pinned(key) => write("known_hosts", &ssh_config::pinned_line(&job.entry.name, key))?,
            HostKey::TrustOnFirstUse => {
                let parent = job.known_hosts.parent().unwrap_or(Path::new("."));
                std::fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
                job.known_hosts.clone()
            }
        };
        let control = directory.path().join(CONTROL);
        let paths = Paths {
            known_hosts: &known_hosts,
            control: &control,
        };
        write(CONFIG, &ssh_config::render(&job.entry, paths)?)?;
        Ok(Host {
            ssh: job.ssh.clone(),
            name: job.entry.name.clone(),
            directory,
        })
    }

    /// The host's name for `ssh://<name>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a command that starts OpenSSH by itself use this host's configuration.
    ///
    /// Nix before 2.26 splits `NIX_SSHOPTS` at blanks, so the file is named relative to the command's folder.
    pub fn lend_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(self.directory.path())
            .env("NIX_SSHOPTS", format!("-F {CONFIG}"));
        match self.ssh.parent().filter(|folder| folder.is_absolute()) {
            Some(folder) => command.env("PATH", path_with(folder)),
            None => command,
        }
    }

    /// Runs a script with arguments and `stdin`; the answer is whole or an error.
    pub fn run(
        &self,
        script: &str,
        arguments: &[&str],
        stdin: &[u8],
        deadline: Duration,
    ) -> Result<Answer, HostError> {
        let mut command = Command::new(&self.ssh);
        command
            .arg("-F")
            .arg(self.directory.path().join(CONFIG))
            .arg(&self.name)
            .arg(remote_command(script, arguments));
        let finished = process::run(&mut command, stdin, deadline, &mut |_| {})?;
        let stdout = String::from_utf8_lossy(&finished.stdout);
        match parse(&stdout) {
            Some((values, code)) => Ok(Answer {
                values,
                code,
                stderr: finished.stderr,
            }),
            None => Err(self.lost(&finished.stderr)),
        }
    }

    /// Where the shared connection's socket is.
    #[cfg(test)]
    pub(super) fn control_path(&self) -> PathBuf {
        self.directory.path().join(CONTROL)
    }

    fn lost(&self, stderr: &str) -> HostError {
        let reason = process::last_lines(stderr, 3);
        let reason = if reason.is_empty() {
            "the connection was closed".to_owned()
        } else {
            reason
        };
        HostError::Lost {
            name: self.name.clone(),
            advice: advice(&reason),
            reason,
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let mut command = Command::new(&self.ssh);
        command
            .arg("-F")
            .arg(self.directory.path().join(CONFIG))
            .args(["-O", "exit", &self.name]);
        // With no connection there is nothing to close.
        let _closed = process::run(&mut command, b"", Duration::from_secs(10), &mut |_| {});
    }
}

const CONFIG: &str = "ssh_config";
const CONTROL: &str = "control";

/// `PATH` with a folder before all others.
fn path_with(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    path
}

/// What to do about OpenSSH's words. They are its own and not translated.
fn advice(reason: &str) -> &'static str {
    let says = |part: &str| reason.contains(part);
    if says("Host key verification failed") || says("IDENTIFICATION HAS CHANGED") {
        "its host key is not the expected one: make sure it is the right host, then correct `host_key`, or remove its \
         line from the known_hosts file"
    } else if says("Permission denied") || says("Too many authentication failures") {
        "the login was refused: check the user, and that the host accepts your key"
    } else if says("Could not resolve") {
        "correct its address in fleet.toml"
    } else {
        "check that the host is up and reachable, then apply again"
    }
}

/// The words after the host's name are joined by blanks and read by the login shell: so there is one word, quoted.
fn remote_command(script: &str, arguments: &[&str]) -> String {
    let mut text = format!("sh -c {} provisor", quote(&format!("{PRELUDE}\n{script}")));
    for argument in arguments {
        let _infallible = write!(text, " {}", quote(argument));
    }
    text
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The values and the exit code, or nothing if the last line is missing.
fn parse(stdout: &str) -> Option<(Vec<(String, String)>, i32)> {
    let mut values: Vec<(String, String)> = stdout
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let (key, code) = values.pop()?;
    (key == "code").then_some(())?;
    Some((values, code.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_its_last_line_is_no_answer() {
        assert_eq!(
            parse("a=1\nb=2=3\ncode=0\n"),
            Some((vec![pair("a", "1"), pair("b", "2=3")], 0))
        );
        for cut in ["", "a=1\n", "code=\n", "code=0\na=1\n"] {
            assert_eq!(parse(cut), None, "{cut:?}");
        }
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.into(), value.into())
    }

    /// The login shell reads the words once more: run it through one, as sshd does.
    #[test]
    fn arguments_arrive_as_they_are() {
        let hard = ["a b", "it's", "$HOME", "", "-n", "\"", "back\\slash", "*"];
        let command = remote_command(r#"for word; do echo "word=$word"; done; exit 7"#, &hard);
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        let (values, code) = parse(&String::from_utf8(output.stdout).unwrap()).unwrap();
        assert_eq!(
            values.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(),
            hard
        );
        assert_eq!(code, 7);
    }

    #[test]
    fn openssh_s_words_lead_to_what_to_do() {
        assert!(advice("Host key verification failed.").contains("host_key"));
        assert!(advice("root@h: Permission denied (publickey).").contains("accepts your key"));
        assert!(advice("ssh: Could not resolve hostname x").contains("fleet.toml"));
        assert!(advice("Connection refused").contains("reachable"));
    }
}
