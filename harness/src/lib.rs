//! Boots and drives QEMU guests from Rust tests.

pub mod artifacts;
pub mod console;
pub mod death;
mod lab;
mod names;
pub mod net;
pub mod qemu;
pub mod qmp;
mod run_dir;
pub mod timeline;
pub mod wait;
