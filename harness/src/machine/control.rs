//! What is done to a machine from outside, by QEMU: pause, reset, screenshots, keys, ports.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use qapi::qmp;

use super::{Machine, RebootError, RunError, keys};
use crate::death::Evidence;
use crate::qmp::QmpError;
use crate::wait::WaitError;

/// Why something could not be done to a machine.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// QEMU did not do it.
    #[error("`{machine}`: {error}{evidence}")]
    Monitor {
        /// The machine.
        machine: String,
        /// Why.
        error: QmpError,
        /// Console, QEMU's output, artifacts.
        evidence: Box<Evidence>,
    },
    /// There is no picture of a machine without a display.
    #[error("`{machine}` has no display ({error}): ask for one with `display()` before it starts")]
    NoDisplay {
        /// The machine.
        machine: String,
        /// What QEMU said.
        error: QmpError,
    },
    /// There is no key for a character.
    #[error("no key of a US keyboard types {character:?}: send it another way")]
    NoKey {
        /// The character.
        character: char,
    },
    /// A file for it cannot be made on the host.
    #[error("cannot write {}: check permissions and free space", .path.display())]
    Host {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A name that no disk can have.
    #[error(
        "`{name}` cannot name a disk: use 1 to 20 of a-z, 0-9 and `-`, a letter first, and not `provisor-…`"
    )]
    DiskName {
        /// The name as given.
        name: String,
    },
    /// The guest did not do its part.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The guest did not notice, or did not end as it should.
    #[error(transparent)]
    Wait(#[from] Box<WaitError>),
}

impl Machine {
    /// Stops the guest's processors. Its clock stands still, frames for it are lost when its queue is full, and whatever is asked of it waits
    /// for [`Machine::resume`], as far as its deadline allows.
    ///
    /// # Errors
    /// [`ControlError::Monitor`].
    pub async fn pause(&self) -> Result<(), ControlError> {
        self.note("is paused");
        self.control(qmp::stop {}).await.map(drop)
    }

    /// Lets a paused guest go on where it was.
    ///
    /// # Errors
    /// [`ControlError::Monitor`].
    pub async fn resume(&self) -> Result<(), ControlError> {
        self.note("goes on");
        self.control(qmp::cont {}).await.map(drop)
    }

    /// Resets the guest, as a power cut and a start: what was not on its disk yet is gone. Returns when its agent answers in the new boot.
    ///
    /// # Errors
    /// [`RebootError`].
    pub async fn reset(&self) -> Result<(), RebootError> {
        let link = self.running.link.subscribe();
        self.note("is reset");
        self.control(qmp::system_reset {})
            .await
            .map_err(|error| RebootError::Reset(Box::new(error)))?;
        self.new_boot(link, "its reset").await
    }

    /// Has the kernel choose a port of 127.0.0.1 that leads to the guest's TCP port `port`, for as long as the guest lives.
    ///
    /// # Errors
    /// [`ControlError::Monitor`].
    pub async fn forward(&self, port: u16) -> Result<SocketAddr, ControlError> {
        let chosen = self
            .monitor()
            .forward(port)
            .await
            .map_err(|error| self.refused(error))?;
        self.note(format_args!("port {port} is reached at 127.0.0.1:{chosen}"));
        Ok((Ipv4Addr::LOCALHOST, chosen).into())
    }

    /// Takes a picture of its display, in the format PNG, among its artifacts; answers with the path.
    ///
    /// # Errors
    /// [`ControlError::NoDisplay`] for a machine that was started without [`display`](super::MachineBuilder::display).
    pub async fn screenshot(&self) -> Result<PathBuf, ControlError> {
        let folder = self.console().path().with_file_name("");
        let path = (1..)
            .map(|number| folder.join(format!("screenshot-{number}.png")))
            .find(|path| !path.exists());
        let path = path.unwrap_or_else(|| folder.join("screenshot.png"));
        let dump = qmp::screendump {
            device: None,
            format: Some(qmp::ImageFormat::png),
            head: None,
            filename: path.display().to_string(),
        };
        self.monitor().execute(dump).await.map_err(|error| match error {
            QmpError::Refused { .. } => ControlError::NoDisplay {
                machine: self.name().to_owned(),
                error,
            },
            error => self.refused(error),
        })?;
        self.note(format_args!("screenshot {}", path.display()));
        Ok(path)
    }

    /// Presses keys at once and lets them go, by QEMU's names with `-` between them: `ret`, `ctrl-alt-delete`, `alt-f2`.
    ///
    /// # Errors
    /// [`ControlError::Monitor`], for a key that QEMU does not know.
    pub async fn press(&self, keys: &str) -> Result<(), ControlError> {
        self.note(format_args!("keys {keys}"));
        self.press_unseen(keys).await
    }

    /// Types a text on a US keyboard. What is typed may be a secret: the timeline has its length only.
    ///
    /// # Errors
    /// [`ControlError::NoKey`] before anything is typed, [`ControlError::Monitor`].
    pub async fn type_text(&self, text: &str) -> Result<(), ControlError> {
        let key = |character| keys::key(character).ok_or(ControlError::NoKey { character });
        let keys = text.chars().map(key).collect::<Result<Vec<_>, _>>()?;
        self.note(format_args!("types {} characters", keys.len()));
        for key in keys {
            self.press_unseen(&key).await?;
        }
        Ok(())
    }

    async fn press_unseen(&self, keys: &str) -> Result<(), ControlError> {
        let pressed = self
            .monitor()
            .human_act(&format!("sendkey {keys} {KEY_MILLISECONDS}"))
            .await;
        pressed.map_err(|error| self.refused(error))
    }

    pub(super) async fn control<C>(&self, command: C) -> Result<C::Ok, ControlError>
    where
        C: qmp::QmpCommand + Send + Sync + 'static,
        C::Ok: Send,
    {
        self.monitor()
            .execute(command)
            .await
            .map_err(|error| self.refused(error))
    }

    pub(super) fn refused(&self, error: QmpError) -> ControlError {
        ControlError::Monitor {
            machine: self.name().to_owned(),
            error,
            evidence: Box::new(self.evidence()),
        }
    }
}

/// How long a key is held. QEMU's own 100 ms make a typed line last seconds.
const KEY_MILLISECONDS: u32 = 20;
