//! Where things stand on the deployer of a scenario: the setup that the program under test is given.

use provisor_deploy::setup::{Programs, Setup};

/// Where the lab mounts the programs.
pub const MOUNT: &str = "/opt/provisor";
/// The fleet's files.
pub const FLEET: &str = "/root/fleet";
/// The working directories.
pub const STATE_HOME: &str = "/root/state";
/// The program under test.
pub const PROVISOR: &str = "/opt/provisor/bin/provisor";
/// OpenTofu or Terraform.
pub const TOFU: &str = "/opt/provisor/bin/tofu";

/// `shipped`, with the scenario's fleet and every program by its path.
pub fn setup(shipped: Setup) -> Setup {
    Setup {
        fleet: FLEET.into(),
        state_home: STATE_HOME.into(),
        programs: Programs {
            tofu: Some(TOFU.into()),
            shell: Some("/bin/sh".into()),
            nix: Some("/usr/bin".into()),
            ssh: Some("/usr/bin/ssh".into()),
            backend: Some("/opt/provisor/bin/provisor-backend".into()),
        },
        ..shipped
    }
}
