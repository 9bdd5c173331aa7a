//! The harness in real guests.

use std::time::Duration;

use anyhow::Result;
use provisor_harness::checks::Trouble;
use provisor_harness::death::Death;
use provisor_harness::wait::WaitEnd;
use provisor_harness::{Execute, ExitStatus, Lab, Transport, lab};
use rstest::rstest;

#[rstest]
#[tokio::test]
async fn two_guests_reach_each_other_by_name(lab: Lab) -> Result<()> {
    let [app, database] = lab.machines(["app", "database"]).on_vlan("mesh").start().await?;
    app.run("ping -c 1 -W 5 database").check_ok().await?;
    database.run("ping -c 1 -W 5 app.mesh").check_ok().await?;
    assert!(lab.vlan("mesh").counters().delivered >= 4);

    // One that comes later is known to those that were there.
    let late = lab.machine("late").on_vlan("mesh").start().await?;
    app.run("ping -c 1 -W 5 late").check_ok().await?;
    late.run("ping -c 1 -W 5 app").check_ok().await?;
    Ok(lab.stop().await?)
}

#[rstest]
#[tokio::test]
async fn a_command_ends_alike_by_the_agent_and_by_ssh(lab: Lab) -> Result<()> {
    let app = lab.machine("app").start().await?;
    app.wait_for_open_port(22).await?;
    let ssh = app.ssh().await?;
    same_contract(&app).await?;
    same_contract(&ssh).await?;
    Ok(lab.stop().await?)
}

async fn same_contract(way: &impl Transport) -> Result<()> {
    let output = way.run("echo out; echo err >&2; exit 3").await?;
    assert_eq!(
        (output.stdout_text(), output.stderr_text()),
        ("out".to_owned(), "err".to_owned())
    );
    assert_eq!(output.status, ExitStatus::Code(3));

    assert_eq!(way.run("kill -TERM $$").await?.status, ExitStatus::Signal(15));

    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    way.write_file("/root/bytes", &bytes, 0o600).await?;
    assert!(way.read_file("/root/bytes").await? == bytes);
    way.run("test $(stat -c %a /root/bytes) = 600").check_ok().await?;

    let late = way
        .run("sleep 1000 & exec sleep 1000")
        .deadline(Duration::from_secs(1))
        .await;
    assert!(late.is_err_and(|error| error.to_string().contains("did not end within 1s")));
    way.run("! pgrep -x sleep").check_ok().await?;
    Ok(())
}

#[rstest]
#[tokio::test]
async fn what_was_asked_for_is_there_when_a_machine_is_ready(lab: Lab) -> Result<()> {
    let tools = tempfile::tempdir()?;
    std::fs::write(tools.path().join("hello"), "shared")?;
    let app = lab
        .vlan("mesh")
        .subnet("192.0.2.0/28")
        .map(|_| lab.machine("app"))?;
    let app = app
        .on_vlan_at("mesh", "192.0.2.7".parse()?)
        .share("/opt/tools", tools.path())
        .file("/etc/app/secret", "s3cret", 0o600)
        .memory_mib(300)
        .start()
        .await?;

    assert_eq!(app.run("hostname").check_ok().await?.stdout_text(), "app");
    assert_eq!(app.get("/opt/tools/hello").await?, b"shared");
    app.run("touch /opt/tools/new").check_err().await?;
    assert_eq!(
        app.run("stat -c %a:%U /etc/app/secret")
            .check_ok()
            .await?
            .stdout_text(),
        "600:root"
    );
    app.run("ip -brief address | grep -w 192.0.2.7/28")
        .check_ok()
        .await?;
    app.run("getent hosts app.mesh | grep -w 192.0.2.7")
        .check_ok()
        .await?;
    Ok(lab.stop().await?)
}

#[rstest]
#[tokio::test]
async fn a_panic_ends_a_wait_at_once_and_shows_the_console(lab: Lab) -> Result<()> {
    let app = lab.machine("app").start().await?;
    let (waited, _) = tokio::join!(
        app.wait_for_file("/never"),
        app.run("echo c >/proc/sysrq-trigger")
    );

    let error = waited.unwrap_err();
    assert!(
        matches!(
            error.end,
            WaitEnd::Died {
                death: Death::Panicked | Death::PanicOnConsole { .. }
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("sysrq triggered crash"), "{error}");
    assert!(
        error
            .to_string()
            .ends_with(&format!("artifacts: {}", lab.artifacts().display())),
        "{error}"
    );
    assert!(
        lab.stop()
            .await
            .unwrap_err()
            .to_string()
            .starts_with("`app` had died before the lab was stopped")
    );
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_killed_qemu_ends_a_wait_and_a_command_at_once(lab: Lab) -> Result<()> {
    let app = lab.machine("app").start().await?;
    let kill = async {
        app.wait_for_file("/tmp/runs").await?;
        std::process::Command::new("kill")
            .args(["-KILL", &app.pid().to_string()])
            .status()?;
        anyhow::Ok(())
    };
    let (waited, ran, killed) = tokio::join!(
        app.wait_for_file("/never"),
        app.run("touch /tmp/runs; sleep 1000"),
        kill
    );
    killed?;
    for error in [waited.unwrap_err().to_string(), ran.unwrap_err().to_string()] {
        assert!(error.starts_with("`app` died after"), "{error}");
        assert!(error.contains("QEMU was killed by signal 9"), "{error}");
    }
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_reboot_keeps_files_and_is_a_new_boot(lab: Lab) -> Result<()> {
    let app = lab
        .machine("app")
        .on_vlan("mesh")
        .file("/etc/mine", "first", 0o644)
        .start()
        .await?;
    let boot_id = async || {
        app.run("cat /proc/sys/kernel/random/boot_id")
            .check_ok()
            .await
            .map(|o| o.stdout_text())
    };
    let before = boot_id().await?;
    app.run("echo kept >/var/lib/kept; echo changed >/etc/mine")
        .check_ok()
        .await?;
    app.wait_for_unit("multi-user.target").await?;

    app.reboot().await?;
    assert_ne!(boot_id().await?, before);
    assert_eq!(app.get("/var/lib/kept").await?, b"kept\n");
    assert_eq!(app.get("/etc/mine").await?, b"changed\n");
    app.run("ip -brief address | grep -w 10.90.0.1/24")
        .check_ok()
        .await?;
    assert_eq!(app.run("hostname").check_ok().await?.stdout_text(), "app");
    Ok(lab.stop().await?)
}

#[rstest]
#[tokio::test]
async fn a_unit_that_cannot_come_is_told_with_its_status(lab: Lab) -> Result<()> {
    let app = lab.machine("app").start().await?;
    app.wait_for_unit("ssh.service").await?;
    lab.allow(
        Trouble::FailedUnit,
        "broken.service",
        "the test waits for a unit that fails",
    );
    app.run("systemd-run --unit=broken --property=Type=oneshot --no-block false")
        .check_ok()
        .await?;

    let broken = app.wait_for_unit("broken.service").await.unwrap_err();
    assert!(broken.to_string().contains("it failed: exit-code"), "{broken}");
    assert!(broken.detail.contains("status=1/FAILURE"), "{broken}");
    let missing = app.wait_for_unit("missing.service").await.unwrap_err();
    assert!(
        missing.to_string().contains("the guest has no such unit"),
        "{missing}"
    );
    Ok(lab.stop().await?)
}
