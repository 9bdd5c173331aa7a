//! The guard on the host: it runs one program and sees to it that the program does not outlive whoever asked.
//!
//! Standard input is a socket to the process that asked. It is closed when that process ends, however it ends;
//! then the program and all its descendants are killed. What happened is told on the same socket, a line each:
//! `pid N`, `failed TEXT`, `exit N`, `signal N`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use crate::sys::{self, Epoll, Interest};
use crate::tree::{descendants, processes};

const ASKER: u64 = 0;
const PROGRAM: u64 = 1;

/// Runs the program and exits as it did; a signal becomes 128 and its number, as in a shell.
pub(crate) fn guard(argv: &[String]) -> Result<ExitCode, String> {
    let asker = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let mut asker = asker.map_err(|error| format!("cannot use standard input: {error}"))?;
    let mut child = match start(argv) {
        Ok(child) => child,
        Err(error) => {
            tell(&mut asker, &format!("failed {error}"));
            return Ok(ExitCode::from(127));
        }
    };
    tell(&mut asker, &format!("pid {}", child.id()));
    let watched = wait(&asker, &child);
    // However the wait ended, failure included, nothing may stay.
    sys::signal(child.id() as i32, sys::SIGKILL);
    let status = child
        .wait()
        .map_err(|error| format!("cannot reap the program: {error}"));
    kill_descendants(child.id());
    watched.map_err(|error| format!("cannot watch the program: {error}"))?;
    let status = status?;
    let (word, number, code) = match status.signal() {
        Some(signal) => ("signal", signal, 128 + signal),
        None => ("exit", status.code().unwrap_or(1), status.code().unwrap_or(1)),
    };
    tell(&mut asker, &format!("{word} {number}"));
    Ok(ExitCode::from(code as u8))
}

fn start(argv: &[String]) -> io::Result<Child> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    sys::adopt_orphans()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    // If the guard itself is killed, the program still goes. The guard has one thread, and it lives as long as the
    // guard: the signal is tied to the thread that forks.
    sys::dies_with_parent(&mut command);
    command.spawn()
}

/// Returns when the program has ended or the asker is gone.
fn wait(mut asker: &File, child: &Child) -> io::Result<()> {
    let pidfd = sys::pidfd(child.id())?;
    let epoll = Epoll::new()?;
    epoll.add(asker.as_fd(), Interest::Read, ASKER)?;
    epoll.add(pidfd.as_fd(), Interest::Read, PROGRAM)?;
    loop {
        for token in epoll.wait(None)? {
            if token == PROGRAM {
                return Ok(());
            }
            // Nothing is ever said to the guard; an error is as good as the end.
            match asker.read(&mut [0; 64]) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
        }
    }
}

/// Orphans of the program have become children of the guard: none can hide.
fn kill_descendants(group: u32) {
    sys::signal(-(group as i32), sys::SIGKILL);
    loop {
        sys::reap_all();
        let left = descendants(&processes(), std::process::id());
        if left.is_empty() {
            return;
        }
        left.iter().for_each(|pid| sys::signal(*pid as i32, sys::SIGKILL));
        thread::sleep(Duration::from_millis(1));
    }
}

/// The asker may be gone: then nobody needs to know.
fn tell(asker: &mut File, line: &str) {
    let _ = asker.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes());
}
