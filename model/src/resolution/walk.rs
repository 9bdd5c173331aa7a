//! The first pass: which components each node has. One node at a time, and nothing is declared from it.

use std::collections::BTreeMap;

use super::Running;
use crate::diagnostic::Place;
use crate::fleet::component::{Component, Provision, Scope};
use crate::fleet::{Model, Node};
use crate::names::{ComponentName, ProvisionName};

/// Every component of the fleet's files that provides a provision, by its name.
pub(crate) struct Declared<'a>(BTreeMap<&'a ProvisionName, Vec<(&'a Component, &'a Provision)>>);

/// The components of one node, by name.
pub(crate) type Roster<'a> = BTreeMap<&'a ComponentName, Present<'a>>;

/// A component that a node has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Present<'a> {
    pub(crate) component: &'a Component,
    pub(crate) presence: Presence<'a>,
}

/// Why a node has a component.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence<'a> {
    /// It is assigned.
    Assigned(&'a Place),
    /// `consumer` requires what only this component provides, on the host itself.
    Added {
        consumer: &'a ComponentName,
        requirement: &'a Place,
    },
}

/// A component that a node has and that provides what is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    pub(crate) node: &'a Node,
    pub(crate) component: &'a Component,
    pub(crate) provision: &'a Provision,
    pub(crate) presence: Presence<'a>,
}

impl<'a> Declared<'a> {
    pub(crate) fn of(model: &'a Model) -> Declared<'a> {
        let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for component in model.components() {
            for (name, provision) in &component.provides {
                by_name.entry(name).or_default().push((component, provision));
            }
        }
        Declared(by_name)
    }

    /// Who provides it, by component.
    pub(crate) fn providers(&self, provision: &ProvisionName) -> &[(&'a Component, &'a Provision)] {
        self.0.get(provision).map_or(&[], Vec::as_slice)
    }

    /// Its scope: one name has one. `None`: no component provides it.
    pub(crate) fn scope(&self, provision: &ProvisionName) -> Option<Scope> {
        self.providers(provision)
            .first()
            .map(|(_, offered)| offered.scope)
    }
}

/// Adds to what is assigned what is required on the host and has one component that provides it, until nothing is
/// missing. A list of work, so that no depth of requirements overflows anything.
///
/// A requirement that several components could answer adds nothing: it is judged afterwards, over what is there. So
/// the order of the walk cannot matter.
pub(crate) fn roster<'a>(model: &'a Model, declared: &Declared<'a>, node: &'a Node) -> Roster<'a> {
    let mut roster = Roster::new();
    let mut reached: Vec<&Component> = Vec::new();
    for component in node
        .components
        .iter()
        .filter_map(|name| model.component(name.as_str()))
    {
        let presence = Presence::Assigned(node.assigned_at(&component.name).unwrap_or(&node.place));
        roster.insert(&component.name, Present { component, presence });
        reached.push(component);
    }
    while let Some(consumer) = reached.pop() {
        for (provision, requirement) in &consumer.needs {
            let may_answer =
                |offer: &&(&Component, &Provision)| offer.1.may_answer(&offer.0.name, &consumer.name);
            let mut providers = declared.providers(provision).iter().filter(may_answer);
            let (Some((component, offered)), None) = (providers.next(), providers.next()) else {
                continue;
            };
            if offered.scope == Scope::Mesh || roster.contains_key(&component.name) {
                continue;
            }
            let presence = Presence::Added {
                consumer: &consumer.name,
                requirement,
            };
            roster.insert(&component.name, Present { component, presence });
            reached.push(component);
        }
    }
    roster
}

impl Offer<'_> {
    pub(crate) fn is_assigned(&self) -> bool {
        match self.presence {
            Presence::Assigned(_) => true,
            Presence::Added { .. } => false,
        }
    }

    pub(crate) fn running(&self) -> Running {
        Running {
            node: self.node.name.clone(),
            component: self.component.name.clone(),
        }
    }
}
