//! The initrd of a guest: busybox, the modules, the agent, and a script that ends in systemd.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use cpio::newc::{Builder, ModeFileType, trailer};

use super::error::{ImageError, io_error};
use crate::cache::Key;

/// The serial number of the virtio disk with the image's squashfs. QEMU: `-device virtio-blk-pci,serial=…`.
pub const ROOT_SERIAL: &str = "provisor-root";
/// The serial number of the virtio disk with the writable layer. Without such a disk the layer is in memory.
pub const DISK_SERIAL: &str = "provisor-disk";
/// The name of the virtio-serial port that the agent serves.
pub const AGENT_PORT: &str = "provisor.agent";

pub(super) const FILE: &str = "initrd.cpio";

const INIT: &str = include_str!("guest/init.sh");
const UNIT: &str = include_str!("guest/agent.service");

/// What the initrd takes from an image.
pub(super) struct Parts {
    pub(super) busybox: Vec<u8>,
    /// File name and content, in the order of loading.
    pub(super) modules: Vec<(String, Vec<u8>)>,
}

pub(super) fn key(image: &Key, agent: &[u8]) -> Key {
    Key::of([
        ("image", image.as_str().as_bytes()),
        ("init", INIT.as_bytes()),
        ("unit", UNIT.as_bytes()),
        ("agent", agent),
    ])
}

/// Writes the archive to `path`.
pub(super) fn pack(parts: &Parts, agent: &[u8], path: &Path) -> Result<(), ImageError> {
    write(parts, agent)
        .and_then(|bytes| fs::write(path, bytes))
        .map_err(io_error("cannot write the initrd", path))
}

fn write(parts: &Parts, agent: &[u8]) -> io::Result<Vec<u8>> {
    let mut archive = Archive {
        bytes: Vec::new(),
        inodes: 0,
    };
    for folder in ["bin", "dev", "image", "layer", "modules", "proc", "root", "sys"] {
        archive.add(folder, 0o755, ModeFileType::Directory, &[])?;
    }
    archive.add("bin/busybox", 0o755, ModeFileType::Regular, &parts.busybox)?;
    archive.add("init", 0o755, ModeFileType::Regular, INIT.as_bytes())?;
    archive.add("agent", 0o755, ModeFileType::Regular, agent)?;
    archive.add(
        "provisor-agent.service",
        0o644,
        ModeFileType::Regular,
        UNIT.as_bytes(),
    )?;
    let order: String = parts
        .modules
        .iter()
        .map(|(name, _)| format!("{name}\n"))
        .collect();
    archive.add("modules/order", 0o644, ModeFileType::Regular, order.as_bytes())?;
    for (name, content) in &parts.modules {
        archive.add(&format!("modules/{name}"), 0o644, ModeFileType::Regular, content)?;
    }
    trailer(archive.bytes)
}

struct Archive {
    bytes: Vec<u8>,
    inodes: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, kind: ModeFileType, content: &[u8]) -> io::Result<()> {
        // Equal inode numbers would be hard links.
        self.inodes += 1;
        let entry = Builder::new(name)
            .ino(self.inodes)
            .mode(mode)
            .set_mode_file_type(kind);
        let size = u32::try_from(content.len()).map_err(io::Error::other)?;
        let mut file = entry.write(&mut self.bytes, size);
        file.write_all(content)?;
        file.finish()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn unpack(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
        let mut files = BTreeMap::new();
        let mut rest = bytes;
        loop {
            let mut reader = cpio::newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                return files;
            }
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            let mut content = Vec::new();
            io::Read::read_to_end(&mut reader, &mut content).unwrap();
            files.insert(name, (mode, content));
            rest = reader.finish().unwrap();
        }
    }

    #[test]
    fn the_archive_has_the_agent_the_modules_in_their_order_and_an_init_that_can_run() {
        let parts = Parts {
            busybox: b"busybox".to_vec(),
            modules: vec![
                ("virtio.ko".to_owned(), b"one".to_vec()),
                ("overlay.ko".to_owned(), b"two".to_vec()),
            ],
        };
        let files = unpack(&write(&parts, b"agent bytes").unwrap());
        assert_eq!(files["agent"], (0o100755, b"agent bytes".to_vec()));
        assert_eq!(files["init"].0, 0o100755);
        assert_eq!(files["modules/order"].1, b"virtio.ko\noverlay.ko\n");
        assert_eq!(files["modules/overlay.ko"].1, b"two");
        assert_eq!(files["dev"].0, 0o040755);
    }

    #[test]
    fn the_scripts_of_the_guest_use_the_names_that_are_published() {
        assert!(INIT.contains(&format!("$(disk {ROOT_SERIAL})")));
        assert!(INIT.contains(&format!("$(disk {DISK_SERIAL})")));
        assert!(UNIT.contains(&format!("/dev/virtio-ports/{AGENT_PORT}\n")));
    }

    #[test]
    fn another_agent_or_another_image_is_another_initrd() {
        let image = |name: &str| Key::of([("image", name.as_bytes())]);
        assert_ne!(key(&image("a"), b"1"), key(&image("a"), b"2"));
        assert_ne!(key(&image("a"), b"1"), key(&image("b"), b"1"));
        assert_eq!(key(&image("a"), b"1"), key(&image("a"), b"1"));
    }
}
