//! What a line means: the verbs of the command line, by the same declaration, and one word more.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{
    ArgMatches, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum as _,
};

use super::words::{self, WordsError};
use crate::cli::{Globals, Verb};

/// A line of the console.
#[derive(Debug, Parser)]
#[command(
    name = "provisor",
    bin_name = "",
    no_binary_name = true,
    disable_version_flag = true
)]
pub(super) struct Line {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    word: Word,
}

#[derive(Debug, Subcommand)]
enum Word {
    #[command(flatten)]
    Verb(Verb),
    /// Leave the console; so does Ctrl-D.
    #[command(visible_alias = "quit")]
    Exit,
}

/// The schema of all lines.
pub(super) fn schema() -> Command {
    Line::command()
}

/// What to do for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It is empty.
    Nothing,
    /// Leave.
    Exit,
    /// It asks for a console, and this is one.
    AlreadyHere,
    /// Run the program with these words.
    Run(Vec<OsString>),
}

/// Why a line has no meaning.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    /// It has no words.
    #[error(transparent)]
    Words(#[from] WordsError),
    /// Its words are no verb's, or ask for help.
    #[error(transparent)]
    Parse(#[from] clap::Error),
}

/// Reads a line. The flags that the console was started with hold where the line does not say another.
pub(super) fn read(line: &str, console: &Globals) -> Result<Meaning, LineError> {
    let words = words::split(line)?;
    if words.is_empty() {
        return Ok(Meaning::Nothing);
    }
    let matches = schema().try_get_matches_from(&words)?;
    match Line::from_arg_matches(&matches)?.word {
        Word::Exit => Ok(Meaning::Exit),
        Word::Verb(Verb::Console) => Ok(Meaning::AlreadyHere),
        Word::Verb(_) => Ok(Meaning::Run(
            inherited(console, &matches)
                .into_iter()
                .chain(words.into_iter().map(OsString::from))
                .collect(),
        )),
    }
}

/// The console's flags that a line does not give itself.
fn inherited(console: &Globals, line: &ArgMatches) -> Vec<OsString> {
    // Every field is named, so that a new flag of all verbs is not forgotten here.
    let Globals {
        fleet,
        tofu,
        state_home,
        format,
    } = console;
    let format = format
        .to_possible_value()
        .map(|value| OsString::from(value.get_name()));
    let flags = [
        ("fleet", "--fleet", Some(fleet.clone().into_os_string())),
        ("tofu", "--tofu", tofu.clone().map(Into::into)),
        ("state_home", "--state-home", state_home.clone().map(Into::into)),
        ("format", "--format", format),
    ];
    flags
        .into_iter()
        .filter(|(id, _, _)| line.value_source(id) != Some(ValueSource::CommandLine))
        .filter_map(|(_, flag, value)| Some([OsString::from(flag), value?]))
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::runnable::unrunnable;
    use super::*;

    fn console() -> Globals {
        Globals {
            fleet: "my fleet".into(),
            tofu: None,
            state_home: Some("/state".into()),
            format: Default::default(),
        }
    }

    fn run(line: &str) -> Vec<OsString> {
        match read(line, &console()).unwrap() {
            Meaning::Run(words) => words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_declared_verb_is_runnable() {
        schema().debug_assert();
        assert_eq!(unrunnable::<Line>(&schema()), []);
    }

    #[test]
    fn the_console_s_flags_hold_unless_the_line_has_its_own() {
        assert_eq!(
            run("show 'a b'"),
            [
                "--fleet",
                "my fleet",
                "--state-home",
                "/state",
                "--format",
                "text",
                "show",
                "a b"
            ]
        );
        assert_eq!(
            run("check --format json --fleet other"),
            [
                "--state-home",
                "/state",
                "check",
                "--format",
                "json",
                "--fleet",
                "other"
            ]
        );
    }

    #[test]
    fn a_line_of_the_console_s_own_runs_nothing() {
        for (line, meaning) in [
            ("   ", Meaning::Nothing),
            ("exit", Meaning::Exit),
            ("quit", Meaning::Exit),
            ("console", Meaning::AlreadyHere),
        ] {
            assert_eq!(read(line, &console()).unwrap(), meaning, "{line}");
        }
    }

    #[test]
    fn a_wrong_line_says_what_is_near() {
        let said = |line| read(line, &console()).unwrap_err().to_string();
        assert!(said("chek").contains("'check'"), "{}", said("chek"));
        assert!(said("tf aply").contains("'apply'"), "{}", said("tf aply"));
        assert!(said("show").contains("<NODE>"), "{}", said("show"));
        assert!(
            said("show 'app").contains("never closed"),
            "{}",
            said("show 'app")
        );
    }
}
