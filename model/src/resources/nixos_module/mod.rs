#![doc = include_str!("spec.md")]

use serde_json::Value;

use super::Definition;
use super::read::Readable;
use super::registry::{self, Resource};
use crate::policy::{self, Asked, HostModules};
use crate::raw::spot::{Fields, Keys};
use crate::shape::Leaf;

/// The resource.
#[derive(Clone, Copy, Debug)]
pub enum NixosModule {}

/// A module of NixOS options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The options, a JSON object with sorted keys.
    pub module: Value,
}

/// Nothing to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy;

pub(crate) const POLICY_EXAMPLE: &str = "nixos-module = {}";

impl Definition for NixosModule {
    const RESOURCE: Resource = Resource::NixosModule;
    const NAME: &'static str = "nixos-module";
    const DESCRIPTION: &'static str = "NixOS options, set as they are on the component's nodes";

    type Request = Request;
    type Policy = Policy;

    fn select(request: registry::Request) -> Option<Request> {
        match request {
            registry::Request::NixosModule(request) => Some(request),
            registry::Request::Ssl(_) => None,
        }
    }

    fn default_policy() -> Option<Policy> {
        Some(Policy)
    }
}

impl Readable for Request {
    const KEYS: &'static Keys = &Keys {
        of: "a `nixos-module` request",
        all: &["module"],
    };

    fn read(fields: &Fields<'_>) -> Option<Request> {
        let module = fields.require("module", "module.services.nginx.enable = true")?;
        module.entries("a table of NixOS options")?;
        Some(Request {
            module: module.json()?,
        })
    }
}

impl Readable for Policy {
    const KEYS: &'static Keys = &Keys {
        of: "a `nixos-module` policy",
        all: &[],
    };

    fn read(_: &Fields<'_>) -> Option<Policy> {
        Some(Policy)
    }
}

impl policy::Policy for Policy {
    type Of = NixosModule;
    type Input = Vec<Leaf<Asked<Request>>>;
    type Outcome = HostModules;

    fn answer(&self, requests: Self::Input) -> HostModules {
        HostModules(
            requests
                .into_iter()
                .map(|Leaf(asked)| asked.request.module)
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests;
