//! A command that runs: to be watched, or to be waited for.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc;

use super::command::Command;
use super::error::ExecError;
use super::output::{ExitStatus, Output};

/// A future of a trait that can be used as an object.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which of its two streams a command wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What happens while a command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It wrote these bytes. The pieces need not be lines.
    Output(Stream, Vec<u8>),
    /// It ended; nothing follows.
    Ended(ExitStatus),
    /// Its deadline passed and it was killed; nothing follows.
    DeadlinePassed,
}

/// What a transport knows of a command that it runs. Dropping it kills the command.
pub(crate) trait RunningCommand: Send {
    /// The next event. Cancelling it loses nothing. After the last event it is not called again.
    fn next(&mut self) -> BoxFuture<'_, Event>;

    /// Where more input goes, if the command's input stays open. Dropping it ends the input.
    fn take_input(&mut self) -> Option<InputSender>;
}

/// The way of more input to a command.
pub(crate) type InputSender = mpsc::UnboundedSender<Vec<u8>>;

/// A running command. Dropping it before it has ended kills it, with its descendants.
#[must_use = "dropping a process kills it"]
pub struct Process {
    running: Box<dyn RunningCommand>,
    input: Option<InputSender>,
    ended: bool,
}

impl Process {
    pub(crate) fn new(mut running: impl RunningCommand + 'static) -> Self {
        Self {
            input: running.take_input(),
            running: Box::new(running),
            ended: false,
        }
    }

    /// Gives a command whose input [stays open](Command::open_stdin) more to read. Others, and one that has ended, read nothing more.
    pub fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        if let Some(input) = &self.input {
            // A command that has ended reads no more.
            let _ = input.send(bytes.into());
        }
    }

    /// Ends the input of a command whose input stays open.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// What happens next; nothing after the end. Cancelling the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let event = self.running.next().await;
        self.ended = !matches!(event, Event::Output(..));
        Some(event)
    }
}

/// A way to run commands in a machine; see the [module](super) for what it promises.
pub trait Transport: Send + Sync {
    /// Starts a command.
    ///
    /// # Errors
    /// [`ExecError::Invalid`], [`ExecError::Disconnected`] or [`ExecError::Refused`]. A program that does not exist
    /// is no error here: it ends with code 127.
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Process, ExecError>>;
}

/// Running commands, as one wants to write it. Every [`Transport`] has these methods.
pub trait Execute: Transport {
    /// Runs a command to its end. A text is run by `/bin/sh`. Nothing happens before the result is awaited:
    ///
    /// - `run(…).await` gives the [`Output`], whatever the status;
    /// - `run(…).check_ok().await` gives the output of a success, and an error otherwise;
    /// - `run(…).check_err().await` the reverse.
    fn run(&self, command: impl Into<Command>) -> Run<'_> {
        Run {
            command: command.into(),
            started_by: Box::new(|command| self.start(command)),
            on_output: None,
            kept: usize::MAX,
        }
    }

    /// Writes a file by way of a temporary name beside it, and makes sure that it arrived whole.
    ///
    /// # Errors
    /// Those of running a command, or [`ExecError::File`].
    fn write_file<'a>(
        &'a self,
        path: &'a str,
        content: &'a [u8],
        mode: u32,
    ) -> impl Future<Output = Result<(), ExecError>> + Send + 'a {
        super::files::write(
            self.run(super::files::write_command(path, content, mode)),
            path,
            content,
        )
    }

    /// Reads a file, and makes sure that it arrived whole.
    ///
    /// # Errors
    /// Those of running a command, or [`ExecError::File`].
    fn read_file<'a>(
        &'a self,
        path: &'a str,
    ) -> impl Future<Output = Result<Vec<u8>, ExecError>> + Send + 'a {
        super::files::read(self.run(super::files::read_command(path)), path)
    }
}

impl<T: Transport + ?Sized> Execute for T {}

type Start<'a> = Box<dyn FnOnce(Command) -> BoxFuture<'a, Result<Process, ExecError>> + Send + 'a>;
type OnOutput<'a> = Box<dyn FnMut(Stream, &[u8]) + Send + 'a>;

/// A command that runs when it is awaited.
#[must_use = "a command does not run before it is awaited"]
pub struct Run<'a> {
    command: Command,
    started_by: Start<'a>,
    on_output: Option<OnOutput<'a>>,
    kept: usize,
}

impl<'a> Run<'a> {
    /// Calls this with each piece of output as it comes; the [`Output`] has all of it at the end too.
    pub fn on_output(mut self, on_output: impl FnMut(Stream, &[u8]) + Send + 'a) -> Self {
        self.on_output = Some(Box::new(on_output));
        self
    }

    /// Keeps only the last so many bytes of each stream for the [`Output`]: for a command that writes more than should be in memory, and
    /// whose output [`Run::on_output`] takes.
    pub fn keep_last(mut self, bytes: usize) -> Self {
        self.kept = bytes;
        self
    }

    /// Sets the time the command has.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.command = self.command.deadline(deadline);
        self
    }

    /// Runs it; it must exit with 0.
    ///
    /// # Errors
    /// [`ExecError::Unexpected`] for another status, else as [`Run`] itself.
    pub async fn check_ok(self) -> Result<Output, ExecError> {
        self.await?.check_ok()
    }

    /// Runs it; it must fail.
    ///
    /// # Errors
    /// [`ExecError::Unexpected`] for exit code 0 or a lost command, else as [`Run`] itself.
    pub async fn check_err(self) -> Result<Output, ExecError> {
        self.await?.check_err()
    }

    async fn finish(mut self) -> Result<Output, ExecError> {
        let (command, deadline) = (self.command.to_string(), self.command.deadline);
        if let Some(reason) = self.command.flaw() {
            return Err(ExecError::Invalid { command, reason });
        }
        let mut process = (self.started_by)(self.command).await?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let kept = self.kept;
        let output = |stdout, stderr, status| Output {
            stdout: last(stdout, kept),
            stderr: last(stderr, kept),
            status,
            command,
        };
        loop {
            match process.next().await {
                Some(Event::Output(stream, bytes)) => {
                    self.on_output
                        .iter_mut()
                        .for_each(|on_output| on_output(stream, &bytes));
                    match stream {
                        Stream::Stdout => keep(&mut stdout, bytes, kept),
                        Stream::Stderr => keep(&mut stderr, bytes, kept),
                    }
                }
                Some(Event::Ended(status)) => return Ok(output(stdout, stderr, status)),
                None => return Ok(output(stdout, stderr, ExitStatus::Lost)),
                Some(Event::DeadlinePassed) => {
                    let output = Box::new(output(stdout, stderr, ExitStatus::Signal(9)));
                    return Err(ExecError::Deadline { deadline, output });
                }
            }
        }
    }
}

/// Adds `bytes`, and cuts off what is too old. Not at each piece, since that would copy all that is kept each time.
fn keep(stream: &mut Vec<u8>, bytes: Vec<u8>, kept: usize) {
    stream.extend(bytes);
    if stream.len() > kept.saturating_mul(2) {
        stream.drain(..stream.len() - kept);
    }
}

/// The last bytes that are to be kept.
fn last(mut stream: Vec<u8>, kept: usize) -> Vec<u8> {
    stream.drain(..stream.len().saturating_sub(kept));
    stream
}

impl<'a> IntoFuture for Run<'a> {
    type Output = Result<Output, ExecError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_the_end_and_takes_no_more_memory_than_twice_that() {
        for kept in [0, 1, 10, 1000] {
            let (mut stream, mut most) = (Vec::new(), 0);
            let all: Vec<u8> = (0..=255).cycle().take(997).collect();
            for piece in all.chunks(7) {
                keep(&mut stream, piece.to_vec(), kept);
                most = most.max(stream.len());
            }
            assert!(most <= 2 * kept + 7, "{most}");
            assert_eq!(
                last(stream, kept),
                all[all.len().saturating_sub(kept)..],
                "{kept}"
            );
        }
    }
}
