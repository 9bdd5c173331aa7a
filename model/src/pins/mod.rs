//! Choices that people made: which provider answers a provision on a node (PR-02).
//!
//! They stand in `pins.toml`, which [`edit`] changes without touching people's comments:
//!
//! ```toml
//! [app]                                              # the consumer's node
//! route = { node = "proxy", component = "caddy" }    # the provision, and who answers it there
//! ```
//!
//! A pin made when a provider was a node has no component. It is completed where the node answers once, and left for
//! a person where it answers twice (PR-06).

pub mod edit;

use crate::diagnostic::Place;
use crate::names::{ComponentName, NodeName, ProvisionName};

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pin {
    /// The node whose components it is for.
    pub consumer: NodeName,
    /// What is answered.
    pub provision: ProvisionName,
    /// The node of the provider; the consumer's own, too.
    pub from: NodeName,
    /// The component of the provider, unless the pin is an old one.
    pub component: Option<ComponentName>,
    /// Where it is written.
    pub place: Place,
}
