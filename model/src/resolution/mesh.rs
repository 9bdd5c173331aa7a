//! What the first pass found, in the order in which the second asks for it.
//!
//! Every look-up is by name, so that the second pass takes time in proportion to what is required, not to the square.

use std::collections::{BTreeMap, BTreeSet};

use super::walk::{self, Declared, Offer, Presence, Present, Roster};
use crate::diagnostic::Place;
use crate::fleet::component::{Component, Scope};
use crate::fleet::{Group, Model, Node};
use crate::names::{ComponentName, GroupName, NodeName, ProvisionName};
use crate::resources::registry::Resource;
use crate::routing::Deployment;
use crate::routing::provided::CrossGroup;

/// Who has what, and who offers what.
pub(crate) struct Mesh<'a> {
    pub(crate) model: &'a Model,
    pub(crate) declared: Declared<'a>,
    rosters: BTreeMap<&'a NodeName, Roster<'a>>,
    /// By provision; by node, then by component.
    offers: BTreeMap<&'a ProvisionName, Vec<Offer<'a>>>,
    by_node: BTreeMap<&'a NodeName, BTreeMap<&'a ProvisionName, Vec<Offer<'a>>>>,
    by_group: BTreeMap<&'a GroupName, GroupOffers<'a>>,
}

/// What the nodes of one group offer by the names of contract resources, over the mesh.
#[derive(Default)]
struct GroupOffers<'a> {
    resources: BTreeSet<Resource>,
    offers: BTreeMap<&'a ProvisionName, Vec<Offer<'a>>>,
}

/// A requirement of one component on one node.
#[derive(Clone, Copy)]
pub(crate) struct Need<'a> {
    pub(crate) node: &'a Node,
    pub(crate) component: &'a Component,
    pub(crate) provision: &'a ProvisionName,
    pub(crate) place: &'a Place,
}

impl<'a> Mesh<'a> {
    /// The first pass.
    pub(crate) fn of(model: &'a Model) -> Mesh<'a> {
        let declared = Declared::of(model);
        let rosters: BTreeMap<_, _> = model
            .nodes()
            .map(|node| (&node.name, walk::roster(model, &declared, node)))
            .collect();
        let mut mesh = Mesh {
            model,
            declared,
            rosters,
            offers: BTreeMap::new(),
            by_node: BTreeMap::new(),
            by_group: BTreeMap::new(),
        };
        mesh.index();
        mesh
    }

    fn index(&mut self) {
        for node in self.model.nodes() {
            for Present { component, presence } in self
                .rosters
                .get(&node.name)
                .into_iter()
                .flat_map(BTreeMap::values)
            {
                for (name, provision) in &component.provides {
                    let offer = Offer {
                        node,
                        component,
                        provision,
                        presence: *presence,
                    };
                    self.offers.entry(name).or_default().push(offer);
                    let on_node = self.by_node.entry(&node.name).or_default();
                    on_node.entry(name).or_default().push(offer);
                    if let (Some(resource), Scope::Mesh) =
                        (Resource::contract_named(name.as_str()), provision.scope)
                    {
                        let group = self.by_group.entry(&node.group).or_default();
                        group.resources.insert(resource);
                        group.offers.entry(name).or_default().push(offer);
                    }
                }
            }
        }
    }

    /// The components of one node, by name.
    pub(crate) fn components(&self, node: &NodeName) -> impl Iterator<Item = &'a Component> {
        let roster = self.rosters.get(node).into_iter().flat_map(BTreeMap::values);
        roster.map(|present| present.component)
    }

    /// Whether the consumer is assigned to its node, and not added by a requirement of another.
    pub(crate) fn is_assigned(&self, need: &Need<'a>) -> bool {
        need.node.assigned_at(&need.component.name).is_some()
    }

    /// Why a node has a component, from the component back to the one that is assigned: each step with its component.
    pub(crate) fn chain(&self, node: &NodeName, component: &ComponentName) -> Vec<Present<'a>> {
        let roster = self.rosters.get(node);
        let mut chain: Vec<Present<'a>> = Vec::new();
        let mut next = roster.and_then(|roster| roster.get(component));
        // What was added names what was there before it, so that the way back ends.
        while let Some(present) = next {
            chain.push(*present);
            next = match present.presence {
                Presence::Assigned(_) => None,
                Presence::Added { consumer, .. } => roster.and_then(|roster| roster.get(consumer)),
            };
        }
        chain
    }

    /// Every requirement of every component on every node: the fan-out, in one place, after the walk (PR-10).
    pub(crate) fn needs(&self) -> impl Iterator<Item = Need<'a>> {
        self.model.nodes().flat_map(|node| self.needs_of(node))
    }

    /// The requirements of one node's components, each component's own.
    pub(crate) fn needs_of(&self, node: &'a Node) -> impl Iterator<Item = Need<'a>> {
        self.components(&node.name).flat_map(move |component| {
            component.needs.iter().map(move |(provision, place)| Need {
                node,
                component,
                provision,
                place,
            })
        })
    }

    /// Every offer in the fleet, by node, then by component.
    pub(crate) fn offers(&self, provision: &ProvisionName) -> &[Offer<'a>] {
        self.offers.get(provision).map_or(&[], Vec::as_slice)
    }

    /// Every offer on one node, by component.
    pub(crate) fn offers_on(&self, node: &NodeName, provision: &ProvisionName) -> &[Offer<'a>] {
        let on_node = self.by_node.get(node).and_then(|offers| offers.get(provision));
        on_node.map_or(&[], Vec::as_slice)
    }

    /// Every offer of a contract resource by the nodes of one group, over the mesh.
    pub(crate) fn offers_of(&self, group: &GroupName, provision: &ProvisionName) -> &[Offer<'a>] {
        let of_group = self
            .by_group
            .get(group)
            .and_then(|group| group.offers.get(provision));
        of_group.map_or(&[], Vec::as_slice)
    }

    /// The group whose roster lists the node.
    pub(crate) fn group(&self, node: &Node) -> Option<&'a Group> {
        self.model.group(node.group.as_str())
    }

    /// What a group can draw on.
    pub(crate) fn deployment(&self, group: &Group) -> Deployment<'_> {
        static NOTHING: BTreeSet<Resource> = BTreeSet::new();
        Deployment {
            roster: self
                .by_group
                .get(&group.name)
                .map_or(&NOTHING, |offers| &offers.resources),
            cross_group: match group.hosting_provider {
                Some(_) => CrossGroup::Open,
                None => CrossGroup::Closed,
            },
        }
    }
}
