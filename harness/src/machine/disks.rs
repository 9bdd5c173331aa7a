//! More disks for a machine, and disks that are full.

use std::fs::File;
use std::path::{Path, PathBuf};

use qapi::qmp;

use super::{ControlError, Machine, RunError};
use crate::exec::Command;

/// An empty disk that a test gives to a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewDisk {
    pub(crate) name: String,
    pub(crate) mebibytes: u64,
}

/// A file system of a guest that is full, until it is freed.
#[must_use = "it stays full until it is freed"]
#[derive(Debug)]
pub struct Full<'a> {
    machine: &'a Machine,
    file: String,
}

/// Takes all there is in the file system of the folder `$1`, also what is reserved for root: by ever smaller pieces, without writing
/// them, so that the host's disk does not fill.
const FILL: &str = r#"set -eu
free=$(stat -f -c '%f * %S' -- "$1")
piece=$((free))
taken=0
: >"$2"
while [ "$piece" -ge 4096 ]; do
    if fallocate --offset "$taken" --length "$piece" "$2" 2>/dev/null; then
        taken=$((taken + piece))
    else
        piece=$((piece / 2))
    fi
done
"#;

impl NewDisk {
    /// Makes its file, which takes no space before the guest writes.
    pub(crate) fn make(&self, path: &Path) -> Result<(), ControlError> {
        let host = |source| ControlError::Host {
            path: path.to_owned(),
            source,
        };
        check_name(&self.name)?;
        File::create(path)
            .and_then(|file| file.set_len(self.mebibytes << 20))
            .map_err(host)
    }
}

/// Where udev shows a disk to the guest.
fn device(name: &str) -> PathBuf {
    Path::new("/dev/disk/by-id").join(format!("virtio-{name}"))
}

fn check_name(name: &str) -> Result<(), ControlError> {
    let allowed = name
        .bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    let first = name.starts_with(|first: char| first.is_ascii_lowercase());
    // The serial number of a virtio disk has room for 20 bytes.
    if allowed && first && name.len() <= 20 && !name.starts_with("provisor-") {
        Ok(())
    } else {
        Err(ControlError::DiskName {
            name: name.to_owned(),
        })
    }
}

impl Machine {
    /// Plugs an empty disk into the running guest, and answers with its device, `/dev/disk/by-id/virtio-NAME`, when the guest has it. It
    /// needs a free slot: see [`hot_disks`](super::MachineBuilder::hot_disks).
    ///
    /// # Errors
    /// [`ControlError`]; QEMU refuses it if no slot is free.
    pub async fn add_disk(&self, name: &str, mebibytes: u64) -> Result<PathBuf, ControlError> {
        self.note(format_args!("gets the disk {name}: {mebibytes} MiB"));
        let disk = NewDisk {
            name: name.to_owned(),
            mebibytes,
        };
        let file = self.running.agent_port.with_extension(format!("disk-{name}"));
        disk.make(&file)?;
        let drive = format!(
            "drive_add 0 if=none,id={name},format=raw,cache=unsafe,discard=unmap,file={}",
            file.display()
        );
        // It answers with "OK".
        self.monitor()
            .human(&drive)
            .await
            .map_err(|error| self.refused(error))?;
        let mut refused = None;
        for slot in 0..MOST_HOT_DISKS {
            match self.plug_disk(name, slot).await {
                Ok(()) => {
                    let device = device(name);
                    self.wait_for_file(&device.display().to_string())
                        .await
                        .map_err(Box::new)?;
                    return Ok(device);
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or(ControlError::DiskName {
            name: name.to_owned(),
        }))
    }

    async fn plug_disk(&self, name: &str, slot: u8) -> Result<(), ControlError> {
        let text = |text: &str| serde_json::Value::String(text.to_owned());
        let arguments = [("drive", text(name)), ("serial", text(name))];
        let add = qmp::device_add {
            bus: Some(hot_slot(slot)),
            id: Some(format!("disk-{name}")),
            driver: "virtio-blk-pci".to_owned(),
            arguments: arguments
                .map(|(key, value)| (key.to_owned(), value))
                .into_iter()
                .collect(),
        };
        self.control(add).await.map(drop)
    }

    /// Fills the file system of the folder `path`, so that nothing more can be written to it, also not by root.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn fill_disk(&self, path: &str) -> Result<Full<'_>, RunError> {
        let file = format!("{}/.provisor-full", path.trim_end_matches('/'));
        self.note(format_args!("fault: the disk of {path} is full"));
        let fill = Command::shell(FILL).args(["fill", path, &file]);
        self.run(fill).check_ok().await?;
        Ok(Full { machine: self, file })
    }
}

impl Full<'_> {
    /// Frees what it takes.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn free(self) -> Result<(), RunError> {
        self.machine.note(format_args!("healed: {} is gone", self.file));
        let remove = Command::new("rm").args(["-f", "--", &self.file]);
        self.machine.run(remove).check_ok().await.map(drop)
    }
}

/// The most disks that can be plugged into a running machine.
pub(crate) const MOST_HOT_DISKS: u8 = 8;

/// The name of a slot for a disk, as QEMU knows it.
pub(crate) fn hot_slot(index: u8) -> String {
    format!("hot{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_s_name_fits_its_serial_number_and_is_none_of_ours() {
        for good in ["data", "d1", "a-20-bytes-long-name"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "Data",
            "1d",
            "a,file=/etc/passwd",
            "one-byte-more-than-20",
            "provisor-root",
        ] {
            let error = check_name(bad).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("`{bad}` cannot name a disk")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_new_disk_takes_no_space_before_it_is_written() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let (name, mebibytes) = ("data".to_owned(), 4096);
        NewDisk { name, mebibytes }.make(&path).unwrap();
        let metadata = path.metadata().unwrap();
        assert_eq!((metadata.len(), metadata.blocks()), (4 << 30, 0));
    }
}
