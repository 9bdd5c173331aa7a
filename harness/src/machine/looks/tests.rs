//! Looks as tables.

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
fn a_oneshot_unit_that_has_run_with_success_has_come() {
    let text = |extra: &str| {
        printed(
            ExitStatus::Code(0),
            &format!("LoadState=loaded\nActiveState=inactive\nSubState=dead\nResult=success\n{extra}"),
        )
    };
    let never = Look::Hopeless("it is inactive, and nothing is about to start it".to_owned());
    let unwanted = "it was not started, since a condition in its file does not hold".to_owned();
    let cases = [
        (
            "Type=oneshot\nInactiveEnterTimestampMonotonic=812345\nConditionResult=yes\nConditionTimestampMonotonic=7",
            Look::Done(()),
        ),
        (
            "Type=oneshot\nInactiveEnterTimestampMonotonic=0\nConditionResult=no\nConditionTimestampMonotonic=0",
            never.clone(),
        ),
        (
            "Type=oneshot\nInactiveEnterTimestampMonotonic=812345\nConditionResult=no\nConditionTimestampMonotonic=7",
            Look::Hopeless(unwanted),
        ),
        (
            "Type=oneshot\nInactiveEnterTimestampMonotonic=812345\nJob=17",
            Look::NotYet("inactive (dead)".to_owned()),
        ),
        ("Type=simple\nInactiveEnterTimestampMonotonic=812345", never),
    ];
    for (extra, expected) in cases {
        assert_eq!(unit(&text(extra)), expected, "{extra}");
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
fn a_port_is_closed_when_the_guest_says_so() {
    let output = printed(ExitStatus::Code(0), TCP);
    assert_eq!(closed(&output, 8080), Look::Done(()));
    let open = Look::NotYet("listening on [22, 443]".to_owned());
    assert_eq!(closed(&output, 22), open);
    let lost = Look::NotYet("listening on []".to_owned());
    assert_eq!(closed(&printed(ExitStatus::Lost, ""), 22), lost);
}

const UNIX: &str = "Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 14326 /run/app.sock
0000000000000000: 00000003 00000000 00000000 0001 03 14327 /run/app.sock
0000000000000000: 00000003 00000000 00000000 0001 03 14328 /run/left over.sock
0000000000000000: 00000002 00000000 00000000 0002 01 14329 /run/log
0000000000000000: 00000003 00000000 00000000 0001 03 14330
";

#[test]
fn a_unix_socket_is_there_when_somebody_listens_at_it() {
    let output = printed(ExitStatus::Code(0), UNIX);
    let not_yet = |text: &str| Look::NotYet(text.to_owned());
    let cases = [
        ("/run/app.sock", Look::Done(())),
        ("/run/log", Look::Done(())),
        ("/run/left over.sock", not_yet("a socket, but nobody listens")),
        ("/run/app", not_yet("no socket there")),
    ];
    for (path, expected) in cases {
        assert_eq!(socket(&output, path), expected, "{path}");
    }
}

#[test]
fn a_response_is_judged_by_status_and_body() {
    let curl = |status, stdout: &str, stderr: &str| Output {
        stderr: stderr.as_bytes().to_vec(),
        ..printed(status, stdout)
    };
    let ready = |response: &Response| response.status == 200 && response.text().contains("ready");
    let not_yet = |text: &str| Look::NotYet(text.to_owned());
    let cases = [
        (
            curl(ExitStatus::Code(0), "I am ready", "200"),
            Look::Done(Response {
                status: 200,
                body: b"I am ready".to_vec(),
            }),
        ),
        (
            curl(ExitStatus::Code(0), "starting", "200"),
            not_yet("status 200, 8 bytes: \"starting\""),
        ),
        (
            curl(ExitStatus::Code(0), "ready", "503"),
            not_yet("status 503, 5 bytes: \"ready\""),
        ),
        (
            curl(ExitStatus::Code(7), "", "curl: (7) Failed to connect\n000"),
            not_yet("no response: curl: (7) Failed to connect"),
        ),
        (
            curl(ExitStatus::Code(127), "", "cannot start curl"),
            Look::Hopeless("the guest has no curl: add the package to its image".to_owned()),
        ),
        (curl(ExitStatus::Lost, "", ""), not_yet("no response: ")),
    ];
    for (output, expected) in cases {
        assert_eq!(response(output.clone(), ready), expected, "{output}");
    }
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
