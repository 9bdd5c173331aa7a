//! An HTTP state backend for OpenTofu and Terraform, on SQLite.
//!
//! It knows no fleet: a state is bytes under a key. `docs/backend.md` tells what it answers and why.

pub mod cli;
mod http;
mod password;
mod server;
pub mod state;
pub mod store;
pub mod users;

pub use password::Password;
pub use server::{BodyLimit, Config, Handle, ServeError, Server};
