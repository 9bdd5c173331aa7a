//! Points to go back to: a machine's memory and disk, saved within a test.

use std::sync::Arc;
use std::time::Duration;

use super::{Arrival, BootError, Link, Machine, boot};
use crate::agent::{Bytes, Setup};
use crate::death::{Death, Evidence};
use crate::qmp::QmpError;
use crate::wait::Deadline;

/// A machine as it was at one moment: its memory, its disk, what ran on it. It is kept with the machine's disk and ends with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    machine: String,
    tag: String,
}

/// Why a machine was not saved, or did not go back.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// The machine died.
    #[error("`{machine}` died: {death}{evidence}")]
    Died {
        /// The machine.
        machine: String,
        /// How.
        death: Death,
        /// Console, QEMU's output, artifacts.
        evidence: Box<Evidence>,
    },
    /// QEMU did not do it.
    #[error("`{machine}`: QEMU refused `{command}`: {reason}{evidence}")]
    Refused {
        /// The machine.
        machine: String,
        /// What it was told.
        command: String,
        /// Its reason.
        reason: String,
        /// Console, QEMU's output, artifacts.
        evidence: Box<Evidence>,
    },
    /// The point is another machine's.
    #[error("`{machine}` cannot go back to a point of `{of}`: each machine has its own points")]
    NotIts {
        /// The machine.
        machine: String,
        /// Whose point it is.
        of: String,
    },
    /// The machine went back, and its agent does not answer.
    #[error(transparent)]
    Silent(Arc<BootError>),
}

/// Writing or reading all of a guest's memory takes half a second.
const PATIENCE: Duration = Duration::from_secs(120);

impl Machine {
    /// Saves its memory and its disk as they are now. The machine stands still for that moment and goes on.
    ///
    /// ```no_run
    /// # async fn test(app: provisor_harness::Machine) -> anyhow::Result<()> {
    /// let before = app.save().await?;
    /// app.run("rm -rf /var/lib/app").check_ok().await?;
    /// app.go_back(&before).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`PointError`].
    pub async fn save(&self) -> Result<Point, PointError> {
        let tag = format!("p{}", self.running.next_point());
        self.note(format_args!("is saved as {tag}"));
        self.human(&format!("savevm {tag}")).await?;
        let machine = self.name().to_owned();
        Ok(Point { machine, tag })
    }

    /// Makes it what it was at `point`: all that ran and was written since is undone, as often as one likes. Its clock is set again, and its
    /// random numbers are new. Commands that run are lost, SSH connections too. What it said to other machines is not undone.
    ///
    /// # Errors
    /// [`PointError`].
    pub async fn go_back(&self, point: &Point) -> Result<(), PointError> {
        if point.machine != self.name() {
            return Err(PointError::NotIts {
                machine: self.name().to_owned(),
                of: point.machine.clone(),
            });
        }
        self.note(format_args!("goes back to {}", point.tag));
        if let Link::Up(agent) = self.running.link.send_replace(Link::Down) {
            agent.close();
        }
        let link = match self.load(point).await {
            Ok(link) => link,
            Err(error) => {
                // Nothing has changed, but for the connection.
                self.running
                    .link
                    .send_replace(self.reconnected(Setup::default()).await);
                return Err(error);
            }
        };
        let failed = match &link {
            Link::Failed(error) => Some(Arc::clone(error)),
            Link::Up(_) | Link::UpBySsh(_) | Link::Down => None,
        };
        self.running.link.send_replace(link);
        failed.map_or(Ok(()), |error| Err(PointError::Silent(error)))
    }

    async fn load(&self, point: &Point) -> Result<Link, PointError> {
        self.human(&format!("loadvm {}", point.tag)).await?;
        let fresh = Setup {
            entropy: Bytes(rand::random::<[u8; 32]>().to_vec()),
            ..Setup::default()
        };
        Ok(self.reconnected(fresh).await)
    }

    async fn reconnected(&self, setup: Setup) -> Link {
        let running = &self.running;
        let port = &running.agent_port;
        let arrival = Arrival::Restored;
        match boot(
            &running.qemu,
            self.name(),
            running.accelerator,
            port,
            setup,
            arrival,
        )
        .await
        {
            Ok(agent) => Link::Up(Arc::new(agent)),
            Err(error) => Link::Failed(Arc::new(error)),
        }
    }

    /// These commands are the human monitor's: they choose the disks themselves, and say nothing if all went well.
    async fn human(&self, command: &str) -> Result<(), PointError> {
        let asked = Deadline::after(PATIENCE)
            .limit(self.running.qemu.monitor().human(command))
            .await;
        let reason = match asked {
            Some(Ok(said)) if said.trim().is_empty() => return Ok(()),
            Some(Ok(said)) => said.trim().to_owned(),
            Some(Err(error @ QmpError::Closed { .. })) => match self.death().seen() {
                Some(death) => {
                    return Err(PointError::Died {
                        machine: self.name().to_owned(),
                        death,
                        evidence: Box::new(self.evidence()),
                    });
                }
                None => error.to_string(),
            },
            Some(Err(error)) => error.to_string(),
            None => "it took too long".to_owned(),
        };
        Err(PointError::Refused {
            machine: self.name().to_owned(),
            command: command.to_owned(),
            reason,
            evidence: Box::new(self.evidence()),
        })
    }
}
