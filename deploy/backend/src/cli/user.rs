//! `user add`: a line for the users file.

use std::io::{BufRead, Read as _, Write};

use clap::Subcommand;

use super::CliError;
use crate::password::Password;
use crate::users::hash_line;

/// Longest password in bytes; a longer input is a mistake, such as a file given for a password.
const MAX_BYTES: u64 = 4096;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print the line for a user; the password is the first line of standard input.
    Add {
        /// The user's name.
        name: String,
    },
}

pub(super) fn perform(
    command: Command,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let Command::Add { name } = command;
    let mut line = String::new();
    input.take(MAX_BYTES).read_line(&mut line)?;
    let password = Password::new(line.trim_end_matches(['\r', '\n']));
    writeln!(out, "{}", hash_line(&name, &password)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::verify;

    #[test]
    fn the_password_is_the_first_line_without_its_end() {
        let mut out = Vec::new();
        let add = Command::Add { name: "alice".into() };
        perform(add, &mut &b" pass word \r\nnext\n"[..], &mut out).unwrap();
        let line = String::from_utf8(out).unwrap();
        assert!(verify(&line, "alice", &Password::new(" pass word ")));
    }
}
