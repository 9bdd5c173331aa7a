//! `provisor console`: a prompt for the verbs of the command line.
//!
//! Verbs are declared once. Their declaration is the schema that lines are parsed by ([`line`]), that completion walks
//! ([`complete`](mod@complete), [`kind`]), and that every verb is tried with before the first prompt ([`runnable`]).
//! The fleet is read again at each line ([`watch`]); a broken one does not end the session.

mod catalogue;
mod child;
mod complete;
mod history;
mod kind;
mod line;
mod prompt;
mod runnable;
mod watch;
mod words;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use rustyline::error::ReadlineError;

use self::child::CtrlC;
use self::history::History;
use self::line::{Line, LineError, Meaning};
use self::prompt::Prompt;
use self::runnable::unrunnable;
use self::watch::Watch;
use super::fleet::FleetError;
use super::{Exit, Format, Globals, diagnostics, fleet, output};
use crate::setup::Setup;

pub(super) fn run(setup: &Setup, globals: &Globals) -> Exit {
    let unrunnable = unrunnable::<Line>(&line::schema());
    for reason in &unrunnable {
        output::error(reason);
    }
    if !unrunnable.is_empty() {
        return Exit::Failed;
    }
    match Session::open(setup, globals).and_then(Session::run) {
        Ok(()) => Exit::Done,
        Err(error) => {
            output::error(&error);
            Exit::Failed
        }
    }
}

/// Why there is no console, or none any more.
#[derive(Debug, thiserror::Error)]
enum ConsoleError {
    #[error("cannot read lines: {0}; give a terminal, or UTF-8 text on standard input")]
    Prompt(#[from] ReadlineError),
    #[error("this program does not know its own path ({0}), and each verb runs it; run it from a file")]
    NoSelf(io::Error),
    #[error("cannot watch for Ctrl-C: {0}; run the verb on the command line")]
    Signals(io::Error),
}

struct Session<'a> {
    globals: &'a Globals,
    program: PathBuf,
    prompt: Prompt,
    history: Option<History>,
    ctrl_c: CtrlC,
}

/// Whether another line is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Line,
    End,
}

impl<'a> Session<'a> {
    fn open(setup: &Setup, globals: &'a Globals) -> Result<Session<'a>, ConsoleError> {
        let history = open_history(setup);
        let lines = history.as_ref().map_or(&[][..], History::lines);
        let prompt = prompt::open(&line::schema(), Watch::new(&setup.fleet), lines)?;
        if io::stdin().is_terminal() {
            output::note("`help` lists the verbs, Tab completes, Ctrl-C ends a verb, Ctrl-D leaves");
        }
        tell_trouble(setup);
        Ok(Session {
            globals,
            program: std::env::current_exe().map_err(ConsoleError::NoSelf)?,
            prompt,
            history,
            ctrl_c: CtrlC::held_while_running().map_err(ConsoleError::Signals)?,
        })
    }

    fn run(mut self) -> Result<(), ConsoleError> {
        loop {
            if let Some(news) = self.prompt.helper().and_then(|assistant| assistant.news()) {
                output::note(&news);
            }
            match self.prompt.readline("provisor> ") {
                Ok(line) => {
                    if self.take(&line)? == Next::End {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn take(&mut self, line: &str) -> Result<Next, ConsoleError> {
        if !line.trim().is_empty() {
            self.prompt.add_history_entry(line)?;
        }
        let meaning = line::read(line, self.globals);
        if meaning.is_ok() {
            self.keep(line);
        }
        match meaning {
            Ok(Meaning::Nothing) => {}
            Ok(Meaning::Exit) => return Ok(Next::End),
            Ok(Meaning::AlreadyHere) => output::note("this is the console; `help` lists the verbs"),
            Ok(Meaning::Run(words)) => match child::run(&self.program, &words, &self.ctrl_c) {
                Ok(0) => {}
                Ok(code) => output::note(&format!("exit code {code}")),
                Err(error) => output::error(&format!(
                    "cannot run {}: {error}; see that the program is still there",
                    self.program.display()
                )),
            },
            Err(LineError::Parse(error)) => {
                // Nowhere is left to say that this could not be said.
                let _said = error.print();
                if error.use_stderr() {
                    output::note(&format!("exit code {}", REFUSED));
                }
            }
            Err(error @ LineError::Words(_)) => {
                output::error(&error);
                output::note(&format!("exit code {}", REFUSED));
            }
        }
        Ok(Next::Line)
    }

    /// Keeps a line for later sessions, unless a blank before it says not to.
    fn keep(&mut self, line: &str) {
        if line.starts_with(char::is_whitespace) || line.is_empty() {
            return;
        }
        let Some(history) = &mut self.history else { return };
        if let Err(error) = history.keep(line) {
            output::note(&format!(
                "warning: cannot write {}: {error}; the lines of this session are not kept",
                history.path().display()
            ));
            self.history = None;
        }
    }
}

/// What the command line exits with for a line that it does not understand.
const REFUSED: u8 = 3;

fn open_history(setup: &Setup) -> Option<History> {
    History::open(&setup.state_home)
        .inspect_err(|error| {
            output::note(&format!(
                "warning: no history in {}: {error}; the lines of this session are not kept",
                setup.state_home.display()
            ));
        })
        .ok()
}

/// Says what is wrong with the fleet, and that the console goes on.
fn tell_trouble(setup: &Setup) {
    match fleet::open(&setup.fleet) {
        Ok(_) => {}
        Err(error @ FleetError::Unreadable { .. }) => output::error(&error),
        Err(FleetError::Mistakes { diagnostics, files }) => {
            diagnostics::show(&diagnostics, &files, &setup.fleet, Format::Text);
            output::note(&format!(
                "the fleet has {}; its files are read again at each line",
                diagnostics::count(diagnostics.len(), "error")
            ));
        }
    }
}
