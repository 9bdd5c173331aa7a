//! The connection to a guest's agent, through all its boots.

use std::sync::{Arc, Weak};

use tokio::sync::watch;

use super::{Arrival, BootError, Machine, Running, boot, setup};
use crate::agent::Agent;

/// Where the connection stands.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    /// The agent answers, and the guest is set up.
    Up(Arc<Agent>),
    /// The guest reboots.
    Down,
    /// It did not come back.
    Failed(Arc<BootError>),
}

/// Connects anew after each reboot, whoever asked for it, for as long as there is the machine.
///
/// The agent of the boot before never answers what it was asked; closing its connection tells all who wait.
pub(super) async fn keep(running: Weak<Running>, mut resets: watch::Receiver<u32>) {
    while resets.changed().await.is_ok() {
        let Some(running) = running.upgrade() else { return };
        if let Link::Up(agent) = running.link.send_replace(Link::Down) {
            agent.close();
        }
        running.timeline.note(running.name.as_str(), "reboots");
        let name = running.name.as_str();
        // QEMU tells of one reboot twice. What was begun before the second time is void.
        let booted = loop {
            tokio::select! {
                biased;
                Ok(()) = resets.changed() => {}
                booted = boot_again(&running) => break booted,
            }
        };
        running.timeline.note(
            name,
            if booted.is_ok() {
                "has rebooted"
            } else {
                "did not come back"
            },
        );
        running.link.send_replace(match booted {
            Ok(agent) => Link::Up(Arc::new(agent)),
            Err(error) => Link::Failed(Arc::new(error)),
        });
    }
}

async fn boot_again(running: &Running) -> Result<Agent, BootError> {
    let fresh = {
        let (name, book) = (&running.name, running.book());
        setup(
            name,
            running.management,
            &running.places,
            &running.shares,
            &book,
            Vec::new(),
        )
    };
    boot::boot(
        &running.qemu,
        running.name.as_str(),
        running.accelerator,
        &running.agent_port,
        fresh,
        Arrival::Booted,
    )
    .await
}

impl Machine {
    /// The agent of the current boot; waits while the guest reboots.
    pub(super) async fn agent(&self) -> Result<Arc<Agent>, Arc<BootError>> {
        let mut link = self.running.link.subscribe();
        loop {
            match &*link.borrow_and_update() {
                Link::Up(agent) => return Ok(Arc::clone(agent)),
                Link::Failed(error) => return Err(Arc::clone(error)),
                Link::Down => {}
            }
            // The sender lives as long as the machine.
            let _ = link.changed().await;
        }
    }
}
