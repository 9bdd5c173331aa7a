//! A verb as a child of the console: the same program with the same words, so that Ctrl-C, a crash or a leak ends the
//! verb and not the session.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;

/// Keeps Ctrl-C from ending the console while a verb runs: the terminal sends it to both.
///
/// The handler is not inherited by a child. Ignoring the signal would be.
#[derive(Debug)]
pub(super) struct CtrlC {
    idle: Arc<AtomicBool>,
}

impl CtrlC {
    /// From now on. At the prompt the signal ends the console as before; on a terminal the prompt reads it as a key.
    pub(super) fn held_while_running() -> io::Result<CtrlC> {
        let idle = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&idle))?;
        Ok(CtrlC { idle })
    }
}

/// Runs `program` with these words to its end, and gives its exit code: 128 and the signal's number if one ended it.
pub(super) fn run(program: &Path, words: &[OsString], ctrl_c: &CtrlC) -> io::Result<i32> {
    let mut command = Command::new(program);
    command.args(words);
    if !io::stdin().is_terminal() {
        // The rest of a script is the console's to read.
        command.stdin(Stdio::null());
    }
    ctrl_c.idle.store(false, Ordering::SeqCst);
    let status = command.status();
    ctrl_c.idle.store(true, Ordering::SeqCst);
    let status = status?;
    Ok(status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> i32 {
        let ctrl_c = CtrlC {
            idle: Arc::new(AtomicBool::new(true)),
        };
        run(Path::new("sh"), &["-c".into(), script.into()], &ctrl_c).unwrap()
    }

    #[test]
    fn the_code_is_the_child_s_and_a_signal_has_one_too() {
        assert_eq!(shell("exit 0"), 0);
        assert_eq!(shell("exit 100"), 100);
        assert_eq!(shell("kill -INT $$"), 130);
    }
}
