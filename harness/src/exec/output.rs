//! How a command ended and what it wrote.

use std::fmt;

use super::error::{ExecError, Expected};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this code.
    Code(u8),
    /// This signal killed it. 0 is one that SSH has no name for; the agent knows them all.
    Signal(i32),
    /// Nobody knows: the machine or the connection went away first.
    Lost,
}

impl ExitStatus {
    /// Whether it exited with code 0.
    pub fn is_success(self) -> bool {
        self == ExitStatus::Code(0)
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitStatus::Code(code) => write!(f, "exit code {code}"),
            ExitStatus::Signal(signal) => write!(f, "killed by signal {signal}"),
            ExitStatus::Lost => f.write_str("lost: the machine or the connection went away"),
        }
    }
}

/// What a command wrote and how it ended. `Display` gives the command, the status and the last lines of both streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub status: ExitStatus,
    pub(crate) command: String,
}

impl Output {
    /// The command that was run.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Standard output as text without the line ends at its end; what is not UTF-8 is replaced by U+FFFD.
    pub fn stdout_text(&self) -> String {
        text(&self.stdout)
    }

    /// Standard error as text, likewise.
    pub fn stderr_text(&self) -> String {
        text(&self.stderr)
    }

    /// The output, if the exit code is 0.
    ///
    /// # Errors
    /// [`ExecError::Unexpected`] otherwise.
    pub fn check_ok(self) -> Result<Self, ExecError> {
        match self.status {
            ExitStatus::Code(0) => Ok(self),
            _ => Err(self.unexpected(Expected::Success)),
        }
    }

    /// The output, if the exit code is not 0 or a signal killed the command.
    ///
    /// # Errors
    /// [`ExecError::Unexpected`] otherwise. A lost command has not failed: nobody knows what became of it.
    pub fn check_err(self) -> Result<Self, ExecError> {
        match self.status {
            ExitStatus::Code(0) | ExitStatus::Lost => Err(self.unexpected(Expected::Failure)),
            ExitStatus::Code(_) | ExitStatus::Signal(_) => Ok(self),
        }
    }

    fn unexpected(self, expected: Expected) -> ExecError {
        ExecError::Unexpected {
            expected,
            output: Box::new(self),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_end_matches(['\n', '\r'])
        .to_owned()
}

/// So many lines of each stream stand in an error.
const LAST_LINES: usize = 20;

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.command, self.status)?;
        for (name, bytes) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let text = text(bytes);
            let lines: Vec<&str> = text.lines().collect();
            if lines.is_empty() {
                write!(f, "\n{name} is empty")?;
                continue;
            }
            let left_out = lines.len().saturating_sub(LAST_LINES);
            match left_out {
                0 => write!(f, "\n{name}:")?,
                _ => write!(f, "\n{name}, {left_out} lines left out:")?,
            }
            lines[left_out..]
                .iter()
                .try_for_each(|line| write!(f, "\n  {line}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(status: ExitStatus) -> Output {
        Output {
            stdout: b"out\n".to_vec(),
            stderr: Vec::new(),
            status,
            command: "do it".into(),
        }
    }

    #[test]
    fn each_check_accepts_just_what_it_names() {
        let cases = [
            (ExitStatus::Code(0), true, false),
            (ExitStatus::Code(1), false, true),
            (ExitStatus::Code(255), false, true),
            (ExitStatus::Signal(9), false, true),
            (ExitStatus::Lost, false, false),
        ];
        for (status, ok, err) in cases {
            assert_eq!(output(status).check_ok().is_ok(), ok, "{status}");
            assert_eq!(output(status).check_err().is_ok(), err, "{status}");
        }
    }

    #[test]
    fn a_failed_check_shows_command_status_and_the_last_lines() {
        let mut output = output(ExitStatus::Code(3));
        output.stderr = (1..=22)
            .map(|line| format!("line {line}\n"))
            .collect::<String>()
            .into_bytes();
        let message = output.check_ok().unwrap_err().to_string();
        let head = "command was to succeed: `do it`: exit code 3\nstdout:\n  out\nstderr, 2 lines left out:\n  line 3\n";
        assert!(message.starts_with(head), "{message}");
        assert!(message.ends_with("line 22"), "{message}");
    }

    #[test]
    fn text_is_without_the_last_line_end_and_never_fails() {
        let output = Output {
            stdout: b" a\xff\nb \r\n\n".to_vec(),
            ..output(ExitStatus::Code(0))
        };
        assert_eq!(output.stdout_text(), " a\u{fffd}\nb ");
        assert_eq!(output.stderr_text(), "");
    }
}
