//! Running commands and moving files, with the guest's death and its evidence.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{BootError, Machine, Way};
use crate::agent::{Agent, Bytes, Setup, SetupFile};
use crate::death::Evidence;
use crate::exec::{
    BoxFuture, Command, ExecError, Execute, ExitStatus, Output, Process, Stream, Transport, checksum,
};
use crate::wait::{WaitEnd, WaitError};

/// A command on its way to a guest. Nothing happens before it is awaited, directly or through one of the checks.
#[must_use = "a command does not run before it is awaited"]
pub struct MachineRun<'a> {
    machine: &'a Machine,
    command: Command,
    on_output: Option<OnOutput<'a>>,
    kept: usize,
}

type OnOutput<'a> = Box<dyn FnMut(Stream, &[u8]) + Send + 'a>;

/// Why a command did not do what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The guest died meanwhile.
    #[error(transparent)]
    Died(Box<WaitError>),
    /// The guest did not come back from a reboot.
    #[error(transparent)]
    NotBack(Arc<BootError>),
    /// The guest lives, but the command did not run or did not end as it should.
    #[error("`{machine}`: {error}{evidence}")]
    Failed {
        /// The guest.
        machine: String,
        /// What went wrong.
        error: Box<ExecError>,
        /// Console, QEMU's output, artifacts.
        evidence: Box<Evidence>,
    },
}

impl Machine {
    /// Runs a command by the guest's agent, or by SSH if it has none: a program with arguments, or a text for `/bin/sh`.
    ///
    /// - `run(…).await` gives the [`Output`], whatever the status;
    /// - `run(…).check_ok().await` gives the output of a success, and else an error;
    /// - `run(…).check_err().await` the reverse.
    ///
    /// It ends at once if the guest dies.
    pub fn run(&self, command: impl Into<Command>) -> MachineRun<'_> {
        MachineRun {
            machine: self,
            command: command.into(),
            on_output: None,
            kept: usize::MAX,
        }
    }

    /// Writes the file `path`, which is root's, with these permission bits, such as `0o600`. Missing folders above it are made. It is never
    /// seen half written, and its SHA-256 is compared on both sides.
    ///
    /// The agent writes it itself, without any program: in an emulated guest that is ten times as fast as by a shell.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn put(&self, path: &str, content: impl AsRef<[u8]>, mode: u32) -> Result<(), RunError> {
        let content = content.as_ref();
        self.note(format_args!("writes {path}: {} bytes", content.len()));
        if content.len() > LARGEST_FRAME || !self.has_agent() {
            let way = self.way_alive(path).await?;
            return self
                .while_alive(&format!("writing {path}"), way.write_file(path, content, mode))
                .await;
        }
        let (path, content) = (path.to_owned(), Bytes(content.to_vec()));
        let file = SetupFile {
            path: path.clone(),
            content,
            mode,
            uid: 0,
            gid: 0,
        };
        let wanted = checksum(&file.content.0);
        let setup = Setup {
            files: vec![file],
            ..Setup::default()
        };
        self.set_up(&path, &setup).await?;
        self.has_checksum(&path, &wanted).await
    }

    /// What the guest has at `path` is what was sent.
    async fn has_checksum(&self, path: &str, wanted: &str) -> Result<(), RunError> {
        let agent = self.agent_alive(path).await?;
        let look = async {
            let output = agent
                .run(Command::shell("sha256sum <\"$1\"").args(["sum", path]))
                .await?;
            if output.stdout_text().split_whitespace().next() == Some(wanted) {
                return Ok(());
            }
            let reason = format!("the checksum differs; does something else write to it? {output}");
            Err(ExecError::File {
                path: path.to_owned(),
                reason,
            })
        };
        self.while_alive(&format!("writing {path}"), look).await
    }

    /// Has the agent apply `setup`, which is about `path`.
    pub(super) async fn set_up(&self, path: &str, setup: &Setup) -> Result<(), RunError> {
        let agent = self.agent_alive(path).await?;
        let work = async {
            agent.setup(setup).await.map_err(|error| ExecError::File {
                path: path.to_owned(),
                reason: error.to_string(),
            })
        };
        self.while_alive(&format!("writing {path}"), work).await
    }

    /// Reads the file `path`.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, RunError> {
        let way = self.way_alive(path).await?;
        self.while_alive(&format!("reading {path}"), way.read_file(path))
            .await
    }

    /// The agent, for `what`.
    async fn agent_alive(&self, what: &str) -> Result<Arc<Agent>, RunError> {
        let agent = async { Ok(self.agent().await) };
        self.while_alive(what, agent).await?.map_err(RunError::NotBack)
    }

    /// The way for commands, for `what`.
    async fn way_alive(&self, what: &str) -> Result<Way, RunError> {
        let way = async { Ok(self.way().await) };
        self.while_alive(what, way).await?.map_err(RunError::NotBack)
    }

    pub(super) async fn while_alive<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, ExecError>>,
    ) -> Result<T, RunError> {
        let began = Instant::now();
        match self.death().race(work).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(death) => Err(RunError::Died(Box::new(WaitError {
                machine: self.name().to_owned(),
                what: what.to_owned(),
                waited: began.elapsed(),
                end: WaitEnd::Died { death },
                detail: String::new(),
                evidence: self.evidence(),
            }))),
        }
    }

    pub(super) fn failed(&self, error: ExecError) -> RunError {
        RunError::Failed {
            machine: self.name().to_owned(),
            error: Box::new(error),
            evidence: Box::new(self.evidence()),
        }
    }
}

/// In the same way, for code that takes any way to run commands. What it returns knows nothing of the guest's death but that a command
/// was lost.
impl Transport for Machine {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Process, ExecError>> {
        Box::pin(async move {
            match self.way().await {
                Ok(way) => way.start(command).await,
                Err(_) => Err(ExecError::Disconnected {
                    command: command.to_string(),
                }),
            }
        })
    }
}

impl<'a> MachineRun<'a> {
    /// Sets the time the command has; then it is killed with its descendants.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.command = self.command.deadline(deadline);
        self
    }

    /// Calls this with each piece of output as it comes; the [`Output`] has all of it at the end too.
    pub fn on_output(mut self, on_output: impl FnMut(Stream, &[u8]) + Send + 'a) -> Self {
        self.on_output = Some(Box::new(on_output));
        self
    }

    /// Keeps only the last so many bytes of each stream for the [`Output`].
    pub fn keep_last(mut self, bytes: usize) -> Self {
        self.kept = bytes;
        self
    }

    /// Runs it; it must exit with 0.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn check_ok(self) -> Result<Output, RunError> {
        let machine = self.machine;
        self.await?.check_ok().map_err(|error| machine.failed(error))
    }

    /// Runs it; it must fail.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn check_err(self) -> Result<Output, RunError> {
        let machine = self.machine;
        self.await?.check_err().map_err(|error| machine.failed(error))
    }

    async fn into_output(self) -> Result<Output, RunError> {
        let Self {
            machine,
            command,
            on_output,
            kept,
        } = self;
        let shown = command.to_string();
        machine.note(format_args!("runs `{shown}`"));
        let way = machine.way_alive(&format!("`{shown}`")).await?;
        let run = async {
            let run = way.run(command).keep_last(kept);
            let run = match on_output {
                Some(on_output) => run.on_output(on_output),
                None => run,
            };
            let output = run.await?;
            if output.status == ExitStatus::Lost {
                // The guest's death, if it is one, is noticed a moment after the connection is.
                tokio::time::sleep(DEATH_NOTICE).await;
            }
            Ok(output)
        };
        let output = machine.while_alive(&format!("`{shown}`"), run).await?;
        machine.note(format_args!("`{shown}`: {}", output.status));
        Ok(output)
    }
}

/// What the agent takes at once, with room to spare.
const LARGEST_FRAME: usize = 32 << 20;

/// A killed QEMU closes the agent's channel at once, and is known to be dead within this time.
const DEATH_NOTICE: Duration = Duration::from_millis(500);

impl<'a> IntoFuture for MachineRun<'a> {
    type Output = Result<Output, RunError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.into_output())
    }
}
