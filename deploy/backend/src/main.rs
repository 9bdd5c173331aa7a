//! The program `provisor-backend`.

use std::process::ExitCode;

fn main() -> ExitCode {
    provisor_backend::cli::run(std::env::args_os())
}
