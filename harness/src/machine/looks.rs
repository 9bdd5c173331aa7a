//! What a look at a guest means: pure functions from what its programs print.

use crate::exec::{ExitStatus, Output};
use crate::wait::Look;

/// What `wait_for_unit` asks systemd for.
pub(super) const UNIT_PROPERTIES: &str = "LoadState,ActiveState,SubState,Result,Job";

/// Judges `systemctl show --property=`[`UNIT_PROPERTIES`]: a unit that failed, does not exist, or is inactive with
/// nothing about to start it will not come.
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
    match (property("LoadState"), property("ActiveState")) {
        ("not-found", _) => Look::Hopeless("the guest has no such unit".to_owned()),
        ("bad-setting" | "error" | "masked", _) => {
            Look::Hopeless(format!("its file is not usable: {}", property("LoadState")))
        }
        (_, "active") => Look::Done(()),
        (_, "failed") => Look::Hopeless(format!("it failed: {}", property("Result"))),
        (_, "inactive") if !queued => {
            Look::Hopeless("it is inactive, and nothing is about to start it".to_owned())
        }
        _ => Look::NotYet(state),
    }
}

/// Judges `/proc/net/tcp` and `/proc/net/tcp6`: is anything listening on `port`?
pub(super) fn listening(output: &Output, port: u16) -> Look<()> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut ports: Vec<u16> = text.lines().filter_map(listener).collect();
    ports.sort_unstable();
    ports.dedup();
    if ports.contains(&port) {
        Look::Done(())
    } else {
        Look::NotYet(format!("listening on {ports:?}"))
    }
}

/// The port of a line `0: 0100007F:1F90 00000000:0000 0A ...`, where 0A is the state "listening".
fn listener(line: &str) -> Option<u16> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, _remote, state) = (fields.next()?, fields.next()?, fields.next()?);
    (state == "0A")
        .then(|| u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok())
        .flatten()
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
mod tests {
    use super::*;

    fn printed(status: ExitStatus, stdout: &str) -> Output {
        Output {
            stdout: stdout.as_bytes().to_vec(),
            stderr: Vec::new(),
            status,
            command: "look".to_owned(),
        }
    }

    fn show(load: &str, active: &str, sub: &str, result: &str, job: &str) -> Output {
        let text = format!(
            "Result={result}\nLoadState={load}\nActiveState={active}\nSubState={sub}\n{}",
            if job.is_empty() {
                String::new()
            } else {
                format!("Job={job}\n")
            }
        );
        printed(ExitStatus::Code(0), &text)
    }

    #[test]
    fn a_unit_is_waited_for_only_while_it_may_still_come() {
        let not_yet = |text: &str| Look::NotYet(text.to_owned());
        let hopeless = |text: &str| Look::Hopeless(text.to_owned());
        let cases = [
            (show("loaded", "active", "running", "success", ""), Look::Done(())),
            (show("loaded", "active", "exited", "success", ""), Look::Done(())),
            (
                show("loaded", "activating", "start-pre", "success", "12"),
                not_yet("activating (start-pre)"),
            ),
            (
                show("loaded", "activating", "auto-restart", "exit-code", ""),
                not_yet("activating (auto-restart)"),
            ),
            (
                show("loaded", "reloading", "reload", "success", "12"),
                not_yet("reloading (reload)"),
            ),
            (
                show("loaded", "inactive", "dead", "success", "12"),
                not_yet("inactive (dead)"),
            ),
            (
                show("loaded", "deactivating", "stop", "success", "9"),
                not_yet("deactivating (stop)"),
            ),
            (
                show("loaded", "inactive", "dead", "success", ""),
                hopeless("it is inactive, and nothing is about to start it"),
            ),
            (
                show("loaded", "failed", "failed", "exit-code", ""),
                hopeless("it failed: exit-code"),
            ),
            (
                show("not-found", "inactive", "dead", "success", ""),
                hopeless("the guest has no such unit"),
            ),
            (
                show("masked", "inactive", "dead", "success", ""),
                hopeless("its file is not usable: masked"),
            ),
        ];
        for (output, expected) in cases {
            assert_eq!(unit(&output), expected, "{output}");
        }
    }

    #[test]
    fn a_systemd_that_does_not_answer_yet_is_waited_for() {
        let output = Output {
            stderr: b"Failed to connect to bus\n".to_vec(),
            ..printed(ExitStatus::Code(1), "")
        };
        let Look::NotYet(last) = unit(&output) else {
            panic!("{output}")
        };
        assert!(last.contains("Failed to connect to bus"), "{last}");
    }

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:0016 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:01BB 00000000000000000000000000000000:0000 0A 00000000:00000000
";

    #[test]
    fn a_port_is_open_when_something_listens_on_it() {
        let output = printed(ExitStatus::Code(0), TCP);
        for port in [22, 443] {
            assert_eq!(listening(&output, port), Look::Done(()));
        }
        assert_eq!(
            listening(&output, 8080),
            Look::NotYet("listening on [22, 443]".to_owned())
        );
        assert_eq!(
            listening(&printed(ExitStatus::Code(0), ""), 22),
            Look::NotYet("listening on []".to_owned())
        );
    }

    #[test]
    fn a_lost_command_is_neither_a_success_nor_a_failure() {
        for (status, succeeds, fails) in [
            (ExitStatus::Code(0), true, false),
            (ExitStatus::Code(1), false, true),
            (ExitStatus::Signal(9), false, true),
            (ExitStatus::Lost, false, false),
        ] {
            assert_eq!(
                matches!(success(printed(status, "")), Look::Done(_)),
                succeeds,
                "{status}"
            );
            assert_eq!(
                matches!(failure(printed(status, "")), Look::Done(_)),
                fails,
                "{status}"
            );
        }
    }
}
