//! `fleet.toml` as it is written.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::spot::{Fields, Key, Keys, Sited, Spot};
use super::{named, routing};
use crate::access;
use crate::diagnostic::Place;
use crate::names::{
    ComponentName, EnvironmentName, FleetName, GroupName, NetworkName, NodeName, PolicyLabel,
};
use crate::networks::Network;
use crate::resources::read::{self, Located};
use crate::resources::registry::{AnyPolicy, Resource};
use crate::routing::Override;

pub(crate) const FLEET: Keys = Keys {
    of: "a fleet",
    all: &["name", "ssh", "networks", "environments", "groups"],
};
pub(crate) const SSH: Keys = Keys {
    of: "the fleet's `ssh`",
    all: &["user", "port", "identity", "options"],
};
pub(crate) const NETWORK: Keys = Keys {
    of: "a network",
    all: &["cidr"],
};
pub(crate) const ENVIRONMENT: Keys = Keys {
    of: "an environment",
    all: &["resources", "routing"],
};
pub(crate) const GROUP: Keys = Keys {
    of: "a group",
    all: &["environment", "hosting_provider", "backend", "routing", "nodes"],
};
pub(crate) const NODE: Keys = Keys {
    of: "a node",
    all: &[
        "address",
        "port",
        "user",
        "identity",
        "host_key",
        "ssh_options",
        "networks",
        "components",
    ],
};

/// The whole file. `None` stands for what was reported.
pub(crate) struct RawFleet {
    pub(crate) name: Option<FleetName>,
    pub(crate) ssh: RawSsh,
    pub(crate) networks: BTreeMap<NetworkName, Option<Network>>,
    pub(crate) environments: BTreeMap<EnvironmentName, RawEnvironment>,
    pub(crate) groups: BTreeMap<GroupName, RawGroup>,
}

/// What nodes have unless they say otherwise.
#[derive(Default)]
pub(crate) struct RawSsh {
    pub(crate) user: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) identity: Option<String>,
    pub(crate) options: Vec<String>,
}

pub(crate) struct RawEnvironment {
    pub(crate) policies: Vec<RawPolicy>,
    pub(crate) routing: BTreeMap<Resource, Override>,
}

/// A policy under a label; `policy` is `None` where it was reported.
pub(crate) struct RawPolicy {
    pub(crate) label: PolicyLabel,
    pub(crate) located: Located<AnyPolicy>,
}

pub(crate) struct RawGroup {
    pub(crate) environment: Option<Sited<EnvironmentName>>,
    pub(crate) hosting_provider: Option<Sited<GroupName>>,
    pub(crate) backend: Option<Sited<NodeName>>,
    pub(crate) routing: BTreeMap<Resource, Override>,
    pub(crate) nodes: BTreeMap<NodeName, RawNode>,
}

pub(crate) struct RawNode {
    /// Of the node's name.
    pub(crate) place: Place,
    pub(crate) address: Option<Sited<String>>,
    pub(crate) port: Option<u16>,
    pub(crate) user: Option<String>,
    pub(crate) identity: Option<String>,
    pub(crate) host_key: Option<String>,
    pub(crate) ssh_options: Vec<String>,
    pub(crate) networks: Vec<(Sited<NetworkName>, Sited<IpAddr>)>,
    pub(crate) components: Vec<Sited<ComponentName>>,
}

/// Reads `fleet.toml`.
pub(crate) fn read(root: Spot<'_>) -> Option<RawFleet> {
    let fields = root.fields(&FLEET)?;
    Some(RawFleet {
        name: fields
            .require("name", "name = \"demo\"")
            .and_then(|spot| spot.name("the fleet's name (a string)"))
            .map(|sited| sited.value),
        ssh: fields.get("ssh").and_then(ssh).unwrap_or_default(),
        networks: named(
            fields.entries("networks", "a table of networks by name"),
            |_, spot| Some(network(spot)),
        ),
        environments: named(
            fields.entries("environments", "a table of environments by name"),
            |_, spot| Some(environment(spot)),
        ),
        groups: named(
            fields.entries("groups", "a table of groups by name"),
            |_, spot| group(spot),
        ),
    })
}

fn ssh(spot: Spot<'_>) -> Option<RawSsh> {
    let fields = spot.fields(&SSH)?;
    Some(RawSsh {
        user: user(&fields),
        port: port(&fields),
        identity: identity(&fields),
        options: ssh_options(&fields, "options"),
    })
}

/// `None` where it cannot be read: the name is known all the same.
fn network(spot: Spot<'_>) -> Option<Network> {
    let example = "cidr = \"10.90.0.0/24\"";
    let cidr = spot
        .fields(&NETWORK)?
        .require("cidr", example)?
        .name("a range of addresses (a string)")?;
    Some(Network {
        cidr: cidr.value,
        place: cidr.place,
    })
}

fn environment(spot: Spot<'_>) -> RawEnvironment {
    let mut policies = Vec::new();
    let fields = spot.fields(&ENVIRONMENT);
    let entries = |key, wanted| {
        fields
            .as_ref()
            .map(|fields| fields.entries(key, wanted))
            .unwrap_or_default()
    };
    let labels = entries("resources", "a table of policies by label");
    for (key, spot) in labels {
        let label: Option<PolicyLabel> = key.name();
        for located in read::policies(spot) {
            policies.extend(label.clone().map(|label| RawPolicy { label, located }));
        }
    }
    RawEnvironment {
        policies,
        routing: routing::read(entries("routing", ROUTING)),
    }
}

const ROUTING: &str = "a table of routing rows by resource";

fn group(spot: Spot<'_>) -> Option<RawGroup> {
    let fields = spot.fields(&GROUP)?;
    Some(RawGroup {
        environment: fields
            .require("environment", "environment = \"production\"")
            .and_then(|spot| spot.name("the name of an environment (a string)")),
        hosting_provider: fields
            .get("hosting_provider")
            .and_then(|spot| spot.name("the name of a group (a string)")),
        routing: routing::read(fields.entries("routing", ROUTING)),
        backend: fields
            .get("backend")
            .and_then(|spot| spot.name("the name of a node of this group (a string)")),
        nodes: named(
            fields.entries("nodes", "a table of nodes by deployment name"),
            node,
        ),
    })
}

fn node(key: &Key<'_>, spot: Spot<'_>) -> Option<RawNode> {
    let fields = spot.fields(&NODE)?;
    let address = fields
        .require("address", "address = \"192.0.2.10\"")
        .and_then(|spot| spot.parsed("an address (a string such as \"192.0.2.10\")", access::address));
    Some(RawNode {
        place: key.place(),
        address,
        port: port(&fields),
        user: user(&fields),
        identity: identity(&fields),
        host_key: fields
            .get("host_key")
            .and_then(|spot| {
                spot.parsed(
                    "a host key (a string such as \"ssh-ed25519 AAAA…\")",
                    access::host_key,
                )
            })
            .map(|sited| sited.value),
        ssh_options: ssh_options(&fields, "ssh_options"),
        networks: memberships(&fields),
        components: fields
            .items("components", "a list of component names")
            .into_iter()
            .filter_map(|spot| spot.name("the name of a component (a string)"))
            .collect(),
    })
}

fn memberships(fields: &Fields<'_>) -> Vec<(Sited<NetworkName>, Sited<IpAddr>)> {
    let membership = |(key, spot): (Key<'_>, Spot<'_>)| {
        let name = key.name().map(|value| Sited {
            value,
            place: key.place(),
        });
        let address = spot.parsed("the node's address in the network (a string)", access::ip_address);
        name.zip(address)
    };
    fields
        .entries("networks", "a table of addresses by network")
        .into_iter()
        .filter_map(membership)
        .collect()
}

fn user(fields: &Fields<'_>) -> Option<String> {
    let read = |spot: Spot<'_>| spot.parsed("a user name (a string)", access::user);
    fields.get("user").and_then(read).map(|sited| sited.value)
}

fn port(fields: &Fields<'_>) -> Option<u16> {
    fields.get("port").and_then(|spot| spot.port())
}

fn identity(fields: &Fields<'_>) -> Option<String> {
    let read = |spot: Spot<'_>| spot.parsed("the path of a private key (a string)", access::identity);
    fields.get("identity").and_then(read).map(|sited| sited.value)
}

fn ssh_options(fields: &Fields<'_>, key: &str) -> Vec<String> {
    let read = |spot: Spot<'_>| {
        spot.parsed(
            "an SSH option (a string such as \"ConnectTimeout=10\")",
            access::ssh_option,
        )
    };
    fields
        .items(key, "a list of SSH options")
        .into_iter()
        .filter_map(read)
        .map(|sited| sited.value)
        .collect()
}
