//! What a fleet is, and who answers whom.

pub mod node_plan;
