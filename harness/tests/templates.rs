//! Machines restored from a template: they are what a booted one is, and no two are the same.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use provisor_harness::{Execute, Lab, StartFrom, lab};
use rstest::rstest;

/// One body, on machines that booted and on machines that were restored.
#[rstest]
#[case::booted(StartFrom::Cold)]
#[case::restored(StartFrom::Template)]
#[tokio::test]
async fn a_machine_is_the_same_whatever_it_starts_from(lab: Lab, #[case] from: StartFrom) -> Result<()> {
    let tools = tempfile::tempdir()?;
    std::fs::write(tools.path().join("hello"), "shared")?;
    let [app, database] = lab
        .machines(["app", "database"])
        .on_vlan("mesh")
        .only("app", |app| {
            app.share("/opt/tools", tools.path())
                .file("/etc/app/secret", "s3cret", 0o600)
        })
        .start_from(from)
        .start()
        .await?;

    assert_eq!(app.run("hostname").check_ok().await?.stdout_text(), "app");
    assert_eq!(app.get("/opt/tools/hello").await?, b"shared");
    let stat = app.run("stat -c %a:%U /etc/app/secret").check_ok().await?;
    assert_eq!(stat.stdout_text(), "600:root");
    app.run("ping -c 1 -W 5 database.mesh").check_ok().await?;
    database.run("ping -c 1 -W 5 app").check_ok().await?;
    database.run("echo kept >/var/lib/kept").check_ok().await?;
    clock_is_right(&database).await?;

    database.wait_for_open_port(22).await?;
    let by_ssh = database.ssh().await?.run("hostname").check_ok().await?;
    assert_eq!(by_ssh.stdout_text(), "database");

    let boot = database
        .run("cat /proc/sys/kernel/random/boot_id")
        .check_ok()
        .await?;
    database.wait_for_unit("multi-user.target").await?;
    database
        .run("logger after-the-start; journalctl --sync; journalctl | grep after-the-start")
        .check_ok()
        .await?;
    database.reboot().await?;
    let rebooted = database
        .run("cat /proc/sys/kernel/random/boot_id")
        .check_ok()
        .await?;
    assert_ne!(boot.stdout_text(), rebooted.stdout_text());
    assert_eq!(database.get("/var/lib/kept").await?, b"kept\n");
    app.run("ping -c 1 -W 5 database").check_ok().await?;
    Ok(lab.stop().await?)
}

/// The guest's clock is within two seconds of the host's, however long it takes to ask.
async fn clock_is_right(machine: &impl Execute) -> Result<()> {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let before = now()?;
    let said = Duration::from_secs(machine.run("date +%s").check_ok().await?.stdout_text().parse()?);
    let slack = Duration::from_secs(2);
    assert!(
        before < said + slack && said < now()? + slack,
        "{said:?} is not between {before:?} and now"
    );
    Ok(())
}

#[rstest]
#[tokio::test]
async fn no_two_restored_machines_share_what_must_differ(lab: Lab) -> Result<()> {
    let machines = lab.machines(["a", "b", "c"]).on_vlan("mesh").start().await?;
    let show = [
        "cat /etc/machine-id",
        "cat /sys/class/net/eth0/address",
        "cat /sys/class/net/eth1/address",
        "ip -4 -brief address show eth1",
        "head -c 16 /dev/urandom | od -An -tx1",
        "cat /proc/sys/kernel/random/uuid",
        "cat /etc/ssh/ssh_host_ed25519_key.pub",
        "hostname",
    ];
    for command in show {
        let mut seen = BTreeSet::new();
        for machine in &machines {
            seen.insert(machine.run(command).check_ok().await?.stdout_text());
        }
        assert_eq!(seen.len(), machines.len(), "{command}: {seen:?}");
    }
    assert!(
        machines
            .iter()
            .all(|machine| machine.pss_mib().is_ok_and(|mib| mib < 256.0))
    );
    Ok(lab.stop().await?)
}

#[rstest]
#[tokio::test]
async fn a_machine_goes_back_to_where_it_was_saved(lab: Lab) -> Result<()> {
    let app = lab.machine("app").on_vlan("mesh").start().await?;
    app.run("echo before >/var/lib/state; echo before >/run/state; sync")
        .check_ok()
        .await?;
    let point = app.save().await?;
    let random = || async { app.run("head -c 16 /dev/urandom | od -An -tx1").check_ok().await };
    let first = random().await?;
    app.run("echo after >/var/lib/state; echo after >/run/state; sync; touch /var/lib/more")
        .check_ok()
        .await?;

    for _ in 0..2 {
        app.go_back(&point).await?;
        assert_eq!(app.get("/var/lib/state").await?, b"before\n");
        assert_eq!(app.get("/run/state").await?, b"before\n");
        app.run("test -e /var/lib/more").check_err().await?;
        assert_ne!(random().await?.stdout_text(), first.stdout_text());
        clock_is_right(&app).await?;
        app.run("rm /var/lib/state /run/state").check_ok().await?;
    }
    app.go_back(&point).await?;
    app.reboot().await?;
    assert_eq!(app.get("/var/lib/state").await?, b"before\n");
    Ok(lab.stop().await?)
}
