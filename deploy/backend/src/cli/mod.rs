//! The program's verbs, for `provisor-backend` and for any program that offers the same.

mod admin;
mod notify;
mod serve;
mod user;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::server::ServeError;
use crate::state::StateKey;
use crate::store::{SqliteError, StoreError};
use crate::users::UsersError;

/// Runs one command line; the first of `args` is the program's name, as usage texts are to show it.
///
/// Data goes to standard output, all else to standard error. Exit codes: 0 done, 1 failed or damage found, 2 wrong
/// usage, 3 refused.
pub fn run<A: Into<OsString> + Clone>(args: impl IntoIterator<Item = A>) -> ExitCode {
    let command = match Cli::try_parse_from(args) {
        Ok(cli) => cli.command,
        Err(error) => {
            // Nowhere is left to say that this could not be said.
            _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match command.perform(&mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            _ = writeln!(io::stderr(), "error: {error}");
            error.exit_code()
        }
    }
}

/// An HTTP state backend for OpenTofu and Terraform.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve states over HTTP until SIGTERM or SIGINT; SIGHUP reads the users file again.
    Serve(serve::Arguments),
    /// Make lines for the users file.
    #[command(subcommand)]
    User(user::Command),
    /// List the versions kept of a state, oldest first.
    Versions {
        #[command(flatten)]
        state: StateArguments,
        /// How to print them.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Make an old version of a state current, as a new version. Refused while the state is locked.
    Restore {
        #[command(flatten)]
        state: StateArguments,
        /// Number of the version, as `versions` shows it.
        version: u64,
    },
    /// Look for damage in the database.
    Check {
        #[command(flatten)]
        database: DatabaseArgument,
    },
}

#[derive(Debug, clap::Args)]
struct StateArguments {
    /// The state's key: what follows /state/ in its address, decoded.
    key: StateKey,
    #[command(flatten)]
    database: DatabaseArgument,
}

#[derive(Debug, clap::Args)]
struct DatabaseArgument {
    /// The SQLite file. A server may be using it.
    #[arg(long = "database", value_name = "PATH")]
    path: PathBuf,
}

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people.
    #[default]
    Text,
    /// One JSON value.
    Json,
}

impl Command {
    fn perform(self, out: &mut dyn Write) -> Result<(), CliError> {
        match self {
            Self::Serve(arguments) => serve::serve(arguments, out),
            Self::User(command) => user::perform(command, &mut io::stdin().lock(), out),
            Self::Versions { state, format } => admin::versions(&state, format, out),
            Self::Restore { state, version } => admin::restore(&state, version, out),
            Self::Check { database } => admin::check(&database, out),
        }
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Users(#[from] UsersError),
    #[error(transparent)]
    Database(#[from] SqliteError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot read or write ({0}); check standard input and standard output")]
    Stream(#[from] io::Error),
    #[error("the state {key} is locked by {holder}; wait until it is released, or release it by force")]
    Locked { key: StateKey, holder: String },
    #[error("version {version} of {key} is not kept; see `versions {key}`")]
    NoSuchVersion { key: StateKey, version: u64 },
    #[error("the database is damaged in {problems} place(s); restore it from a backup")]
    Damaged { problems: usize },
}

impl CliError {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Locked { .. } | Self::NoSuchVersion { .. } => ExitCode::from(3),
            _ => ExitCode::FAILURE,
        }
    }
}
