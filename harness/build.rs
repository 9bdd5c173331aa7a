//! Compiles the guest agent: static, stripped, from the standard library alone. The library embeds it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    if let Err(message) = build_agent() {
        println!(
            "cargo::error={}",
            message.trim_end().replace('\n', "\ncargo::error=")
        );
    }
}

fn build_agent() -> Result<(), String> {
    let source = Path::new("agent");
    let files = fs::read_dir(source).map_err(|error| format!("cannot read harness/agent: {error}"))?;
    for file in files.flatten() {
        println!("cargo::rerun-if-changed={}", file.path().display());
    }
    println!("cargo::rerun-if-changed=agent");

    let agent = PathBuf::from(variable("OUT_DIR")?).join("provisor-agent");
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args([
        "--edition=2024",
        "--crate-type=bin",
        "--crate-name=provisor_agent",
    ]);
    rustc.args([
        "-Copt-level=s",
        "-Clto=fat",
        "-Ccodegen-units=1",
        "-Cpanic=abort",
        "-Cstrip=symbols",
    ]);
    // Not position independent: a guest runs without address randomisation anyway, and starts a little sooner.
    rustc.args(["-Ctarget-feature=+crt-static", "-Crelocation-model=static"]);
    rustc.arg(format!("--target={}", variable("TARGET")?));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    // The same bytes wherever the sources lie.
    rustc.arg(format!(
        "--remap-path-prefix={}=/provisor",
        variable("CARGO_MANIFEST_DIR")?
    ));
    rustc.arg("-o").arg(&agent).arg(source.join("main.rs"));
    let output = rustc
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let hint = if said.contains("-lc") {
        "\nthe guest agent is linked statically and the C library's archive is missing: install libc6-dev \
         (Debian), glibc-static (Fedora) or glibc.static (Nix)"
    } else {
        ""
    };
    Err(format!("cannot compile the guest agent:\n{said}{hint}"))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("cargo did not set {name}"))
}
