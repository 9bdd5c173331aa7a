//! The server as a client on the network meets it.

mod auth;
mod limits;
mod process;
mod protocol;
#[path = "../support/mod.rs"]
mod support;
