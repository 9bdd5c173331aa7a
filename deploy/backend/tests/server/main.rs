//! The server as a client on the network meets it.

#![allow(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

mod auth;
mod limits;
mod process;
mod protocol;
#[path = "../support/mod.rs"]
mod support;
mod verbs;
