//! The line editor: history, and completion from the fleet as it is now.

use std::cell::RefCell;

use clap::Command;
use rustyline::completion::{FilenameCompleter, Pair};
use rustyline::config::Config;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

use super::complete::complete;
use super::kind::Candidates;
use super::watch::Watch;

/// Reads lines from a terminal, or from a script on standard input.
pub(super) type Prompt = Editor<Assistant, MemHistory>;

/// A prompt that starts with the lines of earlier sessions.
pub(super) fn open(schema: &Command, watch: Watch, history: &[String]) -> rustyline::Result<Prompt> {
    // A line that starts with a blank is forgotten, as shells do it.
    let config = Config::builder()
        .auto_add_history(false)
        .history_ignore_space(true)
        .history_ignore_dups(true)?
        .max_history_size(history.len().max(1000))?
        .completion_type(rustyline::CompletionType::List)
        .build();
    let lines = MemHistory::with_config(&config);
    let mut prompt = Editor::with_history(config, lines)?;
    for line in history {
        prompt.add_history_entry(line)?;
    }
    let mut command = schema.clone();
    command.build();
    prompt.set_helper(Some(Assistant {
        command,
        watch: RefCell::new(watch),
        files: FilenameCompleter::new(),
    }));
    Ok(prompt)
}

/// Answers the Tab key.
pub(super) struct Assistant {
    command: Command,
    watch: RefCell<Watch>,
    files: FilenameCompleter,
}

impl Assistant {
    /// Reads the fleet again, and says how it changed.
    pub(super) fn news(&self) -> Option<String> {
        let mut watch = self.watch.borrow_mut();
        watch.look();
        watch.news()
    }
}

impl rustyline::completion::Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let mut watch = self.watch.borrow_mut();
        watch.look();
        let completion = complete(&self.command, line, cursor, watch.catalogue());
        match completion.candidates {
            Candidates::Paths => self.files.complete_path(line, cursor),
            Candidates::Words(words) => Ok((
                completion.start,
                words
                    .into_iter()
                    .map(|word| Pair {
                        replacement: format!("{word} "),
                        display: word,
                    })
                    .collect(),
            )),
        }
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {}

impl Validator for Assistant {}

impl Helper for Assistant {}
