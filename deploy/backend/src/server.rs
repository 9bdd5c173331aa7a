//! The server: a socket, a store, and the users.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::http::{Gate, Service};
use crate::store::{KeepVersions, SqliteError, SqliteStore};
use crate::users::{Users, UsersError};

/// How long requests in flight may take after [`Handle::stop`].
const DRAIN: Duration = Duration::from_secs(15);

/// What a server serves, and where.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The SQLite file; made where there is none.
    pub database: PathBuf,
    /// The users file (see [`crate::users`]).
    pub users: PathBuf,
    /// Longest state.
    pub body_limit: BodyLimit,
    /// How many versions of each state are kept.
    pub keep_versions: KeepVersions,
}

/// Longest body of a write, in bytes; 64 MiB unless told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimit(pub u64);

impl Default for BodyLimit {
    fn default() -> Self {
        Self(64 << 20)
    }
}

/// The server; see [`Server::bind`].
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Reads the users, opens the database and the socket, and serves in a task of the current tokio runtime (which needs
    /// its I/O and time drivers). When it answers, clients can connect to the address.
    pub async fn bind(config: Config) -> Result<(SocketAddr, Handle), ServeError> {
        let gate = Arc::new(Gate::new(Users::read(&config.users)?)?);
        let store = SqliteStore::open(&config.database, config.keep_versions)?;
        let failed = |source| ServeError::Listen {
            address: config.listen,
            source,
        };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;

        let service = Arc::new(Service::new(
            Arc::new(store),
            Arc::clone(&gate),
            config.body_limit,
        ));
        let router = Router::new().fallback(move |request: Request| Arc::clone(&service).answer(request));
        let (stop, stopped) = oneshot::channel();
        let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
            // A handle that was dropped asks the same as one that was told to stop.
            _ = stopped.await;
        });
        let task = tokio::spawn(async move { serving.await });
        Ok((
            address,
            Handle {
                address,
                gate,
                users: config.users,
                stop,
                task,
            },
        ))
    }
}

/// A server that runs. Dropping it stops the server, without waiting for it.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    gate: Arc<Gate>,
    users: PathBuf,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Handle {
    /// Where it listens, with the real port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the users file again. On an error the users stay as they were.
    pub fn reload_users(&self) -> Result<(), UsersError> {
        self.gate.replace(Users::read(&self.users)?);
        Ok(())
    }

    /// Takes no new requests, finishes those in flight within 15 seconds, and closes the database.
    pub async fn stop(self) -> Result<(), ServeError> {
        drop(self.stop);
        let abort = self.task.abort_handle();
        match tokio::time::timeout(DRAIN, self.task).await {
            Ok(Ok(served)) => served.map_err(|source| ServeError::Served { source }),
            Ok(Err(crashed)) => Err(ServeError::Served {
                source: crashed.into(),
            }),
            Err(_) => {
                abort.abort();
                Err(ServeError::Drain)
            }
        }
    }
}

/// Why a server does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The users cannot be read.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The database cannot be opened.
    #[error(transparent)]
    Database(#[from] SqliteError),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers ({0}); mount /dev")]
    Random(#[from] getrandom::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose a free address of this host with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The server ended with an error.
    #[error("the server ended: {source}; start it again")]
    Served {
        /// Why.
        source: io::Error,
    },
    /// Requests were cut off.
    #[error("requests were still in flight {} seconds after the stop, and were cut off; repeat them", DRAIN.as_secs())]
    Drain,
}
