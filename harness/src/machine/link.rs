//! The connection to a guest's agent, through all its boots.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::{Arrival, BootEnd, BootError, Machine, Running, Way, boot, brought, setup};
use crate::agent::Agent;
use crate::ssh::Ssh;

/// Where the connection stands.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    /// The agent answers, and the guest is set up.
    Up(Arc<Agent>),
    /// It answers by SSH, and has no agent.
    UpBySsh(Ssh),
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
        let before = running.link.send_replace(Link::Down);
        if let Link::Up(agent) = &before {
            agent.close();
        }
        running.timeline.note(running.name.as_str(), "reboots");
        let name = running.name.as_str();
        // QEMU tells of one reboot twice. What was begun before the second time is void.
        let up = loop {
            tokio::select! {
                biased;
                Ok(()) = resets.changed() => {}
                up = up_again(&running, &before) => break up,
            }
        };
        running.timeline.note(
            name,
            if up.is_ok() {
                "has rebooted"
            } else {
                "did not come back"
            },
        );
        running
            .link
            .send_replace(up.unwrap_or_else(|error| Link::Failed(Arc::new(error))));
    }
}

/// In the way in which it was up before.
async fn up_again(running: &Running, before: &Link) -> Result<Link, BootError> {
    match before {
        Link::UpBySsh(_) => brought::answers_again(running).await.map(Link::UpBySsh),
        Link::Up(_) | Link::Down | Link::Failed(_) => {
            boot_again(running).await.map(|agent| Link::Up(Arc::new(agent)))
        }
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
    /// How commands reach the current boot; waits while the guest reboots.
    pub(super) async fn way(&self) -> Result<Way, Arc<BootError>> {
        let mut link = self.running.link.subscribe();
        loop {
            match &*link.borrow_and_update() {
                Link::Up(agent) => return Ok(Way::Agent(Arc::clone(agent))),
                Link::UpBySsh(ssh) => return Ok(Way::Ssh(ssh.clone())),
                Link::Failed(error) => return Err(Arc::clone(error)),
                Link::Down => {}
            }
            // The sender lives as long as the machine.
            let _ = link.changed().await;
        }
    }

    /// The agent of the current boot; waits while the guest reboots.
    pub(super) async fn agent(&self) -> Result<Arc<Agent>, Arc<BootError>> {
        match self.way().await? {
            Way::Agent(agent) => Ok(agent),
            Way::Ssh(_) => Err(Arc::new(BootError {
                machine: self.name().to_owned(),
                waited: Duration::ZERO,
                end: BootEnd::Agent(brought::no_agent()),
                evidence: self.evidence(),
            })),
        }
    }

    /// Whether it has an agent, as far as one knows now.
    pub(super) fn has_agent(&self) -> bool {
        !matches!(&*self.running.link.borrow(), Link::UpBySsh(_))
    }
}
