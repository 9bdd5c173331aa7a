//! Takes out of a finished squashfs what starts it: the kernel, and the parts of an initrd.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use super::build::{KERNEL, PACKAGES, ROOT, guest_tool};
use super::error::{ImageError, io_error};
use super::initrd::Parts;
use super::modules;
use super::run::Finished;
use super::tools::Tools;

const BUSYBOX: &str = "busybox";
const MODULES: &str = "modules";
const ORDER: &str = "modules.order";

/// What an initrd takes from the finished image in `folder`.
pub(super) fn parts(folder: &Path) -> Result<Parts, ImageError> {
    let read = |path: &Path| fs::read(path).map_err(io_error("cannot read", path));
    let order = folder.join(ORDER);
    let names = fs::read_to_string(&order).map_err(io_error("cannot read", &order))?;
    let modules = names
        .lines()
        .map(|name| Ok((name.to_owned(), read(&folder.join(MODULES).join(name))?)));
    Ok(Parts {
        busybox: read(&folder.join(BUSYBOX))?,
        modules: modules.collect::<Result<_, ImageError>>()?,
    })
}

/// Takes the kernel, the modules of an initrd, busybox and the list of packages out of the squashfs.
pub(super) fn extract(tools: &Tools, folder: &Path, scratch: &Path) -> Result<(), ImageError> {
    let tree = scratch.join("tree");
    let unpack = |what: &[String]| -> Result<(), ImageError> {
        let done = guest_tool(&tools.unsquashfs, scratch)
            .args(["-force", "-no-progress", "-quiet", "-no-xattrs", "-dest"])
            .arg(&tree)
            .arg(folder.join(ROOT))
            .args(what)
            .output()
            .map_err(io_error("cannot run", &tools.unsquashfs))?;
        Finished::of("unsquashfs", &done).check("check that squashfs-tools is 4.5 or later")
    };
    let every = [
        "boot/vmlinuz-*",
        "usr/lib/modules/*/modules.*",
        "usr/bin/busybox",
        "bin/busybox",
        "var/lib/dpkg/status",
    ];
    unpack(&every.map(str::to_owned))?;

    let release = only_name(&tree.join("usr/lib/modules"))?;
    let modules = tree.join("usr/lib/modules").join(&release);
    let text = |path: &Path| fs::read_to_string(path).map_err(io_error("cannot read", path));
    let (dep, builtin) = (
        text(&modules.join("modules.dep"))?,
        text(&modules.join("modules.builtin"))?,
    );
    let order = modules::load_order(&modules::WANTED, &dep, &builtin).map_err(|name| {
        ImageError::Kernel(format!("the kernel {release} of the image has no module {name}"))
    })?;
    unpack(
        &order
            .iter()
            .map(|path| format!("usr/lib/modules/{release}/{path}"))
            .collect::<Vec<_>>(),
    )?;

    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to)
            .map(drop)
            .map_err(io_error("cannot copy", from))
    };
    copy(
        &tree.join("boot").join(format!("vmlinuz-{release}")),
        &folder.join(KERNEL),
    )?;
    let busybox = ["usr/bin/busybox", "bin/busybox"]
        .map(|path| tree.join(path))
        .into_iter()
        .find(|path| path.exists());
    copy(&busybox.unwrap_or_default(), &folder.join(BUSYBOX))?;
    let target = folder.join(MODULES);
    fs::create_dir(&target).map_err(io_error("cannot create", &target))?;
    let mut names = String::new();
    for path in order {
        let name = format!("{}.ko", modules::name(path));
        copy_module(&modules.join(path), &target.join(&name), &folder.join(BUSYBOX))?;
        names.push_str(&format!("{name}\n"));
    }
    let write = |name: &str, content: String| {
        fs::write(folder.join(name), content).map_err(io_error("cannot write", &folder.join(name)))
    };
    write(ORDER, names)?;
    write(PACKAGES, package_list(&text(&tree.join("var/lib/dpkg/status"))?))
}

/// The release is the one folder under the modules: an image has one kernel.
fn only_name(folder: &Path) -> Result<String, ImageError> {
    let listing = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<_> = listing
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        (None, _) => Err(ImageError::Kernel("the image has no kernel".to_owned())),
        (Some(_), false) => Err(ImageError::Kernel(
            "the image has more than one kernel".to_owned(),
        )),
    }
}

/// Later releases compress their modules; the image's own busybox, which is static, unpacks them.
fn copy_module(from: &Path, to: &Path, busybox: &Path) -> Result<(), ImageError> {
    let applet = match from.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xzcat",
        Some("gz") => "zcat",
        _ => {
            return fs::copy(from, to)
                .map(drop)
                .map_err(io_error("cannot copy", from));
        }
    };
    let target = File::create(to).map_err(io_error("cannot write", to))?;
    let done = Command::new(busybox)
        .args([applet.as_ref(), from.as_os_str()])
        .stdout(target)
        .output()
        .map_err(io_error("cannot run", busybox))?;
    Finished::of("busybox", &done)
        .check("the module is damaged: remove the image with `lab images prune` and build again")
}

/// `name version` lines out of dpkg's status file.
fn package_list(status: &str) -> String {
    let field = |paragraph: &str, name: &str| {
        paragraph
            .lines()
            .find_map(|line| line.strip_prefix(name).map(str::trim).map(str::to_owned))
    };
    let mut lines: Vec<_> = status
        .split("\n\n")
        .filter_map(|paragraph| Some((field(paragraph, "Package:")?, field(paragraph, "Version:")?)))
        .map(|(name, version)| format!("{name} {version}\n"))
        .collect();
    lines.sort();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_packages_is_sorted_and_has_the_versions() {
        let status = "Package: zlib1g\nStatus: install ok installed\nVersion: 1:1.2\n\nPackage: adduser\nVersion: 3.134\n";
        assert_eq!(package_list(status), "adduser 3.134\nzlib1g 1:1.2\n");
    }

    #[test]
    fn an_image_without_a_kernel_or_with_two_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("modules");
        assert!(
            only_name(&folder)
                .unwrap_err()
                .to_string()
                .starts_with("the image has no kernel;")
        );
        fs::create_dir_all(folder.join("6.1.0-1")).unwrap();
        assert_eq!(only_name(&folder).unwrap(), "6.1.0-1");
        fs::create_dir(folder.join("6.1.0-2")).unwrap();
        assert!(
            only_name(&folder)
                .unwrap_err()
                .to_string()
                .starts_with("the image has more than one kernel;")
        );
    }
}
