//! The first pass: which components each node has.

use std::collections::BTreeMap;

use crate::diagnostic::Place;
use crate::fleet::component::{Component, Provision, Scope};
use crate::fleet::{Model, Node};
use crate::names::{ComponentName, NodeName, ProvisionName};

/// The components of every node.
pub(super) struct Rosters<'a>(BTreeMap<&'a NodeName, BTreeMap<&'a ComponentName, Presence<'a>>>);

/// Why a node has a component.
#[derive(Clone, Copy, Debug)]
pub(super) enum Presence<'a> {
    /// It is assigned.
    Assigned(&'a Place),
    /// `consumer` requires what only this component provides, on the host itself.
    Added {
        consumer: &'a ComponentName,
        requirement: &'a Place,
    },
}

/// A component that a node has and that provides what is looked for.
#[derive(Clone, Copy)]
pub(super) struct Offer<'a> {
    pub(super) node: &'a NodeName,
    pub(super) component: &'a ComponentName,
    pub(super) provision: &'a Provision,
    pub(super) presence: Presence<'a>,
}

/// Every component of the fleet's files that provides `provision`.
pub(super) fn declared<'a>(
    model: &'a Model,
    provision: &ProvisionName,
) -> impl Iterator<Item = (&'a Component, &'a Provision)> {
    model
        .components()
        .filter_map(move |component| Some((component, component.provides.get(provision)?)))
}

/// Walks each node on its own.
pub(super) fn rosters(model: &Model) -> Rosters<'_> {
    Rosters(
        model
            .nodes()
            .map(|node| (&node.name, walk(model, node)))
            .collect(),
    )
}

/// Adds what is required on the host and has one component that provides it, until nothing is missing.
///
/// A requirement that several components could answer adds nothing: it is judged afterwards, over what is there. So
/// the order of the walk cannot matter.
fn walk<'a>(model: &'a Model, node: &'a Node) -> BTreeMap<&'a ComponentName, Presence<'a>> {
    let mut present = BTreeMap::new();
    let mut reached: Vec<&Component> = Vec::new();
    for component in node
        .components
        .iter()
        .filter_map(|name| model.component(name.as_str()))
    {
        let place = node.assigned_at(&component.name).unwrap_or(&node.place);
        present.insert(&component.name, Presence::Assigned(place));
        reached.push(component);
    }
    while let Some(consumer) = reached.pop() {
        for (provision, requirement) in &consumer.requires {
            let may_answer =
                |offer: &(&Component, &Provision)| offer.1.may_answer(&offer.0.name, &consumer.name);
            let mut providers = declared(model, provision).filter(may_answer);
            let (Some((provider, offered)), None) = (providers.next(), providers.next()) else {
                continue;
            };
            if offered.scope == Scope::Mesh || present.contains_key(&provider.name) {
                continue;
            }
            present.insert(
                &provider.name,
                Presence::Added {
                    consumer: &consumer.name,
                    requirement,
                },
            );
            reached.push(provider);
        }
    }
    present
}

impl<'a> Rosters<'a> {
    /// The components of one node, by name.
    pub(super) fn components(&self, model: &'a Model, node: &NodeName) -> Vec<&'a Component> {
        let names = self.0.get(node).into_iter().flat_map(|present| present.keys());
        names.filter_map(|name| model.component(name.as_str())).collect()
    }

    /// Every offer of `provision` in the fleet, by node, then by component.
    pub(super) fn offers(&self, model: &'a Model, provision: &ProvisionName) -> Vec<Offer<'a>> {
        self.0
            .keys()
            .flat_map(|node| self.offers_on(model, node, provision))
            .collect()
    }

    /// Every offer of `provision` on one node, by component.
    pub(super) fn offers_on(
        &self,
        model: &'a Model,
        node: &NodeName,
        provision: &ProvisionName,
    ) -> Vec<Offer<'a>> {
        let Some((node, present)) = self.0.get_key_value(node) else {
            return Vec::new();
        };
        let offer = |(name, presence): (&&'a ComponentName, &Presence<'a>)| {
            let component = model.component(name.as_str())?;
            let provision = component.provides.get(provision)?;
            Some(Offer {
                node,
                component: &component.name,
                provision,
                presence: *presence,
            })
        };
        present.iter().filter_map(offer).collect()
    }
}

impl Offer<'_> {
    pub(super) fn is_assigned(&self) -> bool {
        match self.presence {
            Presence::Assigned(_) => true,
            Presence::Added { .. } => false,
        }
    }
}
