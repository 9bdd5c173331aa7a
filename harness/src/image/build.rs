//! Makes an image: packages to a tar stream, the stream to a squashfs, and what boots it beside.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::error::{ImageError, io_error};
use super::files::GuestFile;
use super::run::{Finished, lines_of, tail_of};
use super::scratch::Scratch;
use super::spec::Plan;
use super::tools::{Mode, SBIN, Tools};
use super::{extract, modules};
use crate::cache::{Cache, Progress, Size};

pub(super) const ROOT: &str = "root.squashfs";
pub(super) const KERNEL: &str = "vmlinuz";
pub(super) const DISK: &str = "disk.ext4";
pub(super) const PACKAGES: &str = "packages";

/// The date of every file in an image, in seconds: images of the same packages are the same bytes.
pub(super) const EPOCH: &str = "1700000000";

/// The unpacked packages (0.6 GB), their archives (0.1 GB), the squashfs (0.2 GB) and room to spare.
pub(super) const NEED: u64 = 1_500_000_000;

/// lz4: a guest under emulation decompresses it several times faster than zstd, and it is made in 2 s, not 90.
const COMPRESSOR: &str = "lz4";

/// Not unpacked: a guest has no reader and no screen, and the hardware names alone are 20 MB.
const EXCLUDED: [&str; 7] = [
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/doc/*",
    "/usr/share/locale/*",
    "/usr/share/bash-completion/*",
    "/usr/lib/udev/hwdb.d/*",
    "/lib/udev/hwdb.d/*",
];

/// Runs in the unpacked root after all packages and files are in.
const FINISH: &str = r#"set -e
chroot "$1" systemctl --quiet preset-all
chroot "$1" systemctl --quiet set-default multi-user.target
rm -f "$1"/etc/ssh/ssh_host_* "$1"/var/cache/ldconfig/aux-cache "$1"/var/lib/systemd/random-seed
rm -f "$1"/var/log/*.log "$1"/var/log/apt/* "$1"/etc/hostname
rm -f "$1"/etc/fstab "$1"/etc/modules-load.d/modules.conf
"#;

/// Runs its arguments until they end, or until the pipe on its stdin closes because this process was killed: then
/// mmdebstrap is told, and takes away what it unpacked. It needs a process group of its own anyway, which it signals
/// when something fails.
const SUPERVISED: &str = r#"exec 3<&0 </dev/null
{ read -r _ <&3; kill -s TERM 0; } >/dev/null 2>&1 &
exec "$@" 3<&-
"#;

/// What of this file goes into an image's key.
pub(super) fn settings() -> String {
    format!("{COMPRESSOR} {EPOCH} {EXCLUDED:?} {FINISH} {:?}", modules::WANTED)
}

/// Fills `folder` with the image of this plan.
pub(super) fn build(
    cache: &Cache,
    plan: &Plan,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<(), ImageError> {
    let started = Instant::now();
    let tools = Tools::find()?;
    cache.require_space(NEED)?;
    progress(&format!(
        "making a guest image of {} packages from Debian {}: one to three minutes, this once",
        plan.packages.len(),
        plan.suite
    ));
    let scratch = Scratch::for_build_in(folder, tools.mode)?;
    pack_root(&tools, plan, folder, &scratch, progress)?;
    extract::extract(&tools, folder, scratch.path())?;
    super::disk::make(&tools.mke2fs, plan.disk_bytes, &folder.join(DISK))?;
    let bytes = fs::metadata(folder.join(ROOT)).map_or(0, |root| root.len());
    progress(&format!(
        "the guest image is ready: {}, in {} s",
        Size(bytes),
        started.elapsed().as_secs()
    ));
    Ok(())
}

/// `mmdebstrap | mksquashfs`.
fn pack_root(
    tools: &Tools,
    plan: &Plan,
    folder: &Path,
    scratch: &Scratch,
    progress: Progress<'_>,
) -> Result<(), ImageError> {
    let files = scratch.path().join("files.tar");
    fs::write(&files, tar_of(plan).map_err(io_error("cannot write", &files))?)
        .map_err(io_error("cannot write", &files))?;
    // In a mount namespace of its own: what is mounted for the packages' scripts ends with it, however it ends.
    let isolated = tools
        .unshare
        .iter()
        .flat_map(|unshare| [unshare.as_os_str(), OsStr::new("--mount")]);
    let mut bootstrap = guest_tool(Path::new("/bin/sh"), scratch.path())
        .args(["-c", SUPERVISED, "sh"])
        .args(isolated)
        .arg(&tools.mmdebstrap)
        .args(mmdebstrap_args(tools.mode, plan, &files))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(io_error("cannot run", &tools.mmdebstrap))?;
    let root = folder.join(ROOT);
    let squash = guest_tool(&tools.mksquashfs, scratch.path())
        .arg("-")
        .arg(&root)
        .args(["-tar", "-comp", COMPRESSOR, "-noappend", "-no-progress", "-quiet"])
        .stdin(bootstrap.stdout.take().map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut squash = match squash {
        Ok(child) => child,
        Err(error) => {
            // Its pipe is gone, so it ends by itself and cleans up.
            let _ = bootstrap.wait();
            return Err(io_error("cannot run", &tools.mksquashfs)(error));
        }
    };
    let squash_says = tail_of(squash.stderr.take());
    let bootstrap_tail = lines_of(bootstrap.stderr.take(), |line| {
        if let Some(step) = line.strip_prefix("I: ").filter(|step| worth_telling(step)) {
            progress(&format!("  {step}"));
        }
    });
    let bootstrap = Finished::wait("mmdebstrap", &mut bootstrap, bootstrap_tail)?;
    let squash = Finished::wait("mksquashfs", &mut squash, squash_says.join().unwrap_or_default())?;
    // A full disk stops either of them, and the other then complains about its pipe.
    for child in [&bootstrap, &squash] {
        child.check_space(folder, NEED)?;
    }
    squash.check_unless_input_failed(&bootstrap)?;
    bootstrap.check("read the lines above; a mirror that cannot be reached, or a package name that the release does not have, is the usual cause")
}

fn worth_telling(step: &str) -> bool {
    [
        "running apt-get update",
        "downloading",
        "extracting",
        "installing",
        "cleaning",
        "creating",
    ]
    .iter()
    .any(|start| step.starts_with(start))
}

pub(super) fn guest_tool(program: &Path, scratch: &Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SBIN.map(PathBuf::from));
    let mut command = Command::new(program);
    command
        .env("PATH", std::env::join_paths(folders).unwrap_or(path))
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        .env("SOURCE_DATE_EPOCH", EPOCH)
        .env("TMPDIR", scratch)
        // The kernel's hooks make no initrd: ours is smaller by a factor of ten and boots 4 s faster.
        .env("INITRD", "No")
        .stdin(Stdio::null());
    command
}

fn mmdebstrap_args(mode: Mode, plan: &Plan, files: &Path) -> Vec<String> {
    let mode = match mode {
        Mode::Root => "root",
        Mode::Unshare => "unshare",
    };
    let mut args = vec![
        format!("--mode={mode}"),
        "--variant=apt".to_owned(),
        "--format=tar".to_owned(),
        // Each package would be synced to the disk; the squashfs is, once.
        "--dpkgopt=force-unsafe-io".to_owned(),
        r#"--aptopt=APT::Install-Recommends "false""#.to_owned(),
    ];
    args.extend(EXCLUDED.map(|path| format!("--dpkgopt=path-exclude={path}")));
    args.push(format!("--include={}", plan.packages.join(",")));
    args.push(format!("--customize-hook=tar-in {} /", quoted(files)));
    args.push(format!("--customize-hook={FINISH}"));
    args.extend([plan.suite.clone(), "-".to_owned()]);
    args
}

/// A path as one word of a hook, whatever is in it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The files of the plan as a tar archive, with the folders they are in.
fn tar_of(plan: &Plan) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, file) in &plan.files {
        let mut header = tar::Header::new_gnu();
        header.set_mtime(EPOCH.parse().unwrap_or(0));
        header.set_uid(0);
        header.set_gid(0);
        header.set_mode(if matches!(file, GuestFile::Program(_)) {
            0o755
        } else {
            0o644
        });
        let path = path.trim_start_matches('/');
        if let GuestFile::Link(target) = file {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            archive.append_link(&mut header, path, target)?;
        } else {
            header.set_size(file.bytes().len() as u64);
            archive.append_data(&mut header, path, file.bytes())?;
        }
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests;
