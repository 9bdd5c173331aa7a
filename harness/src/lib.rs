//! Boots and drives QEMU guests from Rust tests.

pub mod agent;
pub mod exec;
pub mod guard;
pub mod ssh;
