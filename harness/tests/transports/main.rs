//! The ways to run a command in a machine, against real and fake other sides.

mod agent_session;
mod conformance;
mod peers;
mod ssh_endings;
