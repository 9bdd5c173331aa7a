//! Boots and drives QEMU guests from Rust tests.

pub mod accel;
pub mod cache;
pub mod image;
