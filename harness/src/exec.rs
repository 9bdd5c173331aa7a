//! Runs commands in a machine: one contract, whoever carries it out.
//!
//! [`crate::agent::Agent`] and [`crate::ssh::Ssh`] are the two ways. Both keep to this:
//!
//! - standard output and standard error arrive apart, as bytes, whole and in order;
//! - a command ends with its exit code, with the signal that killed it, or [`ExitStatus::Lost`] when the other
//!   side went away; a lost command is neither a success nor a failure;
//! - it starts in `/`, or where [`Command::cwd`] says; without [`Command::stdin`] it reads `/dev/null`;
//! - a program that cannot be started ends with code 127 (not found) or 126 and says why on standard error, as in
//!   a shell;
//! - at its deadline, or when its [`Process`] is dropped, it is killed with all its descendants, also those that
//!   left its session;
//! - it has ended when its first process has. What it had written by then is delivered; what a background child
//!   writes later is thrown away, and the child is neither waited for nor killed.
//!
//! ```no_run
//! use provisor_harness::exec::{Command, Execute};
//!
//! # async fn example(machine: impl Execute) -> Result<(), Box<dyn std::error::Error>> {
//! let kernel = machine.run("uname -r").check_ok().await?.stdout_text();
//! let backup = Command::new("pg_restore").args(["-d", "app"]).stdin(std::fs::read("app.dump")?);
//! machine.run(backup).check_ok().await?;
//! machine.run("systemctl is-failed nginx").check_err().await?;
//! # Ok(())
//! # }
//! ```

mod command;
mod error;
mod files;
mod output;
mod process;

pub(crate) use command::{AfterStdin, quote};
pub use command::{Command, DEFAULT_DEADLINE};
pub use error::{ExecError, Expected};
pub(crate) use files::checksum;
pub use output::{ExitStatus, Output};
pub(crate) use process::{BoxFuture, InputSender, RunningCommand};
pub use process::{Event, Execute, Process, Run, Stream, Transport};
