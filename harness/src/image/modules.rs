//! Which kernel modules a guest needs before its root is mounted, and in which order.

use std::collections::BTreeMap;

/// What an initrd loads: the disks, the root file system, the agent's port, the network, entropy.
pub(super) const WANTED: [&str; 7] = [
    "virtio_pci",
    "virtio_console",
    "virtio_blk",
    "squashfs",
    "overlay",
    "virtio_rng",
    "virtio_net",
];

/// The files to load, each after what it depends on, as paths under the modules' folder.
///
/// `dep` is the text of `modules.dep`, `builtin` that of `modules.builtin`. The error is the name of a module that is
/// in neither.
pub(super) fn load_order<'a>(wanted: &[&str], dep: &'a str, builtin: &str) -> Result<Vec<&'a str>, String> {
    let table: BTreeMap<String, (&str, Vec<&str>)> = dep
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, needs)| (name(path), (path, needs.split_whitespace().collect())))
        .collect();
    let mut order = Vec::new();
    for module in wanted {
        if table.contains_key(*module) {
            visit(module, &table, &mut order);
        } else if !builtin.lines().any(|path| name(path) == *module) {
            return Err((*module).to_owned());
        }
    }
    Ok(order)
}

fn visit<'a>(module: &str, table: &BTreeMap<String, (&'a str, Vec<&'a str>)>, order: &mut Vec<&'a str>) {
    if let Some((path, needs)) = table.get(module)
        && !order.contains(path)
    {
        for need in needs {
            visit(&name(need), table, order);
        }
        order.push(path);
    }
}

/// `kernel/drivers/char/hw_random/virtio-rng.ko.xz` is `virtio_rng`.
pub(super) fn name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "\
kernel/drivers/virtio/virtio.ko.xz:
kernel/drivers/virtio/virtio_ring.ko.xz: kernel/drivers/virtio/virtio.ko.xz
kernel/drivers/block/virtio_blk.ko.xz: kernel/drivers/virtio/virtio_ring.ko.xz kernel/drivers/virtio/virtio.ko.xz
kernel/drivers/char/hw_random/virtio-rng.ko.xz: kernel/drivers/virtio/virtio.ko.xz kernel/drivers/virtio/virtio_ring.ko.xz
";

    #[test]
    fn each_module_comes_once_and_after_what_it_needs() {
        let order = load_order(&["virtio_rng", "virtio_blk"], DEP, "").unwrap();
        let names: Vec<_> = order.iter().map(|path| name(path)).collect();
        assert_eq!(names, ["virtio", "virtio_ring", "virtio_rng", "virtio_blk"]);
    }

    #[test]
    fn a_module_in_the_kernel_itself_is_not_loaded_and_one_that_is_nowhere_is_named() {
        let builtin = "kernel/fs/squashfs/squashfs.ko\n";
        assert_eq!(load_order(&["squashfs"], DEP, builtin), Ok(vec![]));
        assert_eq!(load_order(&["overlay"], DEP, builtin), Err("overlay".to_owned()));
    }
}
