//! The first scenario: two guests, one network.

use anyhow::Result;
use provisor_harness::{Lab, lab};
use rstest::rstest;

#[rstest]
#[tokio::test]
async fn two_guests_reach_each_other_by_name(lab: Lab) -> Result<()> {
    let [app, database] = lab.machines(["app", "database"]).on_vlan("mesh").start().await?;

    app.run("ping -c 1 -W 5 database").check_ok().await?;
    database.run("ping -c 1 -W 5 app.mesh").check_ok().await?;
    Ok(lab.stop().await?)
}
