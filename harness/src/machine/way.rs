//! How commands reach a guest: by its agent, or by SSH where there is none.

use std::sync::Arc;

use crate::agent::Agent;
use crate::exec::{BoxFuture, Command, ExecError, Process, Transport};
use crate::ssh::Ssh;

/// The way to one boot of a guest. Clones share the connection.
#[derive(Clone)]
pub(crate) enum Way {
    Agent(Arc<Agent>),
    Ssh(Ssh),
}

impl Transport for Way {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Process, ExecError>> {
        match self {
            Self::Agent(agent) => agent.start(command),
            Self::Ssh(ssh) => ssh.start(command),
        }
    }
}

impl std::fmt::Debug for Way {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Agent(_) => "Agent",
            Self::Ssh(_) => "Ssh",
        })
    }
}
