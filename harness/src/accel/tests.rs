use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use super::observe::{Device, PROBE, Ran};
use super::*;

/// A QEMU that does this, a line of shell. `$*` has its arguments.
fn fake_qemu(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("fake_qemu");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn host(folder: &Path, qemu: PathBuf) -> Host {
    let device = folder.join("kvm");
    fs::write(&device, "").unwrap();
    Host {
        qemu,
        device,
        boot_id: "boot-1".to_owned(),
        cache: Cache::at(folder.join("cache")),
    }
}

const GOOD: &str = "exit 65";
const DENIED_BY_KVM: &str = r#"case "$*" in *kvm*) echo "Could not access KVM kernel module: Permission denied" >&2; exit 1;; esac; exit 65"#;
const DIES_UNDER_KVM: &str = r#"case "$*" in *kvm*) kill -SEGV $$;; esac; exit 65"#;

#[test]
fn a_qemu_that_ends_as_the_probe_tells_it_gives_kvm() {
    let dir = tempfile::tempdir().unwrap();
    let choice = host(dir.path(), fake_qemu(dir.path(), GOOD))
        .choose(None)
        .unwrap();
    assert_eq!(choice.accelerator, Accelerator::Kvm);
}

#[test]
fn a_kvm_that_is_refused_or_that_kills_qemu_gives_emulation_with_what_was_said() {
    for (script, reason) in [
        (DENIED_BY_KVM, "Permission denied"),
        (DIES_UNDER_KVM, "signal: 11"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let choice = host(dir.path(), fake_qemu(dir.path(), script))
            .choose(None)
            .unwrap();
        assert_eq!(choice.accelerator, Accelerator::Tcg);
        assert!(choice.reason.contains(reason), "{}", choice.reason);
    }
}

#[test]
fn a_guest_that_hangs_is_ended_at_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let qemu = fake_qemu(dir.path(), "exec sleep 1000");
    let limit = Duration::from_millis(100);
    let ran = observe::run(&qemu, Accelerator::Kvm, Path::new("/dev/null"), limit).unwrap();
    assert_eq!(ran, Ran::Hung(limit));
}

#[test]
fn the_verdict_is_kept_for_the_boot_and_the_qemu() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("runs");
    let script = format!("echo run >>'{}'; exit 65", count.display());
    let mut host = host(dir.path(), fake_qemu(dir.path(), &script));
    let runs = || fs::read_to_string(&count).unwrap().lines().count();

    let first = host.choose(None).unwrap();
    assert_eq!((host.choose(None).unwrap(), runs()), (first, 2));

    host.boot_id = "boot-2".to_owned();
    host.choose(None).unwrap();
    assert_eq!(runs(), 4);
}

#[test]
fn a_device_that_is_not_there_is_seen_at_once_and_kvm_is_not_tried() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host(dir.path(), fake_qemu(dir.path(), DENIED_BY_KVM));
    host.device = dir.path().join("absent");
    assert_eq!(host.choose(None).unwrap().reason, "this host has no /dev/kvm");
    let error = host.choose(Some(Accelerator::Kvm)).unwrap_err().to_string();
    assert!(
        error.contains("this host has no /dev/kvm") && error.contains("unset PROVISOR_ACCEL"),
        "{error}"
    );
}

#[test]
fn a_device_that_cannot_be_opened_for_another_reason_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(observe::device(dir.path()), Device::Broken(_)));
    let file = dir.path().join("kvm");
    fs::write(&file, "").unwrap();
    assert_eq!(observe::device(&file), Device::Open);
}

#[test]
fn only_the_two_names_force_an_accelerator() {
    assert_eq!(parse("").unwrap(), None);
    assert_eq!(parse("kvm").unwrap(), Some(Accelerator::Kvm));
    assert_eq!(parse("tcg").unwrap(), Some(Accelerator::Tcg));
    let error = parse("KVM").unwrap_err().to_string();
    assert_eq!(
        error,
        "PROVISOR_ACCEL=KVM is not an accelerator; set it to kvm or tcg, or unset it to let it be chosen"
    );
}

#[test]
fn the_real_qemu_runs_the_probe_to_its_end_under_emulation() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = host(dir.path(), find_qemu().unwrap());
    host.device = dir.path().join("absent");
    assert_eq!(
        host.choose(Some(Accelerator::Tcg)).unwrap().accelerator,
        Accelerator::Tcg
    );
}

#[test]
fn the_probe_s_bytes_are_those_that_its_source_assembles_to() {
    let dir = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/accel/probe.S");
    let run = |program: &str, args: &[&str]| {
        let status = Command::new(program)
            .args(args)
            .current_dir(dir.path())
            .status()
            .unwrap();
        assert!(status.success(), "{program} {args:?}: {status}");
    };
    run("as", &["--64", "-o", "probe.o", source]);
    run(
        "ld",
        &["-m", "elf_x86_64", "-Ttext=0xf000", "-o", "probe.elf", "probe.o"],
    );
    run(
        "objcopy",
        &["-O", "binary", "-j", ".text", "probe.elf", "probe.bin"],
    );
    assert!(fs::read(dir.path().join("probe.bin")).unwrap() == PROBE);
}
