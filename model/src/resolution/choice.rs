//! The second pass: one requirement gets its answer, or is refused with every reason.

use std::borrow::Cow;

use super::mesh::{Mesh, Need};
use super::refusal::{NAMED, Refusal, Where};
use super::walk::Offer;
use crate::fleet::component::Scope;
use crate::names::{ComponentName, GroupName};
use crate::networks;
use crate::pins::Pin;
use crate::resources::registry::Resource;
use crate::routing::provided::routed;
use crate::routing::{Override, Provided, Route};

/// What answers a requirement.
pub(crate) enum Choice<'a> {
    /// One provider; several only for a host's plain capability, where it is no choice (PR-04).
    Offers {
        offers: Vec<Offer<'a>>,
        ground: Ground<'a>,
    },
    /// Nothing of the fleet: a service outside it, or what is always there.
    Elsewhere(Route),
}

/// Why these and no others.
#[derive(Clone, Copy)]
pub(crate) enum Ground<'a> {
    /// A person chose it.
    Pinned(&'a Pin),
    /// It is on the node itself.
    OnHost,
    /// No other is in reach.
    Only(Reach<'a>),
}

/// Where providers of a mesh requirement are looked for.
#[derive(Clone, Copy)]
pub(crate) enum Reach<'a> {
    /// Anywhere in the fleet.
    Fleet,
    /// The nodes of the consumer's own group.
    Own(&'a GroupName),
    /// The nodes of the consumer's own group and of its hosting provider's.
    OwnAndHosting(&'a GroupName, &'a GroupName),
    /// The nodes of the hosting provider's group.
    Hosting(&'a GroupName),
    /// A service outside the fleet.
    Outside,
}

/// Why an offer is a candidate, or none.
#[derive(Clone, Copy)]
pub(crate) enum Standing<'a> {
    /// It could answer.
    Candidate,
    /// It is the consumer.
    Itself,
    /// It is for the components of its own host.
    OnAnotherHost,
    /// A person chose another.
    NotPinned(&'a Pin),
    /// The route does not lead to its group.
    OutOfReach(Reach<'a>),
    /// The routing row names another component.
    NotTheRows(&'a ComponentName),
}

/// Decides about one need.
pub(crate) fn choose<'a>(mesh: &Mesh<'a>, need: &Need<'a>) -> Result<Choice<'a>, Refusal<'a>> {
    let pin = mesh.model.pin(&need.node.name, need.provision);
    // One name has one scope; without any provider it is looked for in the fleet.
    match (mesh.declared.scope(need.provision), pin) {
        (Some(Scope::Host), pin) => on_host(mesh, need, pin),
        (Some(Scope::Mesh) | None, Some(pin)) => pinned(mesh, need, pin),
        (Some(Scope::Mesh) | None, None) => over_mesh(mesh, need),
    }
}

/// On the node itself: by what is assigned there, else by what the walk added. Several are no choice where none
/// serves or grants anything, and are refused otherwise.
fn on_host<'a>(mesh: &Mesh<'a>, need: &Need<'a>, pin: Option<&'a Pin>) -> Result<Choice<'a>, Refusal<'a>> {
    if let Some(pin) = pin {
        return match pin.from == need.node.name {
            true => pinned(mesh, need, pin),
            false => Err(Refusal::PinOffHost { pin }),
        };
    }
    let mut offers = candidates(need, mesh.offers_on(&need.node.name, need.provision));
    if offers.iter().any(Offer::is_assigned) {
        offers.retain(Offer::is_assigned);
    }
    let plain = offers.iter().all(|offer| offer.provision.is_plain());
    let ground = Ground::OnHost;
    match offers.as_slice() {
        [] => Err(Refusal::Nobody {
            at: Where::Host,
            assignable: assignable(mesh, need),
        }),
        [_] => Ok(Choice::Offers { offers, ground }),
        [_, ..] if plain => Ok(Choice::Offers { offers, ground }),
        [_, ..] => Err(Refusal::Ambiguous { offers }),
    }
}

/// By the one that a person chose, and by no other (PR-24).
fn pinned<'a>(mesh: &Mesh<'a>, need: &Need<'a>, pin: &'a Pin) -> Result<Choice<'a>, Refusal<'a>> {
    if let Some(row) = contradiction(mesh, need, pin) {
        return Err(Refusal::RowAgainstPin { pin, row });
    }
    let there = mesh.offers_on(&pin.from, need.provision);
    let named: Vec<_> = there
        .iter()
        .filter(|offer| is_pinned(pin, offer))
        .copied()
        .collect();
    let offers = candidates(need, &named);
    match (named.as_slice(), offers.as_slice()) {
        ([], _) => Err(Refusal::PinNotAProvider {
            pin,
            there: there.to_vec(),
            elsewhere: candidates(need, mesh.offers(need.provision).iter().take(NAMED)),
        }),
        ([_, ..], []) => Err(Refusal::PinAtItself { pin }),
        (_, [offer]) => {
            within_reach(need, *offer)?;
            let ground = Ground::Pinned(pin);
            Ok(Choice::Offers { offers, ground })
        }
        // Only a pin without its component can mean two.
        (_, [_, _, ..]) => Err(Refusal::Ambiguous { offers }),
    }
}

/// Anywhere in reach, by the one that is there (PR-23).
fn over_mesh<'a>(mesh: &Mesh<'a>, need: &Need<'a>) -> Result<Choice<'a>, Refusal<'a>> {
    let way = way(mesh, need)?;
    let reach = match way {
        Way::Reach(reach) => reach,
        Way::Always => Reach::Fleet,
        Way::External => return Ok(Choice::Elsewhere(Route::External)),
    };
    let row = row_provider(mesh, need);
    let mut offers = candidates(need, reach.offers(mesh, need).iter());
    offers.retain(|offer| row.is_none_or(|row| *row == offer.component.name));
    match (offers.as_slice(), way) {
        ([], Way::Always) => Ok(Choice::Elsewhere(Route::Always)),
        ([], _) => Err(Refusal::Nobody {
            at: Where::Reach(reach),
            assignable: assignable(mesh, need),
        }),
        ([offer], _) => {
            within_reach(need, *offer)?;
            let ground = Ground::Only(reach);
            Ok(Choice::Offers { offers, ground })
        }
        ([_, _, ..], _) => Err(Refusal::Ambiguous { offers }),
    }
}

/// How a mesh requirement is answered, before anybody is looked for.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a> {
    /// By somebody there.
    Reach(Reach<'a>),
    /// By somebody of the fleet if there is anybody, and without otherwise.
    Always,
    /// By nobody of the fleet.
    External,
}

/// The route of a contract resource, as far as it leads; the whole fleet for any other provision.
pub(crate) fn way<'a>(mesh: &Mesh<'a>, need: &Need<'a>) -> Result<Way<'a>, Refusal<'a>> {
    let (Some(resource), Some(group)) = (
        Resource::contract_named(need.provision.as_str()),
        mesh.group(need.node),
    ) else {
        return Ok(Way::Reach(Reach::Fleet));
    };
    let row = mesh.model.row(group, resource);
    let provided = routed(resource, mesh.deployment(group), row);
    let crosses = crate::routing::table::routes(resource).contains(&Route::CrossGroup);
    let chosen = row.and_then(|row| row.route);
    match (provided, &group.hosting_provider) {
        (Provided::By(Route::Always), _) => Ok(Way::Always),
        (Provided::By(Route::External), _) => Ok(Way::External),
        // The group has its own, and the way to another is open all the same: two are a choice for a person. A spire
        // of its own is none, and neither is a route that the fleet's file chooses.
        (Provided::By(Route::Roster), Some(hosting))
            if crosses && chosen.is_none() && resource != Resource::Spiffe =>
        {
            Ok(Way::Reach(Reach::OwnAndHosting(&group.name, hosting)))
        }
        (Provided::By(Route::Roster), _) => Ok(Way::Reach(Reach::Own(&group.name))),
        (Provided::By(Route::CrossGroup), Some(hosting)) => Ok(Way::Reach(Reach::Hosting(hosting))),
        (Provided::By(Route::CrossGroup) | Provided::Not | Provided::NoAnswer, _) => {
            Err(Refusal::Unprovided {
                resource,
                group,
                provided,
                assignable: assignable(mesh, need),
            })
        }
    }
}

/// The component that an overridden row names.
pub(crate) fn row_provider<'a>(mesh: &Mesh<'a>, need: &Need<'a>) -> Option<&'a ComponentName> {
    let (name, _) = row(mesh, need)?.provider.as_ref()?;
    Some(name)
}

fn row<'a>(mesh: &Mesh<'a>, need: &Need<'a>) -> Option<&'a Override> {
    let resource = Resource::contract_named(need.provision.as_str())?;
    mesh.model.row(mesh.group(need.node)?, resource)
}

/// An overridden row that leads elsewhere than the pin.
fn contradiction<'a>(mesh: &Mesh<'a>, need: &Need<'a>, pin: &Pin) -> Option<&'a Override> {
    let row = row(mesh, need)?;
    let group = mesh.group(need.node)?;
    let provider_group = &mesh.model.node(pin.from.as_str())?.group;
    let other_component = row
        .provider
        .as_ref()
        .zip(pin.component.as_ref())
        .is_some_and(|((name, _), component)| name != component);
    let other_route = match row.route {
        None | Some(Route::Always) => false,
        Some(Route::Roster) => *provider_group != group.name,
        Some(Route::CrossGroup) => group.hosting_provider.as_ref() != Some(provider_group),
        Some(Route::External) => true,
    };
    (other_component || other_route).then_some(row)
}

/// What becomes of each offer of a need's provision: the choice's own questions, in their order.
pub(crate) struct Judge<'n, 'a> {
    need: &'n Need<'a>,
    pin: Option<&'a Pin>,
    reach: Reach<'a>,
    row: Option<&'a ComponentName>,
}

impl<'n, 'a> Judge<'n, 'a> {
    pub(crate) fn of(mesh: &Mesh<'a>, need: &'n Need<'a>) -> Judge<'n, 'a> {
        Judge {
            need,
            pin: mesh.model.pin(&need.node.name, need.provision),
            reach: match way(mesh, need) {
                Ok(Way::Reach(reach)) => reach,
                Ok(Way::Always) => Reach::Fleet,
                Ok(Way::External) => Reach::Outside,
                Err(_) => Reach::Own(&need.node.group),
            },
            row: row_provider(mesh, need),
        }
    }

    pub(crate) fn standing(&self, offer: &Offer<'a>) -> Standing<'a> {
        match (self.pin, self.row) {
            _ if !may_answer(self.need, offer) => Standing::Itself,
            _ if offer.provision.scope == Scope::Host && offer.node.name != self.need.node.name => {
                Standing::OnAnotherHost
            }
            (Some(pin), _) if pin.from != offer.node.name || !is_pinned(pin, offer) => {
                Standing::NotPinned(pin)
            }
            (Some(_), _) => Standing::Candidate,
            (None, _) if !self.reach.holds(&offer.node.group) => Standing::OutOfReach(self.reach),
            (None, Some(row)) if *row != offer.component.name => Standing::NotTheRows(row),
            (None, Some(_) | None) => Standing::Candidate,
        }
    }
}

fn candidates<'o, 'a: 'o>(
    need: &Need<'a>,
    offers: impl IntoIterator<Item = &'o Offer<'a>>,
) -> Vec<Offer<'a>> {
    let candidate = |offer: &&Offer<'a>| may_answer(need, offer);
    offers.into_iter().filter(candidate).copied().collect()
}

/// A component answers itself only on its host, with a plain capability.
fn may_answer(need: &Need<'_>, offer: &Offer<'_>) -> bool {
    let is_itself = offer.node.name == need.node.name && offer.component.name == need.component.name;
    !is_itself || (offer.provision.scope == Scope::Host && offer.provision.is_plain())
}

fn is_pinned(pin: &Pin, offer: &Offer<'_>) -> bool {
    pin.component
        .as_ref()
        .is_none_or(|component| *component == offer.component.name)
}

fn within_reach<'a>(need: &Need<'a>, offer: Offer<'a>) -> Result<(), Refusal<'a>> {
    let same = offer.node.name == need.node.name;
    match same || networks::shared(need.node, offer.node).is_some() {
        true => Ok(()),
        false => Err(Refusal::NoSharedNetwork { offer }),
    }
}

/// Components that would answer the need if they were assigned.
fn assignable<'a>(mesh: &Mesh<'a>, need: &Need<'a>) -> Vec<&'a ComponentName> {
    let others = |name: &&ComponentName| **name != need.component.name;
    let providers = mesh.declared.providers(need.provision).iter();
    providers
        .map(|(component, _)| &component.name)
        .filter(others)
        .collect()
}

impl<'a> Reach<'a> {
    fn offers<'m>(self, mesh: &'m Mesh<'a>, need: &Need<'a>) -> Cow<'m, [Offer<'a>]> {
        let of = |group| mesh.offers_of(group, need.provision);
        match self {
            Reach::Outside => Cow::Borrowed(&[]),
            Reach::Fleet => Cow::Borrowed(mesh.offers(need.provision)),
            Reach::Own(group) | Reach::Hosting(group) => Cow::Borrowed(of(group)),
            Reach::OwnAndHosting(own, hosting) => {
                let mut offers = [of(own), of(hosting)].concat();
                offers.sort_by(|a, b| {
                    (&a.node.name, &a.component.name).cmp(&(&b.node.name, &b.component.name))
                });
                Cow::Owned(offers)
            }
        }
    }

    fn holds(self, group: &GroupName) -> bool {
        match self {
            Reach::Fleet => true,
            Reach::Outside => false,
            Reach::Own(own) | Reach::Hosting(own) => own == group,
            Reach::OwnAndHosting(own, hosting) => own == group || hosting == group,
        }
    }
}
