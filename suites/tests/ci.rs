//! `.ci/run`, with a fake `./dev` and a fake cargo.

use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use provisor_suites::workspace_root;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

struct Run {
    code: Option<i32>,
    stdout: String,
    asked: Vec<String>,
}

/// Runs it where the tests and clippy end with these codes.
fn ci(tests: &str, clippy: &str) -> Result<Run> {
    let root = workspace_root();
    let folder = tempfile::tempdir()?;
    let fakes = root.join("suites/tests/fakes");
    for name in [".ci", "bin"] {
        fs::create_dir(folder.path().join(name))?;
    }
    fs::copy(root.join(".ci/run"), folder.path().join(".ci/run"))?;
    symlink(fakes.join("fake_dev"), folder.path().join("dev"))?;
    symlink(fakes.join("fake_cargo"), folder.path().join("bin/cargo"))?;

    let log = folder.path().join("log");
    let path = format!(
        "{}:{}",
        folder.path().join("bin").display(),
        std::env::var("PATH")?
    );
    let mut command = Command::new("bash");
    command
        .arg(folder.path().join(".ci/run"))
        .env("PATH", path)
        .env("FAKE_LOG", &log)
        .stdin(Stdio::null());
    let output = command
        .env("FAKE_TESTS", tests)
        .env("FAKE_CLIPPY", clippy)
        .output()?;
    let asked = fs::read_to_string(log)?.lines().map(str::to_owned).collect();
    Ok(Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout)?,
        asked,
    })
}

#[test]
fn it_sets_up_then_lints_then_tests() -> Result {
    let run = ci("0", "0")?;
    assert_eq!(run.code, Some(0));
    assert_eq!(
        run.asked,
        [
            "dev setup",
            "cargo fmt --all --check",
            "cargo clippy --workspace --all-targets --locked -- -D warnings",
            "dev test --locked --color never -P ci"
        ]
    );
    Ok(())
}

#[test]
fn its_exit_code_is_that_of_the_tests_and_failed_lints_do_not_hide_them() -> Result {
    for (tests, clippy, code) in [("100", "0", 100), ("100", "101", 100), ("0", "101", 101)] {
        let run = ci(tests, clippy)?;
        assert_eq!(run.code, Some(code), "tests {tests}, clippy {clippy}");
        assert_eq!(run.asked.len(), 4, "{:?}", run.asked);
    }
    Ok(())
}

#[test]
fn the_closing_lines_of_the_tests_come_last() -> Result {
    let run = ci("100", "0")?;
    let (_, last) = run
        .stdout
        .split_at(run.stdout.rfind("\n\n").ok_or("an empty line")? + 2);
    assert_eq!(
        last.lines().map(str::trim).collect::<Vec<_>>(),
        [
            "Summary [   0.2s] 2 tests run: 1 passed, 1 failed, 0 skipped",
            "FAIL [   0.1s] (2/2) a two",
            "error: test run failed"
        ]
    );
    Ok(())
}
