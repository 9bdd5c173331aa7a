//! What to run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How long a command may take if it does not say: long enough for slow work in an emulated guest, and not for ever.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(300);

/// A command: a program with arguments or a text for `/bin/sh`, and what surrounds it.
///
/// `Display` shows what is run. Neither it nor `Debug` shows values of the environment or the input: they may be
/// secret.
#[derive(Clone)]
pub struct Command {
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: String,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) after_stdin: AfterStdin,
    pub(crate) deadline: Duration,
}

/// What follows the input that is given beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterStdin {
    /// The end of the file.
    End,
    /// What is sent while it runs.
    More,
}

impl Command {
    /// A program, found on the machine's `PATH`, without any shell.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            argv: vec![program.into()],
            env: BTreeMap::new(),
            cwd: "/".to_owned(),
            stdin: None,
            after_stdin: AfterStdin::End,
            deadline: DEFAULT_DEADLINE,
        }
    }

    /// A text that `/bin/sh` runs. A `&str` or `String` given to [`super::Execute::run`] is one.
    pub fn shell(text: impl Into<String>) -> Self {
        Self::new("/bin/sh").arg("-c").arg(text)
    }

    /// Adds an argument. After [`Command::shell`] the first one is the text's `$0`.
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.argv.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.argv.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable on top of the environment that the machine gives.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the working directory.
    pub fn cwd(mut self, folder: impl Into<String>) -> Self {
        self.cwd = folder.into();
        self
    }

    /// Gives it these bytes to read, and then the end of the file.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Leaves its input open for what [`Process::send`](super::Process::send) gives it. For a command that is started, not run: one that is
    /// run reads no end of it before its own.
    pub fn open_stdin(mut self) -> Self {
        self.stdin.get_or_insert_default();
        self.after_stdin = AfterStdin::More;
        self
    }

    /// The same on a terminal of its own, which `script` makes: its input and output are a person's, and its exit code is kept.
    pub(crate) fn on_terminal(mut self) -> Self {
        let line = self.to_string();
        self.argv = [
            "script",
            "--quiet",
            "--return",
            "--flush",
            "--command",
            &line,
            "/dev/null",
        ]
        .map(str::to_owned)
        .into();
        self.open_stdin()
    }

    /// Kills it, with all its descendants, when it has run for so long, times
    /// [`TIMEOUT_FACTOR_VARIABLE`](crate::wait::TIMEOUT_FACTOR_VARIABLE).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Why no machine could run this, if so.
    pub(crate) fn flaw(&self) -> Option<String> {
        let mut chars = self
            .env
            .iter()
            .flat_map(|(name, value)| [name, value])
            .chain(&self.argv);
        if chars.any(|text| text.contains('\0')) || self.cwd.contains('\0') {
            return Some("it contains a NUL; give binary data to `stdin`".to_owned());
        }
        let name = self.env.keys().find(|name| !is_variable_name(name))?;
        Some(format!(
            "{name:?} cannot name a variable; use letters, digits and underscores"
        ))
    }
}

fn is_variable_name(name: &str) -> bool {
    let word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    name.chars().all(word) && name.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

impl From<&str> for Command {
    fn from(text: &str) -> Self {
        Self::shell(text)
    }
}

impl From<String> for Command {
    fn from(text: String) -> Self {
        Self::shell(text)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [shell, flag, text] = self.argv.as_slice()
            && shell == "/bin/sh"
            && flag == "-c"
        {
            return f.write_str(text);
        }
        let words: Vec<String> = self.argv.iter().map(|word| shown(word)).collect();
        f.write_str(&words.join(" "))
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("argv", &self.argv)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field(
                "stdin",
                &self.stdin.as_ref().map(|bytes| format!("{} bytes", bytes.len())),
            )
            .field("after_stdin", &self.after_stdin)
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// A word as one would type it.
fn shown(word: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "_-+=:,./@%".contains(char);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        quote(word)
    }
}

/// A word in single quotes, so that a shell takes it literally.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        assert_eq!(Command::from("a | b").to_string(), "a | b");
        let command = Command::new("echo").args(["a b", "", "it's", "--x=/y"]);
        assert_eq!(command.to_string(), r"echo 'a b' '' 'it'\''s' --x=/y");
    }

    #[test]
    fn on_a_terminal_a_command_is_what_one_would_type() {
        let command = Command::new("echo").arg("it's").on_terminal();
        let expected = [
            "script",
            "--quiet",
            "--return",
            "--flush",
            "--command",
            r"echo 'it'\''s'",
            "/dev/null",
        ];
        assert_eq!(command.argv, expected);
        assert_eq!(
            (command.stdin, command.after_stdin),
            (Some(Vec::new()), AfterStdin::More)
        );
    }

    #[test]
    fn no_rendering_shows_a_variable_s_value_or_the_input() {
        let command = Command::new("login").env("PASSWORD", "canary").stdin("canary");
        assert!(!format!("{command} {command:?} {command:#?}").contains("canary"));
    }

    #[test]
    fn what_no_machine_could_run_is_told_beforehand() {
        assert_eq!(Command::new("a").env("B_1", "c\n").flaw(), None);
        for command in [
            Command::new("a\0b"),
            Command::new("a").arg("\0"),
            Command::new("a").env("B", "\0"),
            Command::new("a").cwd("\0"),
        ] {
            assert!(command.flaw().unwrap().contains("NUL"));
        }
        for name in ["", "1A", "A-B", "A=B", "é"] {
            assert!(
                Command::new("a")
                    .env(name, "")
                    .flaw()
                    .unwrap()
                    .contains("cannot name a variable"),
                "{name}"
            );
        }
    }
}
