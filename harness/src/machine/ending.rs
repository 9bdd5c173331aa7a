//! The end of a guest, as the test wants it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{ControlError, Machine};
use crate::death::Death;
use crate::exec::Transport;
use crate::wait::{Deadline, WaitEnd, WaitError};

/// Stopping all services of a guest takes about 3 s under emulation.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(60);

impl Machine {
    /// Has the guest shut itself down, in order, and returns when it is off. Its lab does not count it as dead then.
    ///
    /// # Errors
    /// [`ControlError`]: it cannot be told, does not end in time, or ends in another way.
    pub async fn shutdown(&self) -> Result<(), ControlError> {
        self.note("is to shut down");
        self.end_by("systemctl poweroff --no-block", "its shutdown", |death| {
            *death == Death::PoweredOff
        })
        .await
    }

    /// Crashes the guest's kernel, and returns when its panic is noticed. Whoever waits for it is told; its lab does not count it as dead.
    ///
    /// # Errors
    /// [`ControlError`]: it does not panic.
    pub async fn crash(&self) -> Result<(), ControlError> {
        self.note("fault: its kernel crashes");
        let panicked = |death: &Death| matches!(death, Death::Panicked | Death::PanicOnConsole { .. });
        self.end_by("echo c >/proc/sysrq-trigger", "its panic", panicked)
            .await
    }

    async fn end_by(
        &self,
        command: &str,
        what: &str,
        wanted: impl Fn(&Death) -> bool,
    ) -> Result<(), ControlError> {
        self.expected.store(true, Ordering::Relaxed);
        let deadline = Deadline::after(SHUTDOWN_PATIENCE);
        let cannot_be_told = async {
            let started = match self.agent().await {
                Ok(agent) => agent
                    .start(command.into())
                    .await
                    .map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            match started {
                // It may well be gone before it answers; dropping the process would kill the command.
                Ok(_process) => std::future::pending().await,
                Err(reason) => reason,
            }
        };
        let end = tokio::select! {
            biased;
            death = deadline.limit(self.death().died()) => match death {
                Some(death) if wanted(&death) => return Ok(()),
                Some(death) => WaitEnd::Died { death },
                None => WaitEnd::TimedOut { last: "it still runs".to_owned() },
            },
            reason = cannot_be_told => WaitEnd::Hopeless { reason },
        };
        self.expected.store(false, Ordering::Relaxed);
        Err(ControlError::Wait(Box::new(WaitError {
            machine: self.name().to_owned(),
            what: what.to_owned(),
            waited: deadline.waited(),
            end,
            detail: String::new(),
            evidence: self.evidence(),
        })))
    }
}
