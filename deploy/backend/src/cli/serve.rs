//! `serve`: the server until a signal ends it.

use std::io::{self, IsTerminal as _, Write};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{CliError, notify};
use crate::server::{BodyLimit, Config, Handle, Server};
use crate::store::KeepVersions;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Address to listen on, such as 10.90.0.10:8480 or [::1]:8480. Port 0 takes a free one, which is printed.
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The SQLite file; made, readable by its owner only, where there is none.
    #[arg(long, value_name = "PATH")]
    database: PathBuf,
    /// The users file: lines of `user add`, not readable by others.
    #[arg(long, value_name = "FILE")]
    users: PathBuf,
    /// Longest state, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = BodyLimit::default().0)]
    body_limit: u64,
    /// How many versions of each state are kept.
    #[arg(long, value_name = "COUNT", default_value_t = KeepVersions::default().0)]
    keep_versions: NonZeroU32,
}

/// Serves; writes one line when clients can connect.
pub(super) fn serve(arguments: Arguments, out: &mut dyn Write) -> Result<(), CliError> {
    log_to_stderr();
    // One thread does all that does not block. Hashes and SQLite run on the blocking pool.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let config = Config {
            listen: arguments.listen,
            database: arguments.database,
            users: arguments.users,
            body_limit: BodyLimit(arguments.body_limit),
            keep_versions: KeepVersions(arguments.keep_versions),
        };
        let (address, handle) = Server::bind(config).await?;
        writeln!(out, "listening on http://{address}")?;
        out.flush()?;
        if let Err(error) = notify::ready() {
            tracing::warn!("systemd could not be told that the server is ready: {error}");
        }

        signals.end(&handle).await;
        tracing::info!("stopping; requests in flight are finished first, and a second signal cuts them off");
        tokio::select! {
            stopped = handle.stop() => Ok(stopped?),
            () = signals.second() => Ok(()),
        }
    })
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// From here on these signals do not end the process by themselves.
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for SIGTERM or SIGINT, and reads the users again on each SIGHUP before it.
    async fn end(&mut self, handle: &Handle) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => match handle.reload_users() {
                    Ok(()) => tracing::info!("the users file was read again"),
                    Err(error) => tracing::error!("the users stay as they were: {error}"),
                },
            }
        }
    }

    async fn second(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A program that offers this verb may have a log of its own, which is then kept.
fn log_to_stderr() {
    let coloured =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(coloured)
        .with_target(false);
    _ = log.with_max_level(tracing::Level::INFO).try_init();
}
