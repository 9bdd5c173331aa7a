//! A client of an HTTP state backend: what OpenTofu's own does, stricter where that one loses state.

mod client;
mod credentials;
mod error;

pub use client::{Client, LockAnswer, Patience, Read};
pub use credentials::{Credentials, Retries, Secret};
pub use error::StoreError;

#[cfg(test)]
#[path = "../../tests/fake_backend/mod.rs"]
pub(crate) mod fake_backend;
#[cfg(test)]
mod tests;
