//! Networks between real guests, and what can be wrong with them on purpose.

use std::time::Duration;

use anyhow::{Context, Result};
use provisor_harness::{Lab, Machine, lab};
use rstest::rstest;

#[rstest]
#[tokio::test]
async fn a_cut_link_is_noticed_and_heals(lab: Lab) -> Result<()> {
    let mesh = lab.vlan("mesh");
    let capture = mesh.capture()?;
    let [app, database] = lab.machines(["app", "database"]).on_vlan("mesh").start().await?;
    app.run("ping -c 1 -W 5 database").check_ok().await?;

    let cut = mesh.cut(&app, &database).await?;
    app.run("ping -c 1 -W 1 database").check_err().await?;
    database.run("ping -c 1 -W 1 app").check_err().await?;
    assert!(cut.frames() >= 2, "{cut:?}: {}", cut.frames());
    cut.heal().await?;
    app.wait_until_succeeds("ping -c 1 -W 1 database").await?;

    // The other direction is open: what the database asks is heard, though it does not hear the answer.
    let before = echo_requests(&app).await?;
    let one_way = mesh.one_way(&app, &database).cut().await?;
    database.run("ping -c 1 -W 1 app").check_err().await?;
    assert!(echo_requests(&app).await? > before);
    drop(one_way);
    app.wait_until_succeeds("ping -c 1 -W 1 database").await?;

    let isolated = mesh.isolate(&database).await?;
    app.run("ping -c 1 -W 1 database").check_err().await?;

    let timeline = std::fs::read_to_string(lab.artifacts().join("timeline.txt"))?;
    for line in [
        "fault: `app` and `database` on mesh: cut\n",
        "healed: `app` and `database` on mesh: cut; it met",
        "healed, since it was dropped: `app` to `database` on mesh: cut; it met",
        "fault: `database` and all others on mesh: cut\n",
    ] {
        assert!(timeline.contains(line), "{line}: {timeline}");
    }
    let captured = std::fs::read(&capture)?;
    let note = b"lost on its way to database: cut";
    assert!(captured.windows(note.len()).any(|window| window == note));

    let timeline = lab.artifacts().join("timeline.txt");
    lab.stop().await?;
    let end = "still in force at the end: `database` and all others on mesh: cut\n";
    assert!(std::fs::read_to_string(timeline)?.contains(end));
    drop(isolated);
    Ok(())
}

#[rstest]
#[tokio::test]
async fn delay_loss_limits_and_a_pulled_cable_are_felt_by_the_guests(lab: Lab) -> Result<()> {
    let mesh = lab.vlan("mesh");
    let [app, database] = lab.machines(["app", "database"]).on_vlan("mesh").start().await?;
    app.run("ping -c 1 -W 5 database").check_ok().await?;

    let delay = mesh
        .between(&app, &database)
        .jittered_delay(Duration::from_millis(200), Duration::from_millis(20))
        .await?;
    let rtt = round_trip(&app, "ping -c 1 -W 5 database").await?;
    assert!(rtt >= Duration::from_millis(360), "{rtt:?}");
    delay.heal().await?;

    // 20 kB take 0.2 s, there and back.
    let limit = mesh.everywhere().limit(100_000).await?;
    let rtt = round_trip(&app, "ping -c 1 -W 5 -s 20000 database").await?;
    assert!(rtt >= Duration::from_millis(400), "{rtt:?}");
    limit.heal().await?;

    let loss = mesh.around(&app).lose(30).await?;
    let pings = app.run("ping -c 40 -i 0.01 -W 1 database").await?.stdout_text();
    let lost = loss.frames();
    assert!(lost > 0, "{pings}");
    assert!(
        !pings.contains(" 0% packet loss") && !pings.contains("100% packet loss"),
        "{pings}"
    );
    loss.heal().await?;

    let carrier = "cat /sys/class/net/eth1/carrier";
    let unplugged = mesh.unplug(&app).await?;
    app.wait_until_succeeds(format!("test $({carrier}) = 0")).await?;
    unplugged.heal().await?;
    app.wait_until_succeeds(format!("test $({carrier}) = 1 && ping -c 1 -W 1 database"))
        .await?;

    let error = lab.vlan("storage").unplug(&app).await.unwrap_err();
    assert!(
        error.to_string().contains("`app` is not on VLAN `storage`"),
        "{error}"
    );
    Ok(lab.stop().await?)
}

async fn echo_requests(machine: &Machine) -> Result<u64> {
    let output = machine
        .run("nstat -asz IcmpInEchos")
        .check_ok()
        .await?
        .stdout_text();
    let count = output
        .split_whitespace()
        .skip_while(|word| *word != "IcmpInEchos")
        .nth(1);
    Ok(count.context(output.clone())?.parse()?)
}

/// The time that one ping took.
async fn round_trip(machine: &Machine, ping: &str) -> Result<Duration> {
    let output = machine.run(ping).check_ok().await?.stdout_text();
    let time = output
        .split_once("time=")
        .and_then(|(_, rest)| rest.split_once(' '));
    let (milliseconds, _) = time.context(output.clone())?;
    Ok(Duration::from_secs_f64(milliseconds.parse::<f64>()? / 1000.0))
}
