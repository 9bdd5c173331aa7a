use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::cache::CacheError;
use crate::image::ImageSpec;

/// A program that does this, a line of shell.
fn fake_program(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(format!("fake_{name}"));
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Packs with these programs; returns the outcome and the lines of progress.
fn pack(mmdebstrap: &str, mksquashfs: &str) -> (Result<(), ImageError>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let tools = Tools {
        mmdebstrap: fake_program(dir.path(), "mmdebstrap", mmdebstrap),
        mksquashfs: fake_program(dir.path(), "mksquashfs", mksquashfs),
        unsquashfs: PathBuf::new(),
        mke2fs: PathBuf::new(),
        mode: Mode::Root,
        unshare: None,
    };
    let said = std::cell::RefCell::new(Vec::new());
    let progress = |line: &str| said.borrow_mut().push(line.to_owned());
    let scratch = Scratch::for_build_in(dir.path(), Mode::Root).unwrap();
    let plan = ImageSpec::debian().plan().unwrap();
    let packed = pack_root(&tools, &plan, dir.path(), &scratch, &progress);
    (packed, said.into_inner())
}

const SWALLOW: &str = "cat >/dev/null";

#[test]
fn the_steps_of_mmdebstrap_are_told_and_the_rest_is_not() {
    let (packed, said) = pack(
        "echo 'I: chroot architecture amd64' >&2; echo 'I: extracting archives...' >&2",
        SWALLOW,
    );
    packed.unwrap();
    assert_eq!(said, ["  extracting archives..."]);
}

#[test]
fn a_failed_bootstrap_is_reported_with_its_last_lines_and_a_hint() {
    let (packed, _) = pack("echo 'E: Unable to locate package nginxx' >&2; exit 100", SWALLOW);
    let error = packed.unwrap_err().to_string();
    assert!(
        error.starts_with("mmdebstrap failed (exit status: 100)"),
        "{error}"
    );
    assert!(
        error.contains("E: Unable to locate package nginxx\nhint: "),
        "{error}"
    );
}

#[test]
fn a_disk_that_fills_on_the_way_is_told_whichever_program_notices() {
    let full = "echo 'write failed: No space left on device' >&2; exit 1";
    for (mmdebstrap, mksquashfs) in [(full, SWALLOW), ("yes", full)] {
        let (packed, _) = pack(mmdebstrap, mksquashfs);
        assert!(
            matches!(packed, Err(ImageError::Cache(CacheError::NoSpace { .. }))),
            "{packed:?}"
        );
    }
}

#[test]
fn a_compressor_that_fails_is_named_and_not_the_pipe_that_broke_with_it() {
    let (packed, _) = pack(
        "yes; echo 'E: Broken pipe' >&2; exit 1",
        "echo 'lz4 is not supported' >&2; exit 1",
    );
    let error = packed.unwrap_err().to_string();
    assert!(
        error.starts_with("mksquashfs failed") && error.contains("lz4 is not supported"),
        "{error}"
    );
}

#[test]
fn what_makes_the_image_ends_when_its_maker_is_gone() {
    let mut child = Command::new("sh")
        .args([
            "-c",
            SUPERVISED,
            "sh",
            "sh",
            "-c",
            "trap 'echo told; exit' TERM; echo started; while :; do sleep 1; done",
        ])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");

    drop(child.stdin.take());

    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "told\n");
    child.wait().unwrap();
}

#[test]
fn the_packages_stand_in_one_argument_and_the_release_comes_before_the_output() {
    let plan = ImageSpec::debian().package("nginx-light").plan().unwrap();
    let args = mmdebstrap_args(Mode::Unshare, &plan, Path::new("/cache/it's here/files.tar"));
    assert_eq!(args[..3], ["--mode=unshare", "--variant=apt", "--format=tar"]);
    assert_eq!(args[args.len() - 2..], ["bookworm", "-"]);
    let include = args.iter().find(|arg| arg.starts_with("--include=")).unwrap();
    assert!(include.contains(",nginx-light,"), "{include}");
    assert!(args.contains(&r"--customize-hook=tar-in '/cache/it'\''s here/files.tar' /".to_owned()));
}

#[test]
fn the_files_are_root_s_with_their_modes_and_one_date() {
    let plan = ImageSpec::debian()
        .program("/usr/local/bin/hello", "#!/bin/sh\n")
        .plan()
        .unwrap();
    let bytes = tar_of(&plan).unwrap();
    let mut archive = tar::Archive::new(bytes.as_slice());
    let mut modes = std::collections::BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
        assert_eq!(header.mtime().unwrap().to_string(), EPOCH);
        let path = entry.path().unwrap().display().to_string();
        modes.insert(path, (header.entry_type(), header.mode().unwrap()));
    }
    assert_eq!(modes["usr/local/bin/hello"], (tar::EntryType::Regular, 0o755));
    assert_eq!(modes["etc/hosts"], (tar::EntryType::Regular, 0o644));
    assert_eq!(
        modes["etc/systemd/system/apt-daily.timer"].0,
        tar::EntryType::Symlink
    );
    assert_eq!(bytes, tar_of(&plan).unwrap());
}
