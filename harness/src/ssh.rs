//! The second way to run a command: SSH, as an operator would, with one key and one pinned host key.
//!
//! Nothing of the user who runs this is read: no `~/.ssh`, no agent, no known hosts. A connection has room for as
//! many commands at once as the server's `MaxSessions` says, 10 by default. What a command writes is kept in memory
//! until the caller takes it, without a limit.
//!
//! SSH has no way to kill what it has started. So each command gets a variable, `PROVISOR_COMMAND`, that its
//! descendants inherit. To kill them a second channel looks for whoever carries it, and for the rest of the session
//! of whoever leads one. It needs a POSIX shell, `grep` and `/proc` on the other side, and it misses
//! a process that has both replaced its environment and left the session, one of another user if the login is not
//! root, and all when the connection is gone.
//!
//! The environment, the input and the shell text go over standard input, never into a command line of ours.

mod channel;
mod key;
mod script;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use russh::client::{self, Handle};
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{Preferred, kex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs};

use key::HostKey;
pub use key::{KeyError, KeyPair, Login};

use crate::exec::{BoxFuture, Command, ExecError, Process, Transport};

/// A connection to an SSH server. Clones share it; it is closed when the last clone, and the last [`Process`]
/// started by one, is dropped.
#[derive(Clone)]
pub struct Ssh {
    handle: Arc<Handle<PinnedHost>>,
}

impl std::fmt::Debug for Ssh {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Ssh")
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// Nobody listens there.
    #[error("cannot reach the SSH server: {0}; see that the machine runs and its port is forwarded")]
    Unreachable(#[source] std::io::Error),
    /// The server showed another key than the pinned one.
    #[error(
        "the SSH server does not have the pinned host key; another machine answers, or its key was replaced"
    )]
    HostKey,
    /// The server did not accept the key.
    #[error(
        "the SSH server does not accept the key for the user {user}; put its public half into the machine"
    )]
    Login {
        /// The user.
        user: String,
    },
    /// The two did not get as far as logging in.
    #[error("the SSH connection failed: {0}; see the log of the machine's sshd")]
    Protocol(#[source] russh::Error),
}

impl Ssh {
    /// Connects to a server and logs in.
    ///
    /// # Errors
    /// An [`SshError`]. It is not tried again: a machine is known to be ready before it is asked.
    pub async fn connect(address: impl ToSocketAddrs, login: &Login) -> Result<Self, SshError> {
        let stream = TcpStream::connect(address).await.map_err(SshError::Unreachable)?;
        stream.set_nodelay(true).map_err(SshError::Unreachable)?;
        Self::connect_over(stream, login).await
    }

    /// The same over a stream that is there already.
    ///
    /// # Errors
    /// As [`Ssh::connect`].
    pub async fn connect_over<S>(stream: S, login: &Login) -> Result<Self, SshError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let host = PinnedHost {
            key: login.host.clone(),
        };
        let connected = client::connect_stream(Arc::new(config(&login.host)), stream, host).await;
        let mut handle = connected.map_err(|error| match error {
            russh::Error::UnknownKey => SshError::HostKey,
            error => SshError::Protocol(error),
        })?;
        let key = PrivateKeyWithHashAlg::new(Arc::clone(&login.private_key), None);
        let answer = handle
            .authenticate_publickey(&login.user, key)
            .await
            .map_err(SshError::Protocol)?;
        if !answer.success() {
            return Err(SshError::Login {
                user: login.user.clone(),
            });
        }
        Ok(Self {
            handle: Arc::new(handle),
        })
    }
}

impl Transport for Ssh {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Process, ExecError>> {
        Box::pin(async move {
            channel::start(Arc::clone(&self.handle), command)
                .await
                .map(Process::new)
        })
    }
}

/// No limit of inactivity: a command may be silent for long. But QEMU's user network keeps a connection to a guest that was reset, until
/// something is sent over it; so something is sent now and then, and nobody minds if it is not answered: the guest may be paused.
fn config(host: &HostKey) -> client::Config {
    let preferred = Preferred {
        // The server is asked for the kind of key that is pinned, whatever others it has.
        key: match host {
            HostKey::Pinned(key) => Cow::Owned(vec![key.algorithm()]),
            HostKey::Any => Preferred::default().key,
        },
        // 0.1 s faster in an emulated guest than what resists quantum computers.
        kex: Cow::Borrowed(&[
            kex::CURVE25519,
            kex::CURVE25519_PRE_RFC_8731,
            kex::EXTENSION_SUPPORT_AS_CLIENT,
        ]),
        ..Preferred::default()
    };
    client::Config {
        preferred,
        inactivity_timeout: None,
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: 0,
        nodelay: true,
        ..client::Config::default()
    }
}

const KEEPALIVE: Duration = Duration::from_secs(5);

/// Accepts one host key, or any.
struct PinnedHost {
    key: HostKey,
}

impl client::Handler for PinnedHost {
    type Error = russh::Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        Ok(match (shown, &self.key) {
            (_, HostKey::Any) => true,
            (PublicKeyOrCertificate::PublicKey { key, .. }, HostKey::Pinned(pinned)) => {
                key.key_data() == pinned.key_data()
            }
            (PublicKeyOrCertificate::Certificate(_), HostKey::Pinned(_)) => false,
        })
    }
}
