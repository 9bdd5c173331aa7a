//! What makes a component the provider that it says it is: a module of its node that makes what its consumers were
//! granted.
//!
//! The password itself is in no module: it is read on the node from the file that the grant is delivered to.

mod postgresql;

use serde_json::Value;

use crate::fleet::component::{Component, Credential, Provision, Serves};
use crate::fleet::{Model, Node};
use crate::grants::login;
use crate::names::{ComponentName, ProvisionName};
use crate::networks;
use crate::node_plan::{End, Grant, GrantKind, GrantPart, Login};

/// A provision that Provisor itself can make, by what it grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provisioner {
    PostgresqlRoles,
}

impl Provisioner {
    fn of(provision: &str, credential: Credential) -> Option<Provisioner> {
        match (provision, credential) {
            ("postgresql", Credential::Role) => Some(Provisioner::PostgresqlRoles),
            (_, Credential::Role | Credential::AccessKey) => None,
        }
    }

    fn unit(self, component: &ComponentName) -> String {
        match self {
            Provisioner::PostgresqlRoles => postgresql::unit(component),
        }
    }
}

/// The units of a provider's node that use what it grants, and run again when that changes.
pub(crate) fn units(
    provision: &ProvisionName,
    credential: Credential,
    provider: &ComponentName,
) -> Vec<String> {
    let provisioner = Provisioner::of(provision.as_str(), credential);
    provisioner
        .map(|provisioner| format!("{}.service", provisioner.unit(provider)))
        .into_iter()
        .collect()
}

/// The modules of one node's providers, by component, then by provision. `grants` are those of the node.
pub(crate) fn modules(model: &Model, node: &Node, components: &[&Component], grants: &[Grant]) -> Vec<Value> {
    let offers = components
        .iter()
        .flat_map(|component| component.provides.iter().map(move |offer| (*component, offer)));
    let module = |(component, (name, provision)): (&Component, (&ProvisionName, &Provision))| {
        let provisioner = Provisioner::of(name.as_str(), provision.grants?)?;
        let provider = End::new(&node.name, &component.name);
        let granted = grants
            .iter()
            .filter_map(|grant| granted(grant, name, &provider))
            .collect();
        let served = Served {
            component: &component.name,
            port: provision.serves.as_ref().and_then(Serves::port),
            granted,
        };
        Some(match provisioner {
            Provisioner::PostgresqlRoles => {
                postgresql::module(&served, &sources(model, node, &served.granted))
            }
        })
    };
    offers.filter_map(module).collect()
}

/// What one component serves on one node.
struct Served<'a> {
    component: &'a ComponentName,
    port: Option<u16>,
    granted: Vec<Granted<'a>>,
}

/// What one consumer is granted.
struct Granted<'a> {
    login: &'a Login,
    /// Where its password is on the provider's node.
    password: String,
}

fn granted<'a>(grant: &'a Grant, provision: &ProvisionName, provider: &End) -> Option<Granted<'a>> {
    let GrantKind::Role(login) = &grant.kind else {
        return None;
    };
    let here = login.provider == *provider && login.provision == provision.as_str();
    here.then(|| Granted {
        login,
        password: login::given_file(login, GrantPart::Password),
    })
}

/// Where a node's consumers are, as the address ranges of the networks that they share with it.
fn sources(model: &Model, node: &Node, granted: &[Granted<'_>]) -> Vec<String> {
    let mut sources = Vec::new();
    for Granted { login, .. } in granted {
        if login.consumer.node == login.provider.node {
            sources.extend(["127.0.0.1/32", "::1/128"].map(str::to_owned));
            continue;
        }
        let consumer = model.node(&login.consumer.node);
        let shared = consumer.and_then(|consumer| networks::shared(consumer, node));
        let network = shared.and_then(|member| model.networks().find(|(name, _)| *name == member.network));
        sources.extend(network.map(|(_, network)| network.cidr.to_string()));
    }
    sources.sort();
    sources.dedup();
    sources
}

#[cfg(test)]
mod tests;
