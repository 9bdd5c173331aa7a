use std::collections::{BTreeMap, BTreeSet};

use super::error::ImageError;
use super::files::{self, GuestFile};
use crate::cache::Key;

/// What an image is made of. Start from [`ImageSpec::debian`] and add.
///
/// ```
/// use provisor_harness::image::ImageSpec;
/// let spec = ImageSpec::debian().package("nginx-light").file("/etc/motd", "hello\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSpec {
    suite: String,
    packages: BTreeSet<String>,
    enabled: BTreeSet<String>,
    files: BTreeMap<String, GuestFile>,
    disk_bytes: u64,
}

/// Packages of every image: an init, a kernel, SSH, and what people type first in a shell.
const BASE: [&str; 13] = [
    "busybox-static",
    "ca-certificates",
    "curl",
    "dbus",
    "iproute2",
    "iputils-ping",
    "kmod",
    "linux-image-cloud-amd64",
    "openssh-server",
    "openssl",
    "procps",
    "systemd-sysv",
    "udev",
];

/// Part of every key: raise it when the same spec should give another image.
const BUILDER: &str = "1";

impl ImageSpec {
    /// Debian 12 with systemd, SSH, the network tools, and a writable disk of 4 GiB.
    pub fn debian() -> Self {
        Self {
            suite: "bookworm".to_owned(),
            packages: BASE.map(str::to_owned).into(),
            enabled: BTreeSet::new(),
            files: BTreeMap::new(),
            disk_bytes: 4 << 30,
        }
    }

    /// Another Debian release, by its code name.
    pub fn suite(mut self, name: impl Into<String>) -> Self {
        self.suite = name.into();
        self
    }

    /// Also this Debian package. Its services do not start by themselves: see [`ImageSpec::enable`].
    pub fn package(mut self, name: impl Into<String>) -> Self {
        self.packages.insert(name.into());
        self
    }

    /// Also these Debian packages.
    pub fn packages(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.packages.extend(names.into_iter().map(Into::into));
        self
    }

    /// Starts this systemd unit in every boot.
    pub fn enable(mut self, unit: impl Into<String>) -> Self {
        self.enabled.insert(unit.into());
        self
    }

    /// Also this file, readable by all: anybody who can read the cache can read it, so never a secret.
    pub fn file(mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), GuestFile::Text(content.into()));
        self
    }

    /// Also this program.
    pub fn program(mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), GuestFile::Program(content.into()));
        self
    }

    /// The size of the writable disk, in bytes. Only what a guest writes takes space on the host.
    pub fn disk_bytes(mut self, bytes: u64) -> Self {
        self.disk_bytes = bytes;
        self
    }

    /// Checks the names and adds the files of every image.
    pub(super) fn plan(&self) -> Result<Plan, ImageError> {
        checked(
            "suite",
            &self.suite,
            "it has lower-case letters, digits and '-'",
            |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-',
        )?;
        for name in &self.packages {
            checked(
                "package",
                name,
                "it has lower-case letters, digits, '+', '-' and '.'",
                |c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c),
            )?;
        }
        for unit in &self.enabled {
            checked("unit", unit, "it has letters, digits and any of :_.@-", |c| {
                c.is_ascii_alphanumeric() || ":_.@-".contains(c)
            })?;
        }
        let mut all = files::base(&self.enabled);
        if self.packages.contains("nix-bin") {
            all.extend(files::nix());
        }
        for (path, file) in &self.files {
            let plain = path
                .split('/')
                .skip(1)
                .all(|part| !matches!(part, "" | "." | ".."));
            if !path.starts_with('/') || !plain || path.contains('\0') {
                let rule = "it starts with / and has no empty part, . or ..";
                return Err(ImageError::Name {
                    what: "path",
                    name: path.clone(),
                    rule,
                });
            }
            all.insert(path.clone(), file.clone());
        }
        Ok(Plan {
            suite: self.suite.clone(),
            packages: self.packages.iter().cloned().collect(),
            files: all,
            disk_bytes: self.disk_bytes,
        })
    }
}

/// A checked spec: all that goes into an image.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) suite: String,
    /// Sorted, each once.
    pub(super) packages: Vec<String>,
    /// By absolute path in the guest.
    pub(super) files: BTreeMap<String, GuestFile>,
    pub(super) disk_bytes: u64,
}

impl Plan {
    pub(super) fn key(&self) -> Key {
        let disk = self.disk_bytes.to_string();
        let settings = super::build::settings();
        let mut parts = vec![
            ("builder", BUILDER.as_bytes()),
            ("settings", settings.as_bytes()),
            ("suite", self.suite.as_bytes()),
            ("disk", disk.as_bytes()),
        ];
        parts.extend(self.packages.iter().map(|name| ("package", name.as_bytes())));
        for (path, file) in &self.files {
            parts.push(("path", path.as_bytes()));
            parts.push((file.kind(), file.bytes()));
        }
        Key::of(parts)
    }
}

fn checked(
    what: &'static str,
    name: &str,
    rule: &'static str,
    allowed: impl Fn(char) -> bool,
) -> Result<(), ImageError> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts_well && name.chars().all(allowed) {
        Ok(())
    } else {
        Err(ImageError::Name {
            what,
            name: name.to_owned(),
            rule,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(spec: &ImageSpec) -> Key {
        spec.plan().unwrap().key()
    }

    #[test]
    fn the_key_depends_on_each_part_and_not_on_the_order() {
        let base = ImageSpec::debian();
        let others = [
            base.clone().suite("trixie"),
            base.clone().package("nginx-light"),
            base.clone().package("nix-bin"),
            base.clone().enable("nginx.service"),
            base.clone().file("/etc/a", "1"),
            base.clone().file("/etc/a", "2"),
            base.clone().file("/etc/b", "1"),
            base.clone().program("/etc/a", "1"),
            base.clone().disk_bytes(1 << 30),
        ];
        let keys: BTreeSet<_> = others.iter().chain([&base]).map(key).collect();
        assert_eq!(keys.len(), others.len() + 1);
        assert_eq!(
            key(&base.clone().packages(["nix-bin", "nginx-light"])),
            key(&base
                .clone()
                .package("nginx-light")
                .package("nix-bin")
                .package("curl")),
        );
    }

    #[test]
    fn names_that_would_reach_a_command_line_as_something_else_are_refused() {
        let base = ImageSpec::debian();
        let bad = [
            ("package", base.clone().package("nginx,curl")),
            ("package", base.clone().package("")),
            ("package", base.clone().package("--mode=root")),
            ("suite", base.clone().suite("../sid")),
            ("unit", base.clone().enable("a b")),
            ("path", base.clone().file("etc/motd", "")),
            ("path", base.clone().file("/etc/../motd", "")),
            ("path", base.clone().file("/etc/", "")),
        ];
        for (expected, spec) in bad {
            match spec.plan() {
                Err(ImageError::Name { what, .. }) => assert_eq!(what, expected),
                other => panic!("{spec:?} gave {other:?}"),
            }
        }
    }

    #[test]
    fn nix_gets_its_settings_only_where_nix_is() {
        let with = ImageSpec::debian().package("nix-bin").plan().unwrap();
        assert!(with.files.contains_key("/etc/nix/nix.conf"));
        assert!(
            !ImageSpec::debian()
                .plan()
                .unwrap()
                .files
                .contains_key("/etc/nix/nix.conf")
        );
    }

    #[test]
    fn a_file_of_the_spec_stands_before_one_of_every_image() {
        let plan = ImageSpec::debian().file("/etc/hosts", "mine\n").plan().unwrap();
        assert_eq!(plan.files["/etc/hosts"].bytes(), b"mine\n");
    }
}
