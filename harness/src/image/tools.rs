//! What the host has for building images, and whether it is enough.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::ImageError;

/// The programs that build an image, by absolute path.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) mmdebstrap: PathBuf,
    pub(super) mksquashfs: PathBuf,
    pub(super) unsquashfs: PathBuf,
    pub(super) mke2fs: PathBuf,
    pub(super) mode: Mode,
    /// `unshare`, where this process may have mounts of its own.
    pub(super) unshare: Option<PathBuf>,
}

/// Who unpacks the packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Root, as itself.
    Root,
    /// A plain user in a user namespace with more user ids.
    Unshare,
}

/// A plain user's `PATH` has no `sbin`, where some of these programs are.
pub(super) const SBIN: [&str; 2] = ["/usr/sbin", "/sbin"];

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Tools {
    /// Looks for all of them on this machine, and reports all that are missing at once.
    pub(super) fn find() -> Result<Self, ImageError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path)
            .chain(SBIN.map(PathBuf::from))
            .collect();
        let find = |name: &str| {
            folders
                .iter()
                .map(|folder| folder.join(name))
                .find(|path| path.is_file())
        };
        let user = User::current();
        let mut missing = Vec::new();
        let mut need = |name: &'static str, package: &'static str| {
            find(name).unwrap_or_else(|| {
                missing.push((name, package));
                PathBuf::new()
            })
        };
        let mut tools = Self {
            mmdebstrap: need("mmdebstrap", "mmdebstrap"),
            mksquashfs: need("mksquashfs", "squashfs-tools"),
            unsquashfs: need("unsquashfs", "squashfs-tools"),
            mke2fs: need("mke2fs", "e2fsprogs"),
            mode: Mode::Root,
            unshare: find("unshare").filter(|program| may_mount(program)),
        };
        if !Path::new(KEYRING).exists() {
            missing.push((KEYRING, "debian-archive-keyring"));
        }
        check_missing(missing)?;
        let ids = |file: &str| std::fs::read_to_string(file).is_ok_and(|text| has_ids(&text, &user));
        let rootless = Rootless {
            newuidmap: find("newuidmap").is_some(),
            ids: ids("/etc/subuid") && ids("/etc/subgid"),
        };
        tools.mode = choose_mode(&user, &rootless)?;
        Ok(tools)
    }
}

/// Who builds.
#[derive(Debug)]
struct User {
    uid: u32,
    name: String,
}

impl User {
    fn current() -> Self {
        let uid = nix::unistd::geteuid();
        let known = nix::unistd::User::from_uid(uid).ok().flatten();
        Self {
            uid: uid.as_raw(),
            name: known.map_or_else(|| uid.to_string(), |user| user.name),
        }
    }
}

/// What a plain user has for a user namespace.
#[derive(Debug)]
struct Rootless {
    newuidmap: bool,
    ids: bool,
}

fn choose_mode(user: &User, rootless: &Rootless) -> Result<Mode, ImageError> {
    if user.uid == 0 {
        return Ok(Mode::Root);
    }
    let name = &user.name;
    let steps = [
        (
            rootless.newuidmap,
            "the package uidmap",
            "apt-get install --yes uidmap".to_owned(),
        ),
        (
            rootless.ids,
            "more user ids in /etc/subuid and /etc/subgid",
            format!("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"),
        ),
    ];
    let missing: Vec<_> = steps.into_iter().filter(|(there, ..)| !there).collect();
    if missing.is_empty() {
        return Ok(Mode::Unshare);
    }
    Err(ImageError::Rootless {
        missing: missing.iter().map(|(_, what, _)| *what).collect(),
        command: missing
            .into_iter()
            .map(|(.., command)| command)
            .collect::<Vec<_>>()
            .join(" && "),
    })
}

/// Whether a line `name:first:count` gives this user a full range of ids.
fn has_ids(text: &str, user: &User) -> bool {
    text.lines().any(|line| {
        let mut fields = line.split(':');
        let owner = fields.next().unwrap_or_default();
        let count = fields
            .nth(1)
            .and_then(|count| count.trim().parse::<u64>().ok())
            .unwrap_or(0);
        (owner == user.name || owner == user.uid.to_string()) && count >= 65536
    })
}

/// Root in a container often may not; mmdebstrap then works without mounts.
fn may_mount(unshare: &Path) -> bool {
    let mut trial = Command::new(unshare);
    trial
        .args(["--mount", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    trial.status().is_ok_and(|status| status.success())
}

fn check_missing(missing: Vec<(&'static str, &'static str)>) -> Result<(), ImageError> {
    if missing.is_empty() {
        return Ok(());
    }
    let (programs, mut packages): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
    packages.sort_unstable();
    packages.dedup();
    Err(ImageError::Missing { programs, packages })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> User {
        User {
            uid: 1000,
            name: "alice".to_owned(),
        }
    }

    #[test]
    fn all_missing_programs_are_named_with_one_command() {
        let missing = vec![
            ("mksquashfs", "squashfs-tools"),
            ("unsquashfs", "squashfs-tools"),
            ("mke2fs", "e2fsprogs"),
        ];
        assert_eq!(
            check_missing(missing).unwrap_err().to_string(),
            "missing: mksquashfs, unsquashfs, mke2fs; install them: apt-get install --yes e2fsprogs squashfs-tools"
        );
    }

    #[test]
    fn root_needs_nothing_more_and_a_user_needs_uidmap_and_ids() {
        let root = User {
            uid: 0,
            name: "root".to_owned(),
        };
        assert_eq!(
            choose_mode(
                &root,
                &Rootless {
                    newuidmap: false,
                    ids: false
                }
            )
            .unwrap(),
            Mode::Root
        );
        assert_eq!(
            choose_mode(
                &alice(),
                &Rootless {
                    newuidmap: true,
                    ids: true
                }
            )
            .unwrap(),
            Mode::Unshare
        );
    }

    #[test]
    fn the_command_for_a_user_has_only_what_is_missing() {
        let say = |newuidmap, ids| {
            choose_mode(&alice(), &Rootless { newuidmap, ids })
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            say(false, true),
            "building an image without root needs the package uidmap; run once as root: apt-get install --yes uidmap"
        );
        assert!(say(true, false).ends_with(
            "run once as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 alice"
        ));
        assert!(say(false, false).contains("apt-get install --yes uidmap && usermod "));
    }

    #[test]
    fn ids_are_given_by_name_or_by_number_and_must_be_a_full_range() {
        for (text, expected) in [
            ("alice:100000:65536\n", true),
            ("bob:100000:65536\n1000:165536:65536\n", true),
            ("bob:100000:65536\n", false),
            ("alice:100000:1000\n", false),
            ("alice\n", false),
            ("", false),
        ] {
            assert_eq!(has_ids(text, &alice()), expected, "{text:?}");
        }
    }
}
