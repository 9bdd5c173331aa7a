//! `cargo run -p provisor-suites -- generate`: writes the nextest profiles and the workflows from the list of suites.

use std::io::Write;
use std::process::ExitCode;
use std::{env, io};

use provisor_suites::generated::{self, Difference, GenerateError};
use provisor_suites::workspace_root;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (text, code) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["generate"] => match generate() {
            Ok(text) => (text, ExitCode::SUCCESS),
            Err(error) => (format!("error: {error}\n"), ExitCode::FAILURE),
        },
        _ => (
            "usage: cargo run -p provisor-suites -- generate\n".to_owned(),
            ExitCode::from(2),
        ),
    };
    // Where nobody reads the report there is nobody to tell.
    let _ = io::stderr().write_all(text.as_bytes());
    code
}

fn generate() -> Result<String, GenerateError> {
    let root = workspace_root();
    let changes = generated::write(&root, &generated::files(&generated::registry(&root)?))?;
    let lines = changes.iter().map(|change| match change {
        Difference::Missing(path) => format!("new      {}\n", path.display()),
        Difference::Changed(path) => format!("changed  {}\n", path.display()),
        Difference::Stale(path) => format!("removed  {}\n", path.display()),
    });
    Ok(if changes.is_empty() {
        "nothing to change\n".to_owned()
    } else {
        lines.collect()
    })
}
