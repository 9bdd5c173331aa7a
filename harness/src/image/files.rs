//! The files that every image has over its packages: what makes Debian start fast and quietly under emulation.

use std::collections::{BTreeMap, BTreeSet};

/// A file of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestFile {
    /// Mode 0644.
    Text(Vec<u8>),
    /// Mode 0755.
    Program(Vec<u8>),
    /// A symbolic link to this target.
    Link(String),
}

impl GuestFile {
    /// The content, or the target of a link.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) | Self::Program(bytes) => bytes,
            Self::Link(target) => target.as_bytes(),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Program(_) => "program",
            Self::Link(_) => "link",
        }
    }
}

/// Units that do nothing for a test guest and cost time in each boot or disturb a measurement: a third of the time
/// that systemd takes.
///
/// `systemd-networkd-wait-online` never succeeds on a network without a router, and whoever restarts a unit behind
/// `network-online.target` then waits two minutes for it.
const MASKED: [&str; 36] = [
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "console-getty.service",
    "dev-hugepages.mount",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "getty-static.service",
    "getty@tty1.service",
    "man-db.timer",
    "proc-sys-fs-binfmt_misc.automount",
    "serial-getty@ttyS0.service",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-ask-password-console.path",
    "systemd-ask-password-wall.path",
    "systemd-binfmt.service",
    "systemd-firstboot.service",
    "systemd-hwdb-update.service",
    "systemd-initctl.socket",
    "systemd-journal-flush.service",
    "systemd-journald-audit.socket",
    "systemd-logind.service",
    "systemd-networkd-wait-online.service",
    "systemd-pcrphase-sysinit.service",
    "systemd-pcrphase.service",
    "systemd-pstore.service",
    "systemd-random-seed.service",
    "systemd-repart.service",
    "systemd-timesyncd.service",
    "systemd-tmpfiles-clean.timer",
    "systemd-update-utmp-runlevel.service",
    "systemd-update-utmp.service",
    "systemd-user-sessions.service",
];

/// Programs that systemd runs at boot and at every `daemon-reload`, for features that no guest has.
const MASKED_GENERATORS: [&str; 7] = [
    "systemd-cryptsetup-generator",
    "systemd-getty-generator",
    "systemd-gpt-auto-generator",
    "systemd-hibernate-resume-generator",
    "systemd-integritysetup-generator",
    "systemd-rc-local-generator",
    "systemd-veritysetup-generator",
];

/// The files of every image, by path, where these units of the spec start at boot.
pub(super) fn base(enabled: &BTreeSet<String>) -> BTreeMap<String, GuestFile> {
    let text = |content: &str| GuestFile::Text(content.as_bytes().to_vec());
    let mut files = BTreeMap::from([
        (
            "/etc/hosts".to_owned(),
            text("127.0.0.1 localhost\n::1 localhost\n"),
        ),
        // Empty: each guest makes its own, or gets one by `systemd.machine_id=` on the kernel command line.
        ("/etc/machine-id".to_owned(), text("")),
        ("/etc/resolv.conf".to_owned(), text("")),
        // As new as /usr, so no boot makes the users, caches and catalogues that the packages made.
        ("/etc/.updated".to_owned(), text("")),
        ("/var/.updated".to_owned(), text("")),
        (PRESET.to_owned(), GuestFile::Text(preset(enabled).into_bytes())),
        (
            "/etc/ssh/sshd_config.d/10-provisor.conf".to_owned(),
            text(include_str!("guest/sshd.conf")),
        ),
        (
            "/etc/systemd/journald.conf.d/10-provisor.conf".to_owned(),
            text(include_str!("guest/journald.conf")),
        ),
        (
            "/etc/systemd/system.conf.d/10-provisor.conf".to_owned(),
            text(include_str!("guest/system.conf")),
        ),
        (
            "/etc/systemd/system/systemd-udev-trigger.service.d/10-provisor.conf".to_owned(),
            text(include_str!("guest/udev-trigger.service.conf")),
        ),
        (
            "/etc/systemd/system/ssh.service.d/10-provisor.conf".to_owned(),
            text(include_str!("guest/ssh.service.conf")),
        ),
        (
            "/usr/sbin/policy-rc.d".to_owned(),
            GuestFile::Program(b"#!/bin/sh\nexit 101\n".to_vec()),
        ),
    ]);
    let masked = MASKED.iter().filter(|unit| !enabled.contains(**unit));
    files.extend(masked.map(|unit| (format!("/etc/systemd/system/{unit}"), nothing())));
    let generators = MASKED_GENERATORS.iter();
    // Without it there is no `/run/nologin`, which `systemd-user-sessions` would take away again.
    files.insert("/etc/tmpfiles.d/systemd-nologin.conf".to_owned(), nothing());
    files.extend(generators.map(|name| (format!("/etc/systemd/system-generators/{name}"), nothing())));
    files
}

/// Nix for root in a guest: no daemon, no sandbox, and no waiting for substituters that cannot be reached.
pub(super) fn nix() -> BTreeMap<String, GuestFile> {
    let conf = include_str!("guest/nix.conf").as_bytes().to_vec();
    BTreeMap::from([("/etc/nix/nix.conf".to_owned(), GuestFile::Text(conf))])
}

const PRESET: &str = "/etc/systemd/system-preset/00-provisor.preset";

/// Debian starts every service it installs; here a guest runs what its test asks for.
fn preset(enabled: &BTreeSet<String>) -> String {
    let mut lines: BTreeSet<_> = enabled.iter().map(|unit| format!("enable {unit}\n")).collect();
    lines.insert("enable ssh.service\n".to_owned());
    lines.into_iter().chain(["disable *\n".to_owned()]).collect()
}

fn nothing() -> GuestFile {
    GuestFile::Link("/dev/null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ssh_and_what_the_spec_enables_start_at_boot() {
        let enabled = BTreeSet::from(["nginx.service".to_owned()]);
        assert_eq!(
            String::from_utf8_lossy(base(&enabled)[PRESET].bytes()),
            "enable nginx.service\nenable ssh.service\ndisable *\n"
        );
    }

    #[test]
    fn a_unit_that_the_spec_enables_is_not_masked() {
        let logind = "/etc/systemd/system/systemd-logind.service";
        assert!(base(&BTreeSet::new()).contains_key(logind));
        assert!(!base(&BTreeSet::from(["systemd-logind.service".to_owned()])).contains_key(logind));
    }
}
