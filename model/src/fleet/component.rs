//! Components: what is assigned to nodes.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::diagnostic::Place;
use crate::names::{ComponentName, InstanceKey, ProvisionName};
use crate::policy::Instance;

/// The provision that marks a component as the fleet's state backend.
pub const STATE_BACKEND: &str = "state-backend";

/// What is assigned to nodes: it requests, provides and requires.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Component {
    /// Its file's name.
    pub name: ComponentName,
    /// Provisions it needs, with the place of each.
    pub requires: BTreeMap<ProvisionName, Place>,
    /// Provisions it offers.
    pub provides: BTreeMap<ProvisionName, Provision>,
    /// Its requests.
    pub resources: BTreeMap<InstanceKey, Instance>,
    /// Its file.
    pub place: Place,
}

/// An offer of one component.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Provision {
    /// Where it can be used.
    pub scope: Scope,
    /// What a consumer needs to know, if there is anything.
    pub serves: Option<Serves>,
    /// Where it is written.
    pub place: Place,
}

/// Where a provision can be used (PR-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// On the node that has the component: a shell, a display server.
    Host,
    /// On every node that shares a network with it: a database, a proxy.
    Mesh,
}

impl Scope {
    /// Both.
    pub const ALL: [Scope; 2] = [Scope::Host, Scope::Mesh];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Host => "host",
            Scope::Mesh => "mesh",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a provider says that its consumers need to know: a port, a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serves(pub(crate) BTreeMap<String, Value>);

impl Serves {
    /// All of it.
    pub fn facts(&self) -> &BTreeMap<String, Value> {
        &self.0
    }

    /// The TCP port, if one is served.
    pub fn port(&self) -> Option<u16> {
        self.0
            .get("port")
            .and_then(Value::as_u64)
            .and_then(|port| u16::try_from(port).ok())
    }
}

impl Provision {
    /// Whether it serves nothing, so that several of it are no choice to put to anybody (PR-04).
    pub fn is_plain(&self) -> bool {
        self.serves.as_ref().is_none_or(|serves| serves.0.is_empty())
    }

    /// Whether `provider`, whose provision this is, may answer `consumer` on the same node: a component answers itself
    /// only where nothing is served.
    pub(crate) fn may_answer(&self, provider: &ComponentName, consumer: &ComponentName) -> bool {
        self.is_plain() || provider != consumer
    }
}
