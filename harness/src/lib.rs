//! Boots and drives QEMU guests from Rust tests.
