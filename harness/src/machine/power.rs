//! Reboot, stop, kill.

use std::sync::Arc;
use std::time::Duration;

use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::{BootError, ControlError, Link, Machine, RunError};
use crate::agent::Setup;
use crate::death::Death;
use crate::exec::ExitStatus;
use crate::wait::{Deadline, WaitEnd, WaitError};

/// Stopping all services of a guest takes about 3 s under emulation.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(60);

/// Why a guest did not come back from a reboot.
#[derive(Debug, thiserror::Error)]
pub enum RebootError {
    /// It could not be told.
    #[error(transparent)]
    Run(#[from] RunError),
    /// QEMU did not reset it.
    #[error(transparent)]
    Reset(Box<ControlError>),
    /// It did not go down.
    #[error(transparent)]
    Down(Box<WaitError>),
    /// It did not come up.
    #[error(transparent)]
    Up(Arc<BootError>),
}

impl Machine {
    /// Reboots the guest in order, and returns when its agent answers in the new boot. What it has on its disk is kept.
    ///
    /// A guest may also be rebooted from within, at any time: commands that come after it wait for the new boot.
    ///
    /// # Errors
    /// [`RebootError`].
    pub async fn reboot(&self) -> Result<(), RebootError> {
        let link = self.running.link.subscribe();
        let told = self.run("systemctl reboot --no-block").await?;
        // The guest may be gone before it can tell.
        if told.status != ExitStatus::Lost {
            told.check_ok().map_err(|error| self.failed(error))?;
        }
        self.new_boot(link, "its reboot").await
    }

    /// Waits until the guest has gone down and its agent answers anew.
    pub(super) async fn new_boot(
        &self,
        mut link: watch::Receiver<Link>,
        what: &str,
    ) -> Result<(), RebootError> {
        let deadline = Deadline::after(SHUTDOWN_PATIENCE);
        let down = link.wait_for(|link| !matches!(link, Link::Up(_) | Link::UpBySsh(_)));
        let end = match self.death().race(deadline.limit(down)).await {
            Ok(Some(_)) => None,
            Ok(None) => Some(WaitEnd::TimedOut {
                last: "it still runs".to_owned(),
            }),
            Err(death) => Some(WaitEnd::Died { death }),
        };
        if let Some(end) = end {
            return Err(RebootError::Down(Box::new(WaitError {
                machine: self.name().to_owned(),
                what: what.to_owned(),
                waited: deadline.waited(),
                end,
                detail: String::new(),
                evidence: self.evidence(),
            })));
        }
        self.way().await.map_err(RebootError::Up)?;
        Ok(())
    }

    /// Kills the guest, as a power cut would, and returns when no process of it is left. Whoever waits for it is told.
    pub async fn kill(&self) {
        self.note("killed");
        self.running.qemu.kill().await;
    }

    /// Ends the guest as the test's end does: QEMU writes out what it holds and quits.
    ///
    /// # Errors
    /// How the guest had died before, unless the test itself ended it.
    pub async fn stop(&self) -> Result<(), Death> {
        self.note("stopped");
        match self.running.qemu.quit().await {
            Err(Death::Stopped) | Ok(()) => Ok(()),
            Err(_) if self.expected.load(Ordering::Relaxed) => Ok(()),
            Err(death) => Err(death),
        }
    }

    /// Has it killed, without waiting for that.
    pub(crate) fn give_up(&self) {
        self.running.qemu.give_up();
    }

    /// Replaces `/etc/hosts`, when machines have come to the lab. A guest that others built keeps its own.
    pub(crate) async fn learn_hosts(&self) -> Result<(), RunError> {
        if !self.has_agent() {
            return Ok(());
        }
        let hosts = {
            let book = self.running.book();
            book.hosts()
                .into_iter()
                .map(|(address, names)| (address.into(), names))
                .collect()
        };
        let setup = Setup {
            hostname: Some(self.name().to_owned()),
            hosts,
            ..Setup::default()
        };
        self.set_up("/etc/hosts", &setup).await
    }
}
