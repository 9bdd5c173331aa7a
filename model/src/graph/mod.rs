//! Who takes what from whom, as a picture.
//!
//! Drawn from the fleet, resolved or not: a requirement that is refused is an edge that leads nowhere, and is drawn as
//! such.

mod svg;
mod text;

use serde::Serialize;

use crate::fleet::Model;
use crate::node_plan::End;
use crate::resolution::choice::{self, Choice};
use crate::resolution::mesh::Mesh;

/// The machines of a fleet, and what their components require.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Graph {
    /// By name.
    pub nodes: Vec<Machine>,
    /// By consumer, then by provision.
    pub edges: Vec<Edge>,
}

/// A node of the fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Deployment name.
    pub name: String,
    /// The group whose roster lists it.
    pub group: String,
    /// What it has, assigned or added, sorted.
    pub components: Vec<String>,
}

/// A requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Who requires.
    pub consumer: End,
    /// What.
    pub provision: String,
    /// Where it leads.
    pub to: Target,
}

/// Where a requirement leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// To who answers.
    Providers(Vec<End>),
    /// Out of the fleet, by this route.
    Outside(String),
    /// Nowhere: it is refused, and why.
    Unresolved(String),
}

/// The graph of a fleet.
pub fn graph(model: &Model) -> Graph {
    let mesh = Mesh::of(model);
    let nodes = model.nodes().map(|node| Machine {
        name: node.name.to_string(),
        group: node.group.to_string(),
        components: mesh
            .components(&node.name)
            .map(|component| component.name.to_string())
            .collect(),
    });
    let edges = mesh.needs().map(|need| Edge {
        consumer: End::new(&need.node.name, &need.component.name),
        provision: need.provision.to_string(),
        to: match choice::choose(&mesh, &need) {
            Ok(Choice::Offers { offers, .. }) => Target::Providers(
                offers
                    .iter()
                    .map(|offer| End::new(&offer.node.name, &offer.component.name))
                    .collect(),
            ),
            Ok(Choice::Elsewhere(route)) => Target::Outside(route.to_string()),
            Err(refusal) => Target::Unresolved(refusal.diagnostic(&mesh, &need).message),
        },
    });
    Graph {
        nodes: nodes.collect(),
        edges: edges.collect(),
    }
}

#[cfg(test)]
mod tests;
