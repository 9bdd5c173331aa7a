//! QEMU: its command line, its process, its disks.

mod args;
#[cfg(any())]
mod launch;

pub use args::{AGENT_PORT, Accelerator, Access, Card, Disk, MachineSpec, Paths, Start, args};
#[cfg(any())]
pub use launch::{Launch, LaunchError, Qemu};
