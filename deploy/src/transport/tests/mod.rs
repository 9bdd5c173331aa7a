//! The transport against a real sshd, and against a host that fails on purpose.

mod failures;
mod with_sshd;
