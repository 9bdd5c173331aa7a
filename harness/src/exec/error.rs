//! Why a command did not do what was asked.

use std::time::Duration;

use super::output::Output;

/// A command that did not run, did not end, or did not end as it should.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// It cannot be run anywhere.
    #[error("cannot run `{command}`: {reason}")]
    Invalid {
        /// The command.
        command: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// It was not started: there is nobody to run it.
    #[error(
        "cannot run `{command}`: the connection to the machine is closed; see its console for why it ended, then \
         connect again"
    )]
    Disconnected {
        /// The command.
        command: String,
    },
    /// It was not started: the other side refused.
    #[error("cannot run `{command}`: the machine refused ({reason}); see its console or the log of its sshd")]
    Refused {
        /// The command.
        command: String,
        /// What it said.
        reason: String,
    },
    /// It was still running at its deadline and has been killed, with its descendants.
    #[error(
        "command did not end within {deadline:?} and was killed: {output}\ngive it more time with \
         `Command::deadline` if it is only slow"
    )]
    Deadline {
        /// How long it had.
        deadline: Duration,
        /// What it had written.
        output: Box<Output>,
    },
    /// A check wanted another result.
    #[error("command was to {expected}: {output}")]
    Unexpected {
        /// What the check wanted.
        expected: Expected,
        /// What came.
        output: Box<Output>,
    },
    /// A file did not arrive as it was sent.
    #[error("cannot transfer {path}: {reason}")]
    File {
        /// The path in the machine.
        path: String,
        /// What went wrong, and what to do.
        reason: String,
    },
}

/// What a check wants of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Exit code 0.
    Success,
    /// Another exit code, or a signal.
    Failure,
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Expected::Success => "succeed",
            Expected::Failure => "fail",
        })
    }
}
