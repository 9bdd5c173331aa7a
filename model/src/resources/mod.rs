//! What can be asked for. Each resource has a folder: its description, the type of its requests, its policy, and its
//! spec as the folder's documentation.
//!
//! | resource | contract | what it is |
//! |---|---|---|
//! | [`nixos_module`] | no | NixOS options, set as they are |
//! | [`ssl`] | yes | a TLS certificate for a domain |

pub(crate) mod read;
pub mod registry;

pub mod nixos_module;
pub mod ssl;

use crate::policy::Policy;
use crate::resources::registry::{Request, Resource};

/// A resource: its description, the type of its requests, its policy (RF FR-002).
pub trait Definition {
    /// Its entry in the registry.
    const RESOURCE: Resource;
    /// As it is written in fleet files.
    const NAME: &'static str;
    /// What it is, for a person, in one line.
    const DESCRIPTION: &'static str;

    /// What a component sets under an instance key.
    type Request: Clone + std::fmt::Debug;
    /// What an environment holds under a label.
    type Policy: Policy<Of = Self>;

    /// The request, if it is one for this resource.
    fn select(request: Request) -> Option<Self::Request>;

    /// The policy where an environment holds none, if the resource can do without one.
    fn default_policy() -> Option<Self::Policy>;
}
