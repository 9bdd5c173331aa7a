//! A command on a terminal of the guest, to talk with.

use std::time::Duration;

use super::{Machine, RunError};
use crate::exec::{Command, Event, ExitStatus, Process, Transport};
use crate::wait::{Deadline, WaitEnd, WaitError};

/// A command that runs on a terminal in the guest. Dropping it kills the command.
#[must_use = "dropping a terminal kills its command"]
pub struct Terminal {
    machine: Machine,
    process: Process,
    command: String,
    /// What it wrote, and how much of that was expected already.
    seen: Vec<u8>,
    expected: usize,
    status: Option<ExitStatus>,
}

/// So much of what it wrote last is told in an error, in bytes.
const SHOWN: usize = 400;

/// How long a command may take to end when nothing more comes.
const PATIENCE: Duration = Duration::from_secs(60);

impl Machine {
    /// Starts a command on a terminal of its own, as somebody who sits before it would: it asks, echoes and edits lines. It needs `script` in
    /// the guest, of the package bsdutils.
    ///
    /// ```no_run
    /// # async fn example(app: provisor_harness::Machine) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut shell = app.terminal("passwd alice").await?;
    /// shell.expect("New password:").await?;
    /// shell.send("s3cret\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn terminal(&self, command: impl Into<Command>) -> Result<Terminal, RunError> {
        let command = command.into();
        let shown = command.to_string();
        self.note(format_args!("runs `{shown}` on a terminal"));
        let way = self.way().await.map_err(RunError::NotBack)?;
        let process = self
            .while_alive(&format!("`{shown}`"), way.start(command.on_terminal()))
            .await?;
        Ok(Terminal {
            machine: self.clone(),
            process,
            command: shown,
            seen: Vec::new(),
            expected: 0,
            status: None,
        })
    }
}

impl Terminal {
    /// Types this. A line ends in `\n`. It may be a secret: it is told nowhere.
    pub fn send(&mut self, text: &str) {
        self.process.send(text);
    }

    /// Waits until it has written `text` since the last text that was expected; answers with all it wrote in between, this one included.
    ///
    /// # Errors
    /// [`WaitError`], with what it wrote last; at once if it has ended.
    pub async fn expect(&mut self, text: &str) -> Result<String, WaitError> {
        let deadline = Deadline::after(self.machine.patience);
        let death = self.machine.death().clone();
        let end = match death.race(deadline.limit(self.read_until(text))).await {
            Ok(Some(true)) => {
                let upto = self.found(text).unwrap_or(self.seen.len());
                let written = String::from_utf8_lossy(&self.seen[self.expected..upto]).into_owned();
                self.expected = upto;
                return Ok(written);
            }
            Ok(Some(false)) => WaitEnd::Hopeless {
                reason: format!("it has ended; it wrote {:?}", self.tail()),
            },
            Ok(None) => WaitEnd::TimedOut {
                last: format!("{:?}", self.tail()),
            },
            Err(death) => WaitEnd::Died { death },
        };
        Err(self.error(format!("{text:?} of `{}`", self.command), deadline, end))
    }

    /// Ends its input, as by Ctrl-D, and waits for its end.
    ///
    /// # Errors
    /// [`WaitError`].
    pub async fn finish(mut self) -> Result<ExitStatus, WaitError> {
        self.process.end_input();
        let deadline = Deadline::after(PATIENCE);
        let death = self.machine.death().clone();
        let ended = async {
            while self.status.is_none() {
                self.read().await;
            }
        };
        let end = match death.race(deadline.limit(ended)).await {
            Ok(Some(())) => return Ok(self.status.unwrap_or(ExitStatus::Lost)),
            Ok(None) => WaitEnd::TimedOut {
                last: format!("{:?}", self.tail()),
            },
            Err(death) => WaitEnd::Died { death },
        };
        Err(self.error(format!("the end of `{}`", self.command), deadline, end))
    }

    /// False if it ends without.
    async fn read_until(&mut self, text: &str) -> bool {
        while self.found(text).is_none() && self.status.is_none() {
            self.read().await;
        }
        self.found(text).is_some()
    }

    async fn read(&mut self) {
        match self.process.next().await {
            Some(Event::Output(_, bytes)) => self.seen.extend(bytes),
            Some(Event::Ended(status)) => self.status = Some(status),
            Some(Event::DeadlinePassed) => self.status = Some(ExitStatus::Signal(9)),
            None => self.status = Some(ExitStatus::Lost),
        }
    }

    /// Where `text` ends, after what was expected already.
    fn found(&self, text: &str) -> Option<usize> {
        let fresh = &self.seen[self.expected..];
        let at = match text.len() {
            0 => Some(0),
            length => fresh.windows(length).position(|window| window == text.as_bytes()),
        };
        Some(self.expected + at? + text.len())
    }

    fn tail(&self) -> String {
        let from = self.seen.len().saturating_sub(SHOWN);
        String::from_utf8_lossy(&self.seen[from..]).into_owned()
    }

    fn error(&self, what: String, deadline: Deadline, end: WaitEnd) -> WaitError {
        WaitError {
            machine: self.machine.name().to_owned(),
            what,
            waited: deadline.waited(),
            end,
            detail: String::new(),
            evidence: self.machine.evidence(),
        }
    }
}
