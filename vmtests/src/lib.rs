//! VM scenarios of Provisor: the fleets they deploy, the hosts they boot for them, and how they look for leaks.
//!
//! The scenarios stand in `tests/`, one readable file each. What they share stands here, and the demo uses it too.

pub mod bootstrap;
pub mod canary;
pub mod leaks;
pub mod mesh;
mod operator;
pub mod programs;
pub mod tls;
