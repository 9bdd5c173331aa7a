//! `lab new`: what it writes is a project that cargo takes, and the guide shows that same scenario.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

#[test]
fn cargo_takes_the_project_that_is_written() -> Result<()> {
    let base = tempfile::tempdir()?;
    let project = base.path().join("scenarios");
    let written = Command::new(env!("CARGO_BIN_EXE_lab"))
        .arg("new")
        .arg(&project)
        .output()?;
    ensure!(written.status.success(), "{written:?}");

    // The versions that this workspace has are those on the disk.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    fs::copy(lock, project.join("Cargo.lock"))?;
    let resolved = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--format-version=1"])
        .current_dir(&project)
        .output()?;
    let errors = String::from_utf8_lossy(&resolved.stderr);
    ensure!(resolved.status.success(), "{errors}");

    let metadata: serde_json::Value = serde_json::from_slice(&resolved.stdout)?;
    let root = metadata["resolve"]["root"].as_str().unwrap_or_default();
    assert!(root.contains("scenarios#0.1.0"), "{root}");
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let harness = packages
        .filter(|package| package["name"] == "provisor-harness")
        .map(|package| package["manifest_path"].clone());
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert_eq!(harness.collect::<Vec<_>>(), [here]);
    Ok(())
}

#[test]
fn the_guide_s_first_scenario_is_the_one_that_is_written() -> Result<()> {
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scenario.md"))?;
    let hello = include_str!("../templates/project/hello.rs");
    assert!(guide.contains(&format!("```rust\n{hello}```\n")));
    Ok(())
}
