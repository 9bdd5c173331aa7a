//! Boots and drives QEMU guests from Rust tests.

pub mod accel;
pub mod agent;
pub mod cache;
pub mod exec;
pub mod guard;
pub mod image;
pub mod ssh;
