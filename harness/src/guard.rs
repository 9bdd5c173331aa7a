//! Programs that never outlive the process that started them, however that process ends.
//!
//! The program is started by a small guard (the agent's program, see [`crate::agent::PROGRAM`]), which holds one end of a
//! socket. When this process ends, by SIGKILL too, the kernel closes the other end, and the guard kills the program
//! and all its descendants. If the guard itself is killed, the kernel kills the program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;

use crate::agent::{InstallError, install};

/// A program to be guarded.
///
/// It gets exactly the environment given here, `/dev/null` as its standard input, and a process group of its own, so
/// that a Ctrl-C at a terminal does not reach it.
#[derive(Debug)]
pub struct Guard {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
    output: Stdio,
    errors: Stdio,
}

/// How a guarded program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It exited with this code.
    Exited(u8),
    /// This signal killed it; 9 also if it was killed by [`Guarded::kill`].
    Signal(i32),
    /// Its guard was killed. The kernel has killed the program, but how it ended is not known.
    Unknown,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The guard's program could not be stored.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The guard did not start.
    #[error("cannot start the guard {}: {source}; see that its file system allows programs", path.display())]
    Guard {
        /// The guard's program.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The guard did not start the program.
    #[error("cannot start {}: {reason}; install it, or put the right path", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// What the kernel said.
        reason: String,
    },
}

impl Guard {
    /// A program by its path; a mere name is looked for in `/bin` and `/usr/bin`. Its output goes nowhere.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            output: Stdio::null(),
            errors: Stdio::null(),
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable. The program sees no others.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Where its standard output goes. Never this process's own: who waits for the end of that would wait for the
    /// program.
    pub fn stdout(mut self, file: File) -> Self {
        self.output = file.into();
        self
    }

    /// Where its standard error goes.
    pub fn stderr(mut self, file: File) -> Self {
        self.errors = file.into();
        self
    }

    /// Starts it. The guard's program is stored in `cache` if it is not there yet.
    ///
    /// # Errors
    /// A [`GuardError`]; then nothing runs.
    pub async fn spawn(self, cache: &Path) -> Result<Guarded, GuardError> {
        let path = install(cache)?;
        let program = self.program.clone();
        let failed = |source| GuardError::Guard {
            path: path.clone(),
            source,
        };
        let stream = self.start(&path).map_err(failed)?;
        let (status, hold) = UnixStream::from_std(stream).map_err(failed)?.into_split();
        let mut lines = BufReader::new(status).lines();
        let pid = match Word::next(&mut lines).await {
            Some(Word::Pid(pid)) => pid,
            Some(Word::Failed(reason)) => return Err(GuardError::Program { program, reason }),
            _ => {
                return Err(failed(io::Error::other(
                    "it ended before it had started the program",
                )));
            }
        };
        let (sender, death) = watch::channel(None);
        tokio::spawn(async move {
            let death = Word::next(&mut lines)
                .await
                .and_then(Word::death)
                .unwrap_or(Death::Unknown);
            sender.send_replace(Some(death));
        });
        Ok(Guarded {
            pid,
            hold: Some(hold),
            death,
        })
    }

    fn start(self, guard: &Path) -> io::Result<StdUnixStream> {
        let (ours, theirs) = StdUnixStream::pair()?;
        let mut command = Command::new(guard);
        command
            .args(["guard", "--"])
            .arg(&self.program)
            .args(&self.arguments);
        command.env_clear().envs(&self.environment);
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(self.output)
            .stderr(self.errors);
        // A signal to the group of this process must not end the guard before its work is done.
        let mut guard = command.process_group(0).spawn()?;
        ours.set_nonblocking(true)?;
        // A thread of its own reaps the guard: the last thing it says comes a moment before its end.
        std::thread::spawn(move || guard.wait());
        Ok(ours)
    }
}

/// A program under guard. Dropping this kills it; [`Guarded::kill`] also waits until it is gone.
pub struct Guarded {
    pid: u32,
    /// The end that the guard watches.
    hold: Option<OwnedWriteHalf>,
    death: watch::Receiver<Option<Death>>,
}

impl Guarded {
    /// The program's own process number, not that of its guard.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it and all its descendants have ended and are reaped. Any number may wait, at any time.
    pub async fn wait(&self) -> Death {
        let mut death = self.death.clone();
        match death.wait_for(Option::is_some).await {
            Ok(death) => death.unwrap_or(Death::Unknown),
            Err(_) => Death::Unknown,
        }
    }

    /// How it ended, if it has.
    pub fn death(&self) -> Option<Death> {
        *self.death.borrow()
    }

    /// Kills it with all its descendants and returns when they are gone. If it has ended before, only tells how.
    pub async fn kill(&mut self) -> Death {
        // Dropping the half closes it for the guard.
        self.hold = None;
        self.wait().await
    }
}

impl Guarded {
    /// Gives away what the guard watches: the program now lives for as long as the answer, or a copy of it in another process, is
    /// open, whatever becomes of this value.
    ///
    /// # Errors
    /// It was killed before, or no descriptor is left.
    pub(crate) fn keep(&mut self) -> io::Result<OwnedFd> {
        let hold = self.hold.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let stream: &UnixStream = hold.as_ref();
        let kept = stream.as_fd().try_clone_to_owned()?;
        // Dropping it would end the connection, for all who hold it.
        if let Some(hold) = self.hold.take() {
            hold.forget();
        }
        Ok(kept)
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("pid", &self.pid)
            .field("death", &self.death())
            .finish()
    }
}

/// What a guard says, a line each.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Pid(u32),
    Failed(String),
    Exit(u8),
    Signal(i32),
}

impl Word {
    async fn next(lines: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<Self> {
        Self::parse(&lines.next_line().await.ok()??)
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "pid" => rest.parse().ok().map(Word::Pid),
            "failed" => Some(Word::Failed(rest.to_owned())),
            "exit" => rest.parse().ok().map(Word::Exit),
            "signal" => rest.parse().ok().map(Word::Signal),
            _ => None,
        }
    }

    fn death(self) -> Option<Death> {
        match self {
            Word::Exit(code) => Some(Death::Exited(code)),
            Word::Signal(signal) => Some(Death::Signal(signal)),
            Word::Pid(_) | Word::Failed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_guard_has_one_meaning() {
        let cases = [
            ("pid 12", Some(Word::Pid(12))),
            (
                "failed No such file (os error 2)",
                Some(Word::Failed("No such file (os error 2)".into())),
            ),
            ("exit 255", Some(Word::Exit(255))),
            ("signal 9", Some(Word::Signal(9))),
            ("exit 256", None),
            ("exit", None),
            ("other 1", None),
        ];
        for (line, word) in cases {
            assert_eq!(Word::parse(line), word, "{line}");
        }
    }
}
