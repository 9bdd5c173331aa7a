//! Makes a booted or restored guest the machine it is to be, by system calls: starting programs is slow in an
//! emulated guest.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::netlink::Netlink;
use crate::sys::{self, Access};
use crate::wire::{Interface, Mount, Setup, SetupFile};

/// The step that failed, and why.
pub(crate) struct Failure {
    pub(crate) step: String,
    pub(crate) error: String,
}

trait Step<T> {
    fn step(self, name: impl Into<String>) -> Result<T, Failure>;
}

impl<T> Step<T> for io::Result<T> {
    fn step(self, name: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            step: name.into(),
            error: error.to_string(),
        })
    }
}

/// Applies all steps in order, up to the first failure.
pub(crate) fn apply(setup: &Setup) -> Result<(), Failure> {
    if !setup.entropy.0.is_empty() {
        add_entropy(&setup.entropy.0).step("entropy")?;
    }
    if let Some(nanoseconds) = setup.clock {
        sys::set_clock(Duration::from_nanos(nanoseconds)).step("clock")?;
    }
    if let Some(id) = &setup.machine_id {
        set_machine_id(Path::new("/"), id).step("machine id")?;
    }
    if let Some(hostname) = &setup.hostname {
        sys::set_hostname(hostname).step("host name")?;
    }
    if setup.hostname.is_some() || !setup.hosts.is_empty() {
        fs::write("/etc/hosts", hosts_file(setup.hostname.as_deref(), &setup.hosts)).step("/etc/hosts")?;
    }
    if !setup.interfaces.is_empty() {
        configure_network(&setup.interfaces)?;
    }
    setup
        .mounts
        .iter()
        .try_for_each(|mount| mount_disk(mount).step(format!("mount {}", mount.target)))?;
    setup
        .files
        .iter()
        .try_for_each(|file| write_file(file).step(format!("file {}", file.path)))?;
    setup
        .commands
        .iter()
        .try_for_each(|argv| run(argv).step(format!("command {}", argv.join(" "))))
}

fn add_entropy(bytes: &[u8]) -> io::Result<()> {
    sys::add_entropy(&OpenOptions::new().write(true).open("/dev/urandom")?, bytes)
}

/// Gives the machine under `root` another id. The journal, whose folder is named by it, is found under both names: who reads it looks
/// for the new one, and the journal's own service goes on under the old one.
fn set_machine_id(root: &Path, id: &str) -> io::Result<()> {
    let file = root.join("etc/machine-id");
    let before = fs::read_to_string(&file).unwrap_or_default();
    fs::write(&file, format!("{id}\n"))?;
    for journals in ["run/log/journal", "var/log/journal"] {
        let folder = |id: &str| root.join(journals).join(id);
        let old = folder(before.trim_end());
        if !before.trim_end().is_empty() && old.is_dir() {
            fs::rename(&old, folder(id))?;
            std::os::unix::fs::symlink(id, old)?;
        }
    }
    Ok(())
}

fn hosts_file(hostname: Option<&str>, hosts: &[(IpAddr, Vec<String>)]) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    if let Some(hostname) = hostname
        && !hosts
            .iter()
            .any(|(_, names)| names.iter().any(|name| name == hostname))
    {
        text += &format!("127.0.1.1 {hostname}\n");
    }
    text.extend(
        hosts
            .iter()
            .map(|(address, names)| format!("{address} {}\n", names.join(" "))),
    );
    text
}

fn configure_network(interfaces: &[Interface]) -> Result<(), Failure> {
    let mut netlink = Netlink::open().step("network")?;
    netlink.bring_loopback_up().step("loopback interface")?;
    let links = netlink.links().step("network")?;
    for interface in interfaces {
        let mac: Vec<String> = interface.mac.iter().map(|byte| format!("{byte:02x}")).collect();
        let step = format!("interface {}", mac.join(":"));
        let found = links.iter().find(|link| link.mac == interface.mac);
        let missing = || io::Error::new(io::ErrorKind::NotFound, "no interface has this MAC");
        let link = found.ok_or_else(missing).step(&step)?;
        netlink.configure(link.index, interface).step(&step)?;
    }
    Ok(())
}

fn mount_disk(mount: &Mount) -> io::Result<()> {
    let missing = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("no disk has the serial {}", mount.serial),
        )
    };
    let device = disk_with_serial(&mount.serial).ok_or_else(missing)?;
    fs::create_dir_all(&mount.target)?;
    let access = if mount.read_only {
        Access::ReadOnly
    } else {
        Access::ReadWrite
    };
    sys::mount_at(&device.to_string_lossy(), &mount.target, &mount.fstype, access)
}

fn disk_with_serial(serial: &str) -> Option<PathBuf> {
    fs::read_dir("/sys/block").ok()?.flatten().find_map(|disk| {
        let found = fs::read_to_string(disk.path().join("serial")).ok()?;
        (found.trim_end() == serial).then(|| Path::new("/dev").join(disk.file_name()))
    })
}

/// Written beside its place and renamed, so that it is never seen half written or with the wrong owner.
fn write_file(file: &SetupFile) -> io::Result<()> {
    let path = Path::new(&file.path);
    let folder = path
        .parent()
        .filter(|_| path.is_absolute())
        .ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut beside = file.path.clone();
    beside += ".provisor-new";
    let mut open = OpenOptions::new();
    let mut written = open
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    written.write_all(&file.content.0)?;
    chown(&beside, Some(file.uid), Some(file.gid))?;
    written.set_permissions(Permissions::from_mode(file.mode))?;
    fs::rename(&beside, path)
}

fn run(argv: &[String]) -> io::Result<()> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim_end().lines().next_back().unwrap_or_default();
    Err(io::Error::other(format!("{}: {last}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_id_takes_the_journal_with_it() {
        let root = std::env::temp_dir().join(format!("provisor-machine-id-{}", std::process::id()));
        let journals = root.join("run/log/journal");
        let file = |id: &str| journals.join(id).join("system.journal");
        fs::create_dir_all(journals.join("old")).unwrap();
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::write(root.join("etc/machine-id"), "old\n").unwrap();
        fs::write(file("old"), "lines").unwrap();

        set_machine_id(&root, "new").unwrap();

        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(root.join("etc/machine-id")), "new\n");
        assert_eq!(
            (read(file("new")), read(file("old"))),
            ("lines".into(), "lines".into())
        );
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_host_name_without_an_address_points_at_the_host_itself() {
        let peer = (
            "10.0.0.2".parse().unwrap(),
            vec!["db".to_owned(), "db.mesh".to_owned()],
        );
        assert_eq!(
            hosts_file(Some("app"), std::slice::from_ref(&peer)),
            "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 app\n10.0.0.2 db db.mesh\n"
        );
        assert_eq!(
            hosts_file(Some("db"), &[peer]),
            "127.0.0.1 localhost\n::1 localhost\n10.0.0.2 db db.mesh\n"
        );
    }
}
