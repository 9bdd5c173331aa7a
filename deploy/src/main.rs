//! The program `provisor`.

use std::process::ExitCode;

use provisor_deploy::cli;

fn main() -> ExitCode {
    cli::run(cli::default_setup)
}
