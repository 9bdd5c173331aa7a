//! What a fleet is, and who answers whom.
//!
//! Pure: no I/O, no clock, no environment, no randomness. The same files give the same plans, byte for byte, in
//! whatever order they declare things.
//!
//! ```text
//! fleet files ──load──▶ Model ──resolve──▶ Resolution ──plans──▶ node plans
//! ```
//!
//! Each stage is a type that only the stage before can construct. A stage reports all the mistakes it finds, sorted
//! by file and place, and the next stage starts only when there are none. What may be written in the files is in
//! `docs/fleet.md`; what each resource does is in the documentation of its module under [`resources`].

// What is read and checked.
pub mod access;
pub mod diagnostic;
pub mod names;
mod near;
pub mod networks;
pub mod paths;
mod raw;

// What a fleet is.
pub mod fleet;
pub mod pins;

// What can be asked for, and what answers it.
pub mod policy;
pub mod resources;
pub mod routing;
pub mod shape;

// What becomes of it.
pub mod node_plan;
pub mod resolution;

// What is told about it.
pub mod difference;
pub mod explain;
pub mod graph;

// Made on the way.
mod bindings;
mod contributions;
mod grants;
mod provisioners;
mod setup;
mod writers;

pub use diagnostic::{Diagnostic, Label, Severity};
pub use fleet::{Loaded, Model, load};
pub use node_plan::{Grant, NodePlan};
pub use raw::FleetFiles;
pub use resolution::{Resolution, resolve};

#[cfg(test)]
mod testing;
