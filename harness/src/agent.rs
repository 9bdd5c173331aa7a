//! The client of the guest agent: the way into a guest that needs no network.
//!
//! The agent is a static program of the standard library alone ([`PROGRAM`]). In a guest it runs as
//! `provisor-agent serve /dev/virtio-ports/NAME`. On the host QEMU gives that port as a unix socket, which
//! [`Agent::connect`] takes at any time, also before the guest has booted: the connection is made when the agent
//! answers, so it is the sign that the guest is up. The caller races it against the guest's death.
//!
//! A host may go away in the middle of anything and connect again. Commands that still run for the earlier connection
//! are killed then, or at their deadlines.

mod process;
mod program;
mod session;
#[path = "../agent/wire.rs"]
#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "shared with the agent, which uses the other half"
)]
mod wire;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

pub use program::{InstallError, PROGRAM, install};
pub use wire::{Bytes, Interface, Mount, Setup, SetupFile};

use crate::exec::{BoxFuture, Command, ExecError, Process, Transport};
use process::AgentProcess;
use session::Session;

/// A connection to the agent of one guest. Clones share it; it is closed when the last clone, and the last
/// [`Process`] started by one, is dropped.
#[derive(Clone, Debug)]
pub struct Agent {
    session: Arc<Session>,
}

/// Why there is no agent, or why it did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The other side closed the connection.
    #[error("the agent's connection was closed; see the guest's console for why it ended")]
    Closed,
    /// Agent and library do not understand each other.
    #[error(
        "the guest's agent speaks version {theirs} of the protocol, and this library version {ours}; build the guest \
         image again"
    )]
    Version {
        /// The agent's version.
        theirs: u16,
        /// The library's version.
        ours: u16,
    },
    /// A step of a setup failed; those behind it were not tried.
    #[error("the guest could not be set up: {step}: {error}; correct this part of its `Setup`")]
    Setup {
        /// The step, with what it was about.
        step: String,
        /// What the kernel or the program said.
        error: String,
    },
}

impl Agent {
    /// Opens a session over a stream to the agent's port. It waits until the agent answers: for ever, if no guest
    /// is there.
    ///
    /// # Errors
    /// [`AgentError::Closed`] or [`AgentError::Version`].
    pub async fn connect<S>(stream: S) -> Result<Self, AgentError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        Ok(Self {
            session: Arc::new(Session::open(stream).await?),
        })
    }

    /// A text that is another one after each boot of the guest.
    pub fn boot_id(&self) -> &str {
        self.session.boot_id()
    }

    /// Makes the guest the machine it is to be. It returns when all is applied.
    ///
    /// # Errors
    /// [`AgentError::Setup`] with the step that failed, or [`AgentError::Closed`].
    pub async fn setup(&self, setup: &Setup) -> Result<(), AgentError> {
        self.session.setup(setup.clone()).await
    }

    /// Closes the connection for all clones. What they still wait for is lost.
    pub fn close(&self) {
        self.session.close();
    }

    /// Returns when the connection is closed, at once if it is already.
    pub async fn closed(&self) {
        self.session.closed().await;
    }
}

impl Transport for Agent {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Process, ExecError>> {
        Box::pin(async move { AgentProcess::start(Arc::clone(&self.session), command).map(Process::new) })
    }
}
