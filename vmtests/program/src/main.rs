//! `provisor` as the scenarios run it in guests: the shipped verbs over a setup of their own, so that the graph holds
//! the tests' groups and every program is named by its path.

use std::process::ExitCode;

use provisor_deploy::cli;

fn main() -> ExitCode {
    cli::run(|globals| provisor_vmtests_program::setup(cli::default_setup(globals)))
}
