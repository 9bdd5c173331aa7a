//! QEMU: its command line, its process, its disks.

mod args;
mod launch;
mod process;

pub(crate) use args::TRANSLATION_CACHE_MIB;
pub use args::{
    Access, BroughtDisk, BroughtSpec, Card, Disk, Display, Format, MachineSpec, Memory, Paths, Start, args,
    brought_args, card_id,
};
pub use launch::{Launch, LaunchError, Qemu};
