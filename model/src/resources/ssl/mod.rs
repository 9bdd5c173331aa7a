#![doc = include_str!("spec.md")]

mod policy;
mod request;

pub(crate) use policy::POLICY_EXAMPLE;
pub use policy::{Answer, Issuer, Policy};
pub use request::Request;

use super::Definition;
use super::registry::{self, Resource};

/// The resource.
#[derive(Clone, Copy, Debug)]
pub enum Ssl {}

impl Definition for Ssl {
    const RESOURCE: Resource = Resource::Ssl;
    const NAME: &'static str = "ssl";
    const DESCRIPTION: &'static str = "a TLS certificate for a domain";

    type Request = Request;
    type Policy = Policy;

    fn select(request: registry::Request) -> Option<Request> {
        match request {
            registry::Request::Ssl(request) => Some(request),
            registry::Request::NixosModule(_) => None,
        }
    }

    fn default_policy() -> Option<Policy> {
        None
    }
}

#[cfg(test)]
mod tests;
