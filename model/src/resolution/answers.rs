//! The second pass: every requirement of every component on every node has its own answer (PR-10).

use super::refusal::Refusal;
use super::walk::{Offer, Rosters, declared};
use super::{Answer, Running};
use crate::diagnostic::{Place, Report};
use crate::fleet::component::{Component, Scope};
use crate::fleet::{Model, Node};
use crate::names::{ComponentName, ProvisionName};

/// A requirement of one component on one node.
pub(super) struct Need<'a> {
    pub(super) node: &'a Node,
    pub(super) component: &'a ComponentName,
    pub(super) provision: &'a ProvisionName,
    pub(super) place: &'a Place,
}

/// The answers, by consumer, then by provision; refusals go to the report.
pub(super) fn answers(model: &Model, rosters: &Rosters<'_>, report: &mut Report) -> Vec<Answer> {
    let mut answers = Vec::new();
    for node in model.nodes() {
        for component in rosters.components(model, &node.name) {
            for (provision, place) in &component.requires {
                let need = Need {
                    node,
                    component: &component.name,
                    provision,
                    place,
                };
                match answer(model, rosters, &need) {
                    Ok(offers) => answers.push(Answer {
                        consumer: Running {
                            node: node.name.clone(),
                            component: component.name.clone(),
                        },
                        provision: provision.clone(),
                        providers: offers.iter().map(Offer::running).collect(),
                    }),
                    Err(refusal) => report.add(refusal.diagnostic(&need)),
                }
            }
        }
    }
    answers
}

fn answer<'a>(
    model: &'a Model,
    rosters: &Rosters<'a>,
    need: &Need<'a>,
) -> Result<Vec<Offer<'a>>, Refusal<'a>> {
    // One name has one scope; without any provider it is no matter which.
    match declared(model, need.provision)
        .next()
        .map(|(_, provision)| provision.scope)
    {
        Some(Scope::Host) => on_host(model, rosters, need),
        Some(Scope::Mesh) | None => over_mesh(model, rosters, need),
    }
}

/// On the node itself: by what is assigned there, else by what the walk added. Several are no choice where none
/// serves anything, and are refused otherwise.
fn on_host<'a>(
    model: &'a Model,
    rosters: &Rosters<'a>,
    need: &Need<'a>,
) -> Result<Vec<Offer<'a>>, Refusal<'a>> {
    let mut offers = rosters.offers_on(model, &need.node.name, need.provision);
    offers.retain(|offer| offer.provision.may_answer(offer.component, need.component));
    if offers.iter().any(Offer::is_assigned) {
        offers.retain(Offer::is_assigned);
    }
    let plain = offers.iter().all(|offer| offer.provision.is_plain());
    match offers.as_slice() {
        [] => Err(Refusal::NobodyOnHost {
            assignable: assignable(model, need),
        }),
        [_] => Ok(offers),
        [_, ..] if plain => Ok(offers),
        [_, ..] => Err(Refusal::Ambiguous { offers }),
    }
}

/// Anywhere in the fleet, by the one that is there (PR-23).
fn over_mesh<'a>(
    model: &'a Model,
    rosters: &Rosters<'a>,
    need: &Need<'a>,
) -> Result<Vec<Offer<'a>>, Refusal<'a>> {
    let mut offers = rosters.offers(model, need.provision);
    offers.retain(|offer| !offer.is_by(need));
    match offers.as_slice() {
        [] => Err(Refusal::NobodyInFleet {
            assignable: assignable(model, need),
        }),
        [offer] if reachable(model, need.node, offer) => Ok(offers),
        [offer] => Err(Refusal::NoSharedNetwork { offer: *offer }),
        [_, _, ..] => Err(Refusal::Ambiguous { offers }),
    }
}

/// Components that would answer the need if they were assigned.
fn assignable<'a>(model: &'a Model, need: &Need<'_>) -> Vec<&'a ComponentName> {
    let may_answer = |(component, _): &(&'a Component, _)| component.name != *need.component;
    declared(model, need.provision)
        .filter(may_answer)
        .map(|(component, _)| &component.name)
        .collect()
}

fn reachable(model: &Model, consumer: &Node, offer: &Offer<'_>) -> bool {
    let Some(provider) = model.node(offer.node.as_str()) else {
        return false;
    };
    let shared = consumer
        .networks
        .keys()
        .any(|network| provider.networks.contains_key(network));
    consumer.name == provider.name || shared
}

impl Offer<'_> {
    pub(super) fn running(&self) -> Running {
        Running {
            node: self.node.clone(),
            component: self.component.clone(),
        }
    }

    fn is_by(&self, need: &Need<'_>) -> bool {
        *self.node == need.node.name && self.component == need.component
    }
}
