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
    /// The file that tells it where what it requires is, by provision.
    pub binds: BTreeMap<ProvisionName, FileAt>,
    /// What it hands to whoever answers its requirement, by provision: any JSON.
    pub contributes: BTreeMap<ProvisionName, Contribution>,
    /// The file with all that is contributed to what it provides, by provision.
    pub receives: BTreeMap<ProvisionName, FileAt>,
    /// Its requests.
    pub resources: BTreeMap<InstanceKey, Instance>,
    /// Its file.
    pub place: Place,
    /// Every provision that somebody has to provide, with the place of each: what it requires, and the contract
    /// resources that it asks for, whose provision has the resource's name.
    pub needs: BTreeMap<ProvisionName, Place>,
}

/// An offer of one component.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Provision {
    /// Where it can be used.
    pub scope: Scope,
    /// What a consumer needs to know, if there is anything.
    pub serves: Option<Serves>,
    /// The credential that each consumer gets, if it needs one.
    pub grants: Option<Credential>,
    /// Where it is written.
    pub place: Place,
}

/// A file of the node below `/etc`, and where it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileAt {
    /// Absolute path.
    pub path: String,
    /// Where it is written.
    pub place: Place,
}

/// What a component hands to its provider.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Contribution {
    /// Any JSON.
    pub value: Value,
    /// Where it is written.
    pub place: Place,
}

/// What a provider gives each of its consumers, and to nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Credential {
    /// A login role with a password.
    Role,
    /// An access key: a public id and a secret.
    AccessKey,
}

impl Credential {
    /// Every kind.
    pub const ALL: [Credential; 2] = [Credential::Role, Credential::AccessKey];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Credential::Role => "role",
            Credential::AccessKey => "access-key",
        }
    }
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
    /// Whether it serves nothing and grants nothing, so that several of it on one node are no choice to put to anybody
    /// (PR-04).
    pub fn is_plain(&self) -> bool {
        let serves_nothing = self.serves.as_ref().is_none_or(|serves| serves.0.is_empty());
        serves_nothing && self.grants.is_none()
    }

    /// Whether `provider`, whose provision this is, may answer `consumer` on the same node: a component answers itself
    /// only where nothing is served.
    pub(crate) fn may_answer(&self, provider: &ComponentName, consumer: &ComponentName) -> bool {
        self.is_plain() || provider != consumer
    }
}
