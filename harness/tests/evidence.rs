//! What a test leaves behind, and who may look at it while it lasts.

#![allow(clippy::unwrap_used, reason = "what a test needs may fail as the test does")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use provisor_harness::artifacts::TestName;
use provisor_harness::cache::Cache;
use provisor_harness::checks::Trouble;
use provisor_harness::report::{Ending, Report};
use provisor_harness::running::{self, Phase, RunningLab};
use provisor_harness::{Lab, lab};
use rstest::rstest;

fn inner(test: &str) -> TestName {
    TestName {
        binary: "evidence".to_owned(),
        test: format!("inner.{test}"),
    }
}

const OOPS: &str = "echo '<0>BUG: unable to handle page fault for address: 0' >/dev/kmsg";
const FAILING_UNIT: &str = "systemd-run --unit=broken --property=Type=oneshot --wait false";

#[rstest]
#[tokio::test]
async fn trouble_fails_a_test_that_would_pass_and_what_is_allowed_does_not(lab: Lab) -> Result<()> {
    let troubled = Lab::named(&inner("trouble"))?;
    let folder = troubled.artifacts().to_owned();
    let [here, there] = [lab.machine("app").start(), troubled.machine("app").start()];
    let (here, there) = tokio::try_join!(here, there)?;
    for machine in [&here, &there] {
        machine.run(OOPS).check_ok().await?;
        machine.run(FAILING_UNIT).check_err().await?;
    }
    for machine in [&here, &there] {
        machine
            .wait_for_console("page fault", machine.console().start())
            .await?;
    }

    let error = troubled.stop().await.unwrap_err().to_string();
    assert!(error.contains("`app`: kernel error: "), "{error}");
    assert!(
        error.contains("`app`: failed unit: broken.service: exit-code"),
        "{error}"
    );
    assert_eq!(Ending::of(&folder), Ending::Failed);
    let state = fs::read_to_string(folder.join("app/state"))?;
    assert!(
        state.contains("broken.service") && state.contains("/sbin/init"),
        "{state}"
    );
    let report = Report::read(&folder)?;
    assert!(
        report.text().contains(" app          journal "),
        "{}",
        report.text()
    );
    assert!(report.peak_mib.is_some());

    lab.allow(Trouble::Oops, "page fault", "the test writes it itself")
        .allow(Trouble::FailedUnit, "broken.service", "the test makes it fail");
    Ok(lab.stop().await?)
}

const HOLDER: &str = "PROVISOR_TEST_HOLDER";

/// The test that fails is this very one, started once more in that role.
#[tokio::test]
async fn a_kept_lab_outlives_its_test_until_it_is_swept() -> Result<()> {
    if std::env::var_os(HOLDER).is_some() {
        let lab = Lab::named(&inner("kept"))?;
        lab.machines(["app", "database"]).on_vlan("mesh").start().await?;
        anyhow::bail!("this test fails, so that its lab is kept");
    }
    let failed = Command::new(std::env::current_exe()?)
        .args(["--exact", "a_kept_lab_outlives_its_test_until_it_is_swept"])
        .env(HOLDER, "1")
        .env(running::KEEP_VARIABLE, "1")
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success(), "{said}");
    assert!(said.contains("app, a shell: ssh "), "{said}");
    assert!(said.contains("[[ATTACHMENT|"), "{said}");

    let cache = Cache::open()?;
    let kept = RunningLab::all(&cache)?
        .into_iter()
        .find(|lab| lab.phase == Phase::Kept && lab.record.test == "evidence/inner.kept")
        .context("the lab is not kept")?;
    let [app, _database] = &kept.record.machines[..] else {
        anyhow::bail!("{:?}", kept.record)
    };
    let greeting = ask_monitor(&app.monitor)?;
    let pinged = Command::new("ssh")
        .args(kept.ssh_args(app))
        .arg("ping -c 1 -W 10 database.mesh")
        .stdin(Stdio::null())
        .output()?;

    kept.end(Duration::from_secs(30))?;
    assert!(greeting.contains("QMP"), "{greeting}");
    assert!(pinged.status.success(), "{pinged:?}");
    for machine in &kept.record.machines {
        assert!(!Path::new(&format!("/proc/{}", machine.pid)).exists());
    }
    running::sweep(&cache)?;
    assert!(!kept.folder.exists());
    Ok(())
}

fn ask_monitor(socket: &Path) -> Result<String> {
    let mut monitor = UnixStream::connect(socket)?;
    monitor.write_all(b"\n")?;
    let mut line = String::new();
    BufReader::new(monitor).read_line(&mut line)?;
    Ok(line)
}
