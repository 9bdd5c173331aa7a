//! The ways to run a command in a machine, against real and fake other sides.

#![allow(clippy::unwrap_used, reason = "what a test needs may fail as the test does")]

mod agent_session;
mod conformance;
mod peers;
mod ssh_endings;
