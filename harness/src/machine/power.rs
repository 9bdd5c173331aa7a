//! Reboot, stop, kill.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{BootError, Machine, RunError, boot, setup};
use crate::agent::Setup;
use crate::death::Death;
use crate::wait::{Deadline, WaitEnd, WaitError};

/// Stopping all services of a guest takes about 3 s under emulation.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(60);

/// Why a guest did not come back from a reboot.
#[derive(Debug, thiserror::Error)]
pub enum RebootError {
    /// It could not be told.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It did not go down.
    #[error(transparent)]
    Down(Box<WaitError>),
    /// It did not come up.
    #[error(transparent)]
    Up(Box<BootError>),
}

impl Machine {
    /// Reboots the guest in order, and returns when its agent answers in the new boot. What it has on its disk is kept.
    ///
    /// # Errors
    /// [`RebootError`].
    pub async fn reboot(&self) -> Result<(), RebootError> {
        let running = &self.running;
        let mut resets = running.qemu.resets();
        resets.mark_unchanged();
        self.run("systemctl reboot --no-block").check_ok().await?;
        let deadline = Deadline::after(SHUTDOWN_PATIENCE);
        let end = match self.death().race(deadline.limit(resets.changed())).await {
            Ok(Some(_)) => None,
            Ok(None) => Some(WaitEnd::TimedOut {
                last: "it still runs".to_owned(),
            }),
            Err(death) => Some(WaitEnd::Died { death }),
        };
        if let Some(end) = end {
            return Err(RebootError::Down(Box::new(WaitError {
                machine: self.name().to_owned(),
                what: "its reboot".to_owned(),
                waited: deadline.waited(),
                end,
                detail: String::new(),
                evidence: self.evidence(),
            })));
        }
        let fresh = {
            let book = running.book.lock().unwrap_or_else(PoisonError::into_inner);
            setup(
                &running.name,
                running.management,
                &running.places,
                &running.shares,
                &book,
                Vec::new(),
            )
        };
        let machine = Arc::clone(running);
        let booting = async move {
            boot::boot(
                &machine.qemu,
                machine.name.as_str(),
                machine.accelerator,
                &machine.agent_port,
                fresh,
            )
            .await
        };
        let agent = running
            .background
            .run(booting)
            .await
            .map_err(|error| RebootError::Up(Box::new(error)))?;
        *running.agent.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(agent);
        self.note("rebooted");
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
            Err(death) => Err(death),
        }
    }

    /// Has it killed, without waiting for that.
    pub(crate) fn give_up(&self) {
        self.running.qemu.give_up();
    }

    /// Replaces `/etc/hosts`, when machines have come to the lab.
    pub(crate) async fn learn_hosts(&self) -> Result<(), RunError> {
        let hosts = {
            let book = self.running.book.lock().unwrap_or_else(PoisonError::into_inner);
            book.hosts().into_iter().map(|(address, names)| (address.into(), names)).collect()
        };
        let setup = Setup { hostname: Some(self.name().to_owned()), hosts, ..Setup::default() };
        self.set_up("/etc/hosts", &setup).await
    }
}
