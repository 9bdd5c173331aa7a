//! One guest from nothing to an answer, outside a test: `cargo run -p provisor-harness --example one_guest`.

use anyhow::Result;
use provisor_harness::Lab;
use provisor_harness::artifacts::TestName;

#[tokio::main]
async fn main() -> Result<()> {
    let lab = Lab::named(&TestName {
        binary: "example".to_owned(),
        test: "one_guest".to_owned(),
    })?;
    let guest = lab.machine("guest").start().await?;
    guest.run("true").check_ok().await?;
    Ok(lab.stop().await?)
}
