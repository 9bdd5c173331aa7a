//! Boots and drives QEMU guests from Rust tests.

pub mod net;
