//! A run as it happens: a spinner on a terminal, plain lines in a log.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::{output, summary};
use crate::progress::{Event, Phase, Progress};
use crate::verdict::Verdict;

/// Shows events on stderr.
pub(super) struct Terminal {
    spinner: Option<ProgressBar>,
    started: Mutex<Option<(Phase, Instant)>>,
}

impl Terminal {
    pub(super) fn new() -> Terminal {
        Terminal {
            spinner: std::io::stderr().is_terminal().then(spinner),
            started: Mutex::new(None),
        }
    }

    /// Takes the spinner away.
    pub(super) fn close(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| output::note(text)),
            None => output::note(text),
        }
    }

    /// What is going on now; in a log it is a line like any other.
    fn now(&self, text: String) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(text),
            None => output::note(&text),
        }
    }

    fn took(&self, phase: Phase) -> Duration {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started
            .filter(|(started, _)| *started == phase)
            .map(|(_, at)| at.elapsed())
            .unwrap_or_default()
    }
}

impl Progress for Terminal {
    fn event(&self, event: Event) {
        match event {
            Event::PhaseStarted { phase, detail } => {
                *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Some((phase, Instant::now()));
                self.now(format!("{}: {detail}", summary::phase_name(phase)));
            }
            Event::PhaseFinished { phase, detail } => {
                let seconds = self.took(phase).as_secs_f64();
                self.line(&format!(
                    "{} done in {seconds:.1} s: {detail}",
                    summary::phase_name(phase)
                ));
            }
            Event::NodeStep { node, detail } => self.now(format!("  {node}: {detail}")),
            Event::NodeFinished(report) => {
                self.line(&format!(
                    "  {}: {}",
                    report.node,
                    summary::verdict(&report.verdict)
                ));
                if let Verdict::Failed { message, .. } | Verdict::Unknown { message } = &report.verdict {
                    self.line(&indented(message));
                }
            }
            Event::Note { message } => self.line(&format!("  {message}")),
            Event::Warning { message } => self.line(&format!("warning: {message}")),
        }
    }
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}");
    let spinner = ProgressBar::new_spinner();
    if let Ok(style) = style {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
