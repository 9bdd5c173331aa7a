//! How a program that makes an image ended, and what it said.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ExitStatus, Output};
use std::thread::JoinHandle;

use super::error::{ImageError, io_error};
use crate::cache::{CacheError, free_space};

/// Lines kept of what a program says: apt's reason is within the last few.
const KEPT: usize = 25;

/// A program that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    program: &'static str,
    status: ExitStatus,
    tail: String,
}

impl Finished {
    pub(super) fn wait(program: &'static str, child: &mut Child, tail: String) -> Result<Self, ImageError> {
        let status = child
            .wait()
            .map_err(io_error("cannot wait for", Path::new(program)))?;
        Ok(Self {
            program,
            status,
            tail,
        })
    }

    pub(super) fn of(program: &'static str, output: &Output) -> Self {
        Self {
            program,
            status: output.status,
            tail: lines_of(Some(output.stderr.as_slice()), |_| ()),
        }
    }

    /// An error unless it succeeded.
    pub(super) fn check(&self, hint: &'static str) -> Result<(), ImageError> {
        if self.status.success() {
            return Ok(());
        }
        let (status, tail) = (self.status.to_string(), self.tail.clone());
        Err(ImageError::Program {
            program: self.program,
            status,
            tail,
            hint,
        })
    }

    /// An error if it failed because the disk under `folder` is full.
    pub(super) fn check_space(&self, folder: &Path, need: u64) -> Result<(), ImageError> {
        if self.status.success() || !self.tail.contains("No space left on device") {
            return Ok(());
        }
        let path = folder.parent().unwrap_or(folder).to_owned();
        let free = free_space(folder)?;
        Err(CacheError::NoSpace { path, need, free }.into())
    }

    /// An error if it failed and whoever fed it did not.
    pub(super) fn check_unless_input_failed(&self, input: &Self) -> Result<(), ImageError> {
        // The feeder of a reader that died is killed by its pipe or says so.
        let pipe_broke = input.tail.contains("Broken pipe") || input.tail.contains("signal 13");
        if input.status.success() || pipe_broke {
            return self.check("check that squashfs-tools is 4.5 or later");
        }
        Ok(())
    }
}

/// Reads all lines, shows each to `each`, and returns the last ones.
pub(super) fn lines_of(stream: Option<impl Read>, mut each: impl FnMut(&str)) -> String {
    let mut kept = VecDeque::new();
    let Some(stream) = stream else {
        return String::new();
    };
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        each(&line);
        kept.push_back(line);
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }
    Vec::from(kept).join("\n")
}

/// The same in a thread, for a program whose output nobody shows.
pub(super) fn tail_of(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || lines_of(stream, |_| ()))
}
