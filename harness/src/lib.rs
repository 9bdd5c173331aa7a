//! Boots and drives QEMU guests from Rust tests.

pub mod accel;
pub mod agent;
pub mod artifacts;
mod background;
pub mod cache;
pub mod console;
pub mod death;
pub mod exec;
mod failure;
pub mod guard;
pub mod image;
mod lab;
pub mod machine;
mod names;
pub mod net;
pub mod qemu;
pub mod qmp;
mod run_dir;
pub mod ssh;
pub mod timeline;
pub mod wait;

pub use exec::{Command, Execute, ExitStatus, Output, Transport};
pub use failure::{Failure, Result};
pub use image::ImageSpec;
pub use lab::{AddressError, Lab, LabError, Vlan, lab};
pub use machine::{Machine, MachineBuilder, Machines};
pub use names::{Name, NameError};
pub use run_dir::RunDirError;
