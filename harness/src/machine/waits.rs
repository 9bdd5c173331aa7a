//! Waiting for what happens in a guest. Each wait ends at once when the guest dies, and its error tells what was seen last.

use std::time::Duration;

use super::{Machine, looks};
use crate::console::Cursor;
use crate::exec::{Command, ExecError, Execute, Output};
use crate::wait::{Deadline, Look, WaitEnd, WaitError, poll};

/// How long a wait lasts that does not say: a service's start under emulation on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);

impl Machine {
    /// Waits until a systemd unit is active. A unit that failed, does not exist, or is inactive with nothing about to start it is
    /// an error at once.
    ///
    /// # Errors
    /// [`WaitError`], with the unit's status.
    pub async fn wait_for_unit(&self, unit: &str) -> Result<(), WaitError> {
        let show = Command::new("systemctl")
            .args(["show", "--property", looks::UNIT_PROPERTIES, "--"])
            .arg(unit);
        let status = Command::shell(
            "systemctl status --no-pager --full --lines=20 -- \"$1\"; systemctl list-jobs --no-pager",
        )
        .args(["status", unit]);
        let found = self
            .wait(&format!("unit {unit}"), || {
                self.look(show.clone(), |output| looks::unit(&output))
            })
            .await;
        match found {
            Err(error) if !matches!(error.end, WaitEnd::Died { .. }) => {
                Err(self.with_detail(error, status).await)
            }
            found => found,
        }
    }

    /// Waits until something listens on this TCP port, on whatever address. Nothing is connected to.
    ///
    /// # Errors
    /// [`WaitError`].
    pub async fn wait_for_open_port(&self, port: u16) -> Result<(), WaitError> {
        let show = Command::new("cat").args(["/proc/net/tcp", "/proc/net/tcp6"]);
        self.wait(&format!("port {port}"), || {
            self.look(show.clone(), move |output| looks::listening(&output, port))
        })
        .await
    }

    /// Waits until there is a file, or anything else, at `path`.
    ///
    /// # Errors
    /// [`WaitError`].
    pub async fn wait_for_file(&self, path: &str) -> Result<(), WaitError> {
        let show = Command::new("stat").arg("--").arg(path);
        self.wait(&format!("file {path}"), || {
            self.look(show.clone(), looks::success)
        })
        .await
        .map(drop)
    }

    /// Runs a command again and again until it succeeds; answers with its output.
    ///
    /// # Errors
    /// [`WaitError`], with the last output.
    pub async fn wait_until_succeeds(&self, command: impl Into<Command>) -> Result<Output, WaitError> {
        let command = command.into();
        self.wait(&format!("success of `{command}`"), || {
            self.look(command.clone(), looks::success)
        })
        .await
    }

    /// Runs a command again and again until it fails; answers with its output.
    ///
    /// # Errors
    /// [`WaitError`], with the last output.
    pub async fn wait_until_fails(&self, command: impl Into<Command>) -> Result<Output, WaitError> {
        let command = command.into();
        self.wait(&format!("failure of `{command}`"), || {
            self.look(command.clone(), looks::failure)
        })
        .await
    }

    /// Waits until `text` is printed on the console after `from`; answers with the place just after it.
    ///
    /// # Errors
    /// [`WaitError`].
    pub async fn wait_for_console(&self, text: &str, from: Cursor) -> Result<Cursor, WaitError> {
        let search = std::cell::RefCell::new(self.console().search(text, from));
        self.wait(&format!("{text:?} on the console"), || async {
            match search.borrow_mut().look() {
                Ok(Some(found)) => Look::Done(found),
                Ok(None) => Look::NotYet("other lines".to_owned()),
                Err(error) => Look::Hopeless(format!("its file cannot be read: {error}")),
            }
        })
        .await
    }

    /// One look by the agent. A command that is lost or cannot be run may do better next time: the guest may reboot.
    async fn look<T>(&self, command: Command, judge: impl FnOnce(Output) -> Look<T>) -> Look<T> {
        let agent = match self.agent().await {
            Ok(agent) => agent,
            Err(error) => return Look::Hopeless(error.to_string()),
        };
        match agent.run(command).await {
            Ok(output) => judge(output),
            Err(error @ ExecError::Invalid { .. }) => Look::Hopeless(error.to_string()),
            Err(error) => Look::NotYet(error.to_string()),
        }
    }

    async fn wait<T, L>(&self, what: &str, look: impl FnMut() -> L) -> Result<T, WaitError>
    where
        L: Future<Output = Look<T>>,
    {
        self.note(format_args!("waits for {what}"));
        let deadline = Deadline::after(PATIENCE);
        match poll(deadline, self.death(), look).await {
            Ok(found) => {
                self.note(format_args!("has {what}"));
                Ok(found)
            }
            Err(end) => {
                self.note(format_args!("gives up {what}"));
                Err(WaitError {
                    machine: self.name().to_owned(),
                    what: what.to_owned(),
                    waited: deadline.waited(),
                    end,
                    detail: String::new(),
                    evidence: self.evidence(),
                })
            }
        }
    }

    /// Asks the guest for more about an error, for as long as that takes little.
    async fn with_detail(&self, error: WaitError, ask: Command) -> WaitError {
        let asked = async {
            self.agent()
                .await
                .ok()?
                .run(ask.deadline(DETAIL_PATIENCE))
                .await
                .ok()
        };
        let answer = self.death().race(asked).await.ok().flatten();
        let detail = answer.map(|output| output.stdout_text()).unwrap_or_default();
        WaitError { detail, ..error }
    }
}

/// How long the guest may take to tell more about an error.
const DETAIL_PATIENCE: Duration = Duration::from_secs(10);
