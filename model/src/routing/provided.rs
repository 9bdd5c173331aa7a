//! Whether a group's deployment has a resource, and why.

use std::collections::BTreeSet;

use super::{Override, Route};
use crate::resources::registry::Resource;

/// What a group can draw on.
#[derive(Clone, Copy, Debug)]
pub struct Deployment<'a> {
    /// What the nodes of the group provide.
    pub roster: &'a BTreeSet<Resource>,
    /// The way to the group's hosting provider.
    pub cross_group: CrossGroup,
}

/// Whether a group has a way to a hosting provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossGroup {
    /// It names one.
    Open,
    /// It names none.
    Closed,
}

/// The answer about one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provided {
    /// The deployment has it, by this route.
    By(Route),
    /// The deployment has it not.
    Not,
    /// The question does not arise: its policy declares no consumer side.
    NoAnswer,
}

/// Whether `deployment` has `resource`. Total over the registry: a new resource is a compile error here.
pub fn provided(resource: Resource, deployment: Deployment<'_>) -> Provided {
    let on_roster = deployment.roster.contains(&resource);
    let or = |otherwise| match on_roster {
        true => Provided::By(Route::Roster),
        false => otherwise,
    };
    let cross_group = match deployment.cross_group {
        CrossGroup::Open => Provided::By(Route::CrossGroup),
        CrossGroup::Closed => Provided::Not,
    };
    match resource {
        Resource::Garage | Resource::Ssl => Provided::By(Route::Always),
        Resource::Oidc | Resource::Postgresql | Resource::Redis => or(cross_group),
        // Of the hosting provider's spire, where the group has none of its own.
        Resource::Spiffe => or(cross_group),
        Resource::Smtp => or(Provided::By(Route::External)),
        Resource::Dns | Resource::Netbox => or(Provided::By(Route::External)),
        Resource::Ldap => or(Provided::Not),
        Resource::Firewall
        | Resource::GenerateFiles
        | Resource::Network
        | Resource::NixosModule
        | Resource::Otel
        | Resource::Secrets => Provided::NoAnswer,
    }
}

/// [`provided`], with a route that the fleet's file chooses over the default one.
pub fn routed(resource: Resource, deployment: Deployment<'_>, over: Option<&Override>) -> Provided {
    match over.and_then(|over| over.route) {
        None => provided(resource, deployment),
        Some(Route::Roster) if !deployment.roster.contains(&resource) => Provided::Not,
        Some(Route::CrossGroup) if deployment.cross_group == CrossGroup::Closed => Provided::Not,
        Some(route) => Provided::By(route),
    }
}

/// Those of the `consumed` contract resources that `deployment` has not: each is an error on the node that consumes
/// it. What nobody consumes is not asked about.
pub fn unprovided(consumed: &BTreeSet<Resource>, deployment: Deployment<'_>) -> BTreeSet<Resource> {
    let missing = |resource: &Resource| match provided(*resource, deployment) {
        Provided::By(_) => false,
        Provided::Not | Provided::NoAnswer => true,
    };
    consumed
        .iter()
        .copied()
        .filter(|resource| resource.is_contract())
        .filter(missing)
        .collect()
}
