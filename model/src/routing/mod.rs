//! How a contract resource is answered: by which route, and with which provider module.
//!
//! The resolver picks *who* answers, a (node, component) pair. The provider table says *how*: a [`Row`] for each
//! contract resource but `garage`. Rows are defaults that a group or an environment overrides ([`Override`]).
//!
//! [`provided()`] says whether a group's deployment has a resource, and why. A node that consumes one that it has not
//! is an error ([`unprovided()`]); one that nobody consumes is none.
//!
//! Which resources this is about is read off the policies ([`Resource::is_contract`]): a contract resource that
//! [`provided()`] has no answer for is an error wherever it is consumed.

pub mod provided;
pub mod table;

use std::fmt;

use serde_json::Value;

pub use self::provided::{Deployment, Provided, provided, unprovided};
pub use self::table::{Row, SetBy, provider_module};
use crate::diagnostic::Place;
use crate::names::ComponentName;
#[cfg(doc)]
use crate::resources::registry::Resource;

/// Why a group has a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// It is always there, whatever the fleet provides.
    Always,
    /// A node of the group provides it.
    Roster,
    /// A node of the group's hosting provider provides it.
    CrossGroup,
    /// A service outside the fleet provides it: a third-party relay, a registrar.
    External,
}

impl Route {
    /// Every route.
    pub const ALL: [Route; 4] = [Route::Always, Route::Roster, Route::CrossGroup, Route::External];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Route::Always => "always",
            Route::Roster => "roster",
            Route::CrossGroup => "cross-group",
            Route::External => "external",
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a group or an environment says over a row's default. What is absent stays as it is by default.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Override {
    /// The route to take.
    pub route: Option<Route>,
    /// The component that must answer, and where that is written.
    pub provider: Option<(ComponentName, Place)>,
    /// Settings of the provider's module, a JSON object.
    pub settings: Option<Value>,
    /// Where it is written.
    pub place: Place,
}

#[cfg(test)]
mod tests;
