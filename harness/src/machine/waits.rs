//! Waiting for what happens in a guest. Each wait ends at once when the guest dies, and its error tells what was seen last.

use std::time::Duration;

use super::Machine;
use super::looks::{self, Response};
use crate::console::Cursor;
use crate::exec::{Command, ExecError, Execute, Output};
use crate::wait::{Deadline, Look, WaitEnd, WaitError, poll};

impl Machine {
    /// The same machine, whose waits last so long, times [`TIMEOUT_FACTOR_VARIABLE`](crate::wait::TIMEOUT_FACTOR_VARIABLE), rather than
    /// two minutes: `app.within(Duration::from_secs(5)).wait_for_file("/ready")`.
    pub fn within(&self, patience: Duration) -> Self {
        Self {
            patience,
            ..self.clone()
        }
    }

    /// Waits until a systemd unit is active, or, of a oneshot unit, has run with success. A unit that failed, does not exist, or is inactive with nothing about to start it is
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
        let look = || self.look(show.clone(), |output| looks::unit(&output));
        self.wait_and_ask(&format!("unit {unit}"), look, status).await
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

    /// Waits until nothing listens on this TCP port any more.
    ///
    /// # Errors
    /// [`WaitError`].
    pub async fn wait_for_closed_port(&self, port: u16) -> Result<(), WaitError> {
        let show = Command::shell("cat /proc/net/tcp && { [ ! -e /proc/net/tcp6 ] || cat /proc/net/tcp6; }");
        self.wait(&format!("the closing of port {port}"), || {
            self.look(show.clone(), move |output| looks::closed(&output, port))
        })
        .await
    }

    /// Waits until something listens at the unix socket `path`. Nothing is connected to.
    ///
    /// # Errors
    /// [`WaitError`].
    pub async fn wait_for_socket(&self, path: &str) -> Result<(), WaitError> {
        let show = Command::new("cat").arg("/proc/net/unix");
        self.wait(&format!("socket {path}"), || {
            self.look(show.clone(), move |output| looks::socket(&output, path))
        })
        .await
    }

    /// Asks for `url`, from within the guest, until a response is one that is `wanted`; answers with it. Needs curl in the guest, which
    /// is in every image of this library.
    ///
    /// ```no_run
    /// # async fn example(app: provisor_harness::Machine) -> Result<(), provisor_harness::wait::WaitError> {
    /// let response = app.wait_for_http("http://localhost/health", |response| response.status == 200).await?;
    /// assert_eq!(response.text(), "ok");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WaitError`], with the last response.
    pub async fn wait_for_http(
        &self,
        url: &str,
        wanted: impl Fn(&Response) -> bool,
    ) -> Result<Response, WaitError> {
        let options = [
            "--silent",
            "--show-error",
            "--max-time",
            "10",
            "--write-out",
            looks::CURL_SAYS,
        ];
        let ask = Command::new("curl").args(options).arg("--").arg(url);
        self.wait(&format!("a response of {url}"), || {
            self.look(ask.clone(), |output| looks::response(output, &wanted))
        })
        .await
    }

    /// Looks at anything, again and again, until a look is [done](Look::Done). `what` says what is waited for.
    ///
    /// A look may take long: the guest's death and the deadline end it.
    ///
    /// # Errors
    /// [`WaitError`], with what the last look found.
    pub async fn wait_until<T, L>(&self, what: &str, look: impl FnMut() -> L) -> Result<T, WaitError>
    where
        L: Future<Output = Look<T>>,
    {
        self.wait(what, look).await
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

    /// One look. A command that is lost or cannot be run may do better next time: the guest may reboot.
    async fn look<T>(&self, command: Command, judge: impl FnOnce(Output) -> Look<T>) -> Look<T> {
        let way = match self.way().await {
            Ok(way) => way,
            Err(error) => return Look::Hopeless(error.to_string()),
        };
        match way.run(command).await {
            Ok(output) => judge(output),
            Err(error @ ExecError::Invalid { .. }) => Look::Hopeless(error.to_string()),
            Err(error) => Look::NotYet(error.to_string()),
        }
    }

    /// Waits, and has the guest tell, should it be in vain, what it is busy with and what has failed.
    async fn wait<T, L>(&self, what: &str, look: impl FnMut() -> L) -> Result<T, WaitError>
    where
        L: Future<Output = Look<T>>,
    {
        let units = "systemctl list-units --no-pager --no-legend --plain --state=failed,activating,deactivating; systemctl \
                     list-jobs --no-pager --no-legend";
        self.wait_and_ask(what, look, Command::shell(units)).await
    }

    async fn wait_and_ask<T, L>(
        &self,
        what: &str,
        look: impl FnMut() -> L,
        ask: Command,
    ) -> Result<T, WaitError>
    where
        L: Future<Output = Look<T>>,
    {
        self.note(format_args!("waits for {what}"));
        let deadline = Deadline::after(self.patience);
        let end = match poll(deadline, self.death(), look).await {
            Ok(found) => {
                self.note(format_args!("has {what}"));
                return Ok(found);
            }
            Err(end) => end,
        };
        self.note(format_args!("gives up {what}"));
        let waited = deadline.waited();
        let detail = match end {
            WaitEnd::Died { .. } => String::new(),
            WaitEnd::TimedOut { .. } | WaitEnd::Hopeless { .. } => self.ask(ask).await,
        };
        Err(WaitError {
            machine: self.name().to_owned(),
            what: what.to_owned(),
            waited,
            end,
            detail,
            evidence: self.evidence(),
        })
    }

    /// Asks the guest for more about an error, for as long as that takes little. A guest that does not answer has nothing to say.
    async fn ask(&self, ask: Command) -> String {
        let asked = async {
            let way = self.way().await.ok()?;
            way.run(ask.deadline(DETAIL_PATIENCE)).await.ok()
        };
        let deadline = Deadline::after(DETAIL_PATIENCE);
        let answer = self
            .death()
            .race(deadline.limit(asked))
            .await
            .ok()
            .flatten()
            .flatten();
        answer.map(|output| output.stdout_text()).unwrap_or_default()
    }
}

/// How long the guest may take to tell more about an error.
const DETAIL_PATIENCE: Duration = Duration::from_secs(10);
