//! What a look at a guest means: pure functions from what its programs print.

use crate::exec::{ExitStatus, Output};
use crate::wait::Look;

/// What `wait_for_unit` asks systemd for.
pub(super) const UNIT_PROPERTIES: &str = "LoadState,ActiveState,SubState,Result,Job,Type,\
                                          ConditionResult,ConditionTimestampMonotonic,InactiveEnterTimestampMonotonic";

/// Judges `systemctl show --property=`[`UNIT_PROPERTIES`]: a unit that failed, does not exist, or is inactive with
/// nothing about to start it will not come. A oneshot unit that has run with success has come, although it is inactive.
pub(super) fn unit(output: &Output) -> Look<()> {
    if !output.status.is_success() {
        // Systemd does not answer yet.
        return Look::NotYet(output.to_string());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let property = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_default()
    };
    let state = format!("{} ({})", property("ActiveState"), property("SubState"));
    let queued = !matches!(property("Job"), "" | "0");
    let happened = |when: &str| !matches!(property(when), "" | "0");
    let has_run = property("Type") == "oneshot"
        && property("Result") == "success"
        && happened("InactiveEnterTimestampMonotonic");
    let unwanted = property("ConditionResult") == "no" && happened("ConditionTimestampMonotonic");
    match (property("LoadState"), property("ActiveState")) {
        ("not-found", _) => Look::Hopeless("the guest has no such unit".to_owned()),
        ("bad-setting" | "error" | "masked", _) => {
            Look::Hopeless(format!("its file is not usable: {}", property("LoadState")))
        }
        (_, "active") => Look::Done(()),
        (_, "failed") => Look::Hopeless(format!("it failed: {}", property("Result"))),
        (_, "inactive") if !queued && unwanted => {
            Look::Hopeless("it was not started, since a condition in its file does not hold".to_owned())
        }
        (_, "inactive") if !queued && has_run => Look::Done(()),
        (_, "inactive") if !queued => {
            Look::Hopeless("it is inactive, and nothing is about to start it".to_owned())
        }
        _ => Look::NotYet(state),
    }
}

/// Judges `/proc/net/tcp` and `/proc/net/tcp6`: is anything listening on `port`?
pub(super) fn listening(output: &Output, port: u16) -> Look<()> {
    let ports = listeners(output);
    if ports.contains(&port) {
        Look::Done(())
    } else {
        Look::NotYet(format!("listening on {ports:?}"))
    }
}

/// Judges the same: is nothing listening on `port` any more? Without an answer nobody knows.
pub(super) fn closed(output: &Output, port: u16) -> Look<()> {
    let ports = listeners(output);
    if output.status.is_success() && !ports.contains(&port) {
        Look::Done(())
    } else {
        Look::NotYet(format!("listening on {ports:?}"))
    }
}

/// The ports on which anything listens, in order, each once.
fn listeners(output: &Output) -> Vec<u16> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut ports: Vec<u16> = text.lines().filter_map(listener).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The port of a line `0: 0100007F:1F90 00000000:0000 0A ...`, where 0A is the state "listening".
fn listener(line: &str) -> Option<u16> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, _remote, state) = (fields.next()?, fields.next()?, fields.next()?);
    (state == "0A")
        .then(|| u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok())
        .flatten()
}

/// Judges `/proc/net/unix`: is anything listening at `path`? A file without a listener is what a killed server left.
pub(super) fn socket(output: &Output, path: &str) -> Look<()> {
    let text = String::from_utf8_lossy(&output.stdout);
    let here: Vec<_> = text
        .lines()
        .filter(|line| unix_path(line) == Some(path))
        .collect();
    match here.iter().any(|line| accepts(line)) {
        true => Look::Done(()),
        false if here.is_empty() => Look::NotYet("no socket there".to_owned()),
        false => Look::NotYet("a socket, but nobody listens".to_owned()),
    }
}

/// The path of a line `ffff…: 00000002 00000000 00010000 0001 01 14326 /run/app.sock`, which may have spaces in it.
fn unix_path(line: &str) -> Option<&str> {
    line.find('/').map(|at| &line[at..])
}

/// The flag `__SO_ACCEPTCON`; a datagram socket (type 2) needs none.
fn accepts(line: &str) -> bool {
    let mut fields = line.split_whitespace().skip(3);
    let (flags, kind) = (fields.next(), fields.next());
    kind == Some("0002")
        || flags
            .and_then(|flags| u32::from_str_radix(flags, 16).ok())
            .is_some_and(|flags| flags & 0x1_0000 != 0)
}

/// What `wait_for_http` has curl say of a response, on standard error.
pub(super) const CURL_SAYS: &str = "%{stderr}%{http_code}";

/// A response of an HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code, such as 200.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as text; what is not UTF-8 is replaced by U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// So much of a body is told, in bytes.
const BODY_SHOWN: usize = 200;

/// Judges curl: has the server given a response that `wanted` takes?
pub(super) fn response(output: Output, wanted: impl Fn(&Response) -> bool) -> Look<Response> {
    match output.status {
        ExitStatus::Code(0) => {}
        ExitStatus::Code(127) => {
            return Look::Hopeless("the guest has no curl: add the package to its image".to_owned());
        }
        _ => {
            let said = output.stderr_text();
            return Look::NotYet(format!(
                "no response: {}",
                said.lines().next().unwrap_or_default()
            ));
        }
    }
    let Ok(status) = output.stderr_text().parse() else {
        return Look::NotYet(format!("curl said {:?}", output.stderr_text()));
    };
    let response = Response {
        status,
        body: output.stdout,
    };
    if wanted(&response) {
        return Look::Done(response);
    }
    let shown = String::from_utf8_lossy(&response.body[..response.body.len().min(BODY_SHOWN)]).into_owned();
    Look::NotYet(format!(
        "status {status}, {} bytes: {shown:?}",
        response.body.len()
    ))
}

/// Judges a command that is run until it succeeds.
pub(super) fn success(output: Output) -> Look<Output> {
    if output.status.is_success() {
        Look::Done(output)
    } else {
        Look::NotYet(output.to_string())
    }
}

/// Judges a command that is run until it fails. A lost one has not failed.
pub(super) fn failure(output: Output) -> Look<Output> {
    match output.status {
        ExitStatus::Code(0) | ExitStatus::Lost => Look::NotYet(output.to_string()),
        ExitStatus::Code(_) | ExitStatus::Signal(_) => Look::Done(output),
    }
}

#[cfg(test)]
mod tests;
