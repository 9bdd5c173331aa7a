//! Waits for what happens in a real guest.

use std::time::{Duration, Instant};

use anyhow::Result;
use provisor_harness::wait::{Look, WaitEnd, WaitError, scaled};
use provisor_harness::{Execute, Lab, MachineBuilder, lab};
use rstest::rstest;

/// Systemd listens, and a shell answers.
fn with_a_server(machine: MachineBuilder) -> MachineBuilder {
    let sockets = "[Socket]\nListenStream=8080\nListenStream=/run/web.sock\nAccept=yes\n";
    let answer =
        r#"while read -r line && [ $${#line} -gt 1 ]; do :; done; printf 'HTTP/1.0 200 OK\r\n\r\nready'"#;
    let service = format!(
        "[Service]\nExecStart=/bin/sh -c \"{}\"\nStandardInput=socket\n",
        answer.replace('\\', r"\\")
    );
    machine
        .file("/etc/systemd/system/web.socket", sockets, 0o644)
        .file("/etc/systemd/system/web@.service", service, 0o644)
}

#[rstest]
#[tokio::test]
async fn each_wait_ends_when_what_it_waits_for_is_there(lab: Lab) -> Result<()> {
    let app = with_a_server(lab.machine("app"))
        .start()
        .await?
        .within(Duration::from_secs(60));
    let later = "sleep 1; systemctl start web.socket; sleep 1; echo done >/run/file; logger -p kern.err nothing; echo hello >/dev/console";
    let cursor = app.console_cursor();
    let (port, socket, file, console, started) = tokio::join!(
        app.wait_for_open_port(8080),
        app.wait_for_socket("/run/web.sock"),
        app.wait_for_file("/run/file"),
        app.wait_for_console("hello", cursor),
        app.run(later),
    );
    port?;
    socket?;
    file?;
    console?;
    started?.check_ok()?;

    let ready = app.wait_for_http("http://localhost:8080/health", |response| response.status == 200);
    assert_eq!(ready.await?.text(), "ready");
    app.run("systemctl stop web.socket").check_ok().await?;
    app.wait_for_closed_port(8080).await?;

    // A oneshot unit is inactive when it has done its work.
    app.put(
        "/etc/systemd/system/once.service",
        "[Service]\nType=oneshot\nExecStart=/bin/true\n",
        0o644,
    )
    .await?;
    // Nobody's unit is forgotten as soon as it is inactive.
    app.run("systemctl add-wants multi-user.target once.service; systemctl start once.service")
        .check_ok()
        .await?;
    app.wait_for_unit("once.service").await?;

    let version = app.wait_until("its kernel's version", || async {
        match app.get("/proc/version").await {
            Ok(text) => Look::Done(text),
            Err(error) => Look::NotYet(error.to_string()),
        }
    });
    assert!(!version.await?.is_empty());
    Ok(lab.stop().await?)
}

#[rstest]
#[tokio::test]
async fn a_wait_in_vain_tells_what_there_was_and_what_the_guest_is_busy_with(lab: Lab) -> Result<()> {
    let slow = "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/bin/sleep 1000\n";
    let app = lab
        .machine("app")
        .file("/etc/systemd/system/slow.service", slow, 0o644)
        .start()
        .await?;
    app.run("systemctl start --no-block slow.service; echo last words >/dev/console")
        .check_ok()
        .await?;
    let impatient = app.within(Duration::from_secs(3));

    let unit = impatient.wait_for_unit("slow.service").await.unwrap_err();
    assert!(last(&unit).starts_with("activating (start"), "{unit}");
    assert!(unit.detail.contains("Active: activating (start)"), "{unit}");
    let job = |line: &str| line.contains("slow.service") && line.trim_end().ends_with("running");
    assert!(unit.detail.lines().any(job), "{unit}");

    let port = impatient.wait_for_open_port(8080).await.unwrap_err();
    assert!(last(&port).starts_with("listening on ["), "{port}");
    assert!(port.detail.contains("slow.service"), "{port}");

    let http = impatient
        .wait_for_http("http://localhost:8080/", |_| true)
        .await
        .unwrap_err();
    assert!(last(&http).contains("curl: (7) Failed to connect"), "{http}");

    let condition = impatient.wait_until("the impossible", || async {
        Look::<()>::NotYet("6 of 7".to_owned())
    });
    let condition = condition.await.unwrap_err();
    assert_eq!(last(&condition), "6 of 7");
    for error in [unit, port, http, condition] {
        assert!(error.evidence.console.contains("last words"), "{error}");
    }
    Ok(lab.stop().await?)
}

#[rstest]
#[tokio::test]
async fn all_that_waits_for_a_guest_ends_within_a_second_of_its_death(lab: Lab) -> Result<()> {
    let app = lab.machine("app").start().await?;
    app.wait_for_open_port(22).await?;
    let ssh = app.ssh().await?;
    let kill = async {
        app.wait_until_succeeds("test -e /tmp/agent -a -e /tmp/ssh")
            .await?;
        let pid = app.pid().to_string();
        std::process::Command::new("kill")
            .args(["-KILL", &pid])
            .status()?;
        anyhow::Ok(Instant::now())
    };
    let cursor = app.console_cursor();
    let (unit, port, closed, socket, file, http, console, condition, ran, by_ssh, killed) = tokio::join!(
        app.wait_for_unit("never.target.wants"),
        app.wait_for_open_port(8080),
        app.wait_for_closed_port(22),
        app.wait_for_socket("/never"),
        app.wait_for_file("/never"),
        app.wait_for_http("http://localhost:8080/", |_| true),
        app.wait_for_console("never", cursor),
        app.wait_until("never", std::future::pending::<Look<()>>),
        app.run("touch /tmp/agent; sleep 1000"),
        ssh.run("touch /tmp/ssh; sleep 1000").check_err(),
        kill,
    );
    let took = killed?.elapsed();
    // A unit that does not exist is told of at once: it waits for nothing.
    assert!(unit.is_err());
    let died = [
        port.err(),
        closed.err(),
        socket.err(),
        file.err(),
        http.err(),
        console.err(),
        condition.err(),
    ];
    for error in died.into_iter().map(Option::unwrap) {
        assert!(matches!(error.end, WaitEnd::Died { .. }), "{error}");
    }
    assert!(
        ran.unwrap_err()
            .to_string()
            .contains("QEMU was killed by signal 9")
    );
    assert!(
        by_ssh
            .unwrap_err()
            .to_string()
            .contains("lost: the machine or the connection went away")
    );
    assert!(took < scaled(Duration::from_secs(1)), "{took:?}");
    Ok(())
}

fn last(error: &WaitError) -> &str {
    match &error.end {
        WaitEnd::TimedOut { last } => last,
        end => panic!("{end:?}"),
    }
}
