//! Secrets on their way from the deployer to both ends: made here, kept at rest here, delivered by the transport.

pub mod at_rest;
pub mod ca;
pub mod generate;
