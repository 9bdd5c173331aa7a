//! Why a requirement is not answered, told with every candidate and what to do.
//!
//! A refusal's first place is the requirement; the others say, of each candidate, why it is there or why it is none.

use super::choice::{Judge, Reach, Standing};
use super::mesh::{Mesh, Need};
use super::walk::{Offer, Presence};
use crate::diagnostic::{Diagnostic, code};
use crate::fleet::Group;
use crate::names::{ComponentName, NodeName};
use crate::near::{enumerate, nearest};
use crate::pins::Pin;
use crate::resources::registry::Resource;
use crate::routing::{Override, Provided};

/// A refusal names this many candidates and counts the rest, so that a fleet in which everybody offers something to
/// everybody cannot fill the memory with its refusals.
pub(crate) const NAMED: usize = 100;

/// Why a requirement is not answered.
pub(crate) enum Refusal<'a> {
    /// Nothing provides it where it is looked for. Where it is to run is not for the resolver to decide.
    Nobody {
        at: Where<'a>,
        assignable: Vec<&'a ComponentName>,
    },
    /// A contract resource that the group's deployment has not (RF FR-009).
    Unprovided {
        resource: Resource,
        group: &'a Group,
        provided: Provided,
        assignable: Vec<&'a ComponentName>,
    },
    /// More than one provides it (PR-03).
    Ambiguous { offers: Vec<Offer<'a>> },
    /// The one that provides it cannot be reached (PR-20).
    NoSharedNetwork { offer: Offer<'a> },
    /// The pin names a provider that does not provide it (PR-24).
    PinNotAProvider {
        pin: &'a Pin,
        /// Who does on the pin's node.
        there: Vec<Offer<'a>>,
        /// Who does anywhere.
        elsewhere: Vec<Offer<'a>>,
    },
    /// The pin names the consumer itself, which may not answer itself.
    PinAtItself { pin: &'a Pin },
    /// The pin names another node for what is answered on the host.
    PinOffHost { pin: &'a Pin },
    /// The fleet's file and the pin choose differently.
    RowAgainstPin { pin: &'a Pin, row: &'a Override },
}

/// Where nobody is.
#[derive(Clone, Copy)]
pub(crate) enum Where<'a> {
    Host,
    Reach(Reach<'a>),
}

impl<'a> Refusal<'a> {
    /// Every refusal has the requirement as its first place, and the standing of other offers after its own places.
    pub(crate) fn diagnostic(&self, mesh: &Mesh<'a>, need: &Need<'a>) -> Diagnostic {
        let requires = requires(need);
        let (code, message, help) = match self {
            Refusal::Nobody { at, assignable } => {
                let (who, to) = at.words(need);
                (
                    code::NO_PROVIDER,
                    format!("{requires}, and {who} provides it"),
                    assign(assignable, &to),
                )
            }
            Refusal::Unprovided {
                resource,
                group,
                provided,
                assignable,
            } => unprovided(need, *resource, group, *provided, assignable),
            Refusal::Ambiguous { offers } => (
                code::AMBIGUOUS_PROVIDER,
                format!("{requires}, and {} it", all_provide(offers)),
                format!("choose one: {}", alternatives(need, offers)),
            ),
            Refusal::NoSharedNetwork { offer } => (
                code::NO_SHARED_NETWORK,
                format!(
                    "{requires}, which `{}` provides, and the two nodes share no network",
                    offer.running()
                ),
                format!(
                    "give `{}` and `{}` an address in one network, in the `networks` of both",
                    need.node.name, offer.node.name
                ),
            ),
            Refusal::PinNotAProvider {
                pin,
                there,
                elsewhere,
            } => (
                code::PIN_NOT_A_PROVIDER,
                format!(
                    "{requires}, which is pinned to {}, and that does not provide it",
                    target(pin)
                ),
                repin(need, pin, there, elsewhere),
            ),
            Refusal::PinAtItself { pin } => (
                code::PIN_NOT_A_PROVIDER,
                format!(
                    "{requires}, which is pinned to {}: the pin is for every component of the node, and a component \
                     does not answer itself",
                    target(pin)
                ),
                format!(
                    "pin `{}` on `{}` to another provider, or move one of the components to another node",
                    need.provision, need.node.name
                ),
            ),
            Refusal::PinOffHost { pin } => (
                code::PIN_NOT_A_PROVIDER,
                format!("{requires} on its host, and it is pinned to {}", target(pin)),
                format!(
                    "pin it to a component of `{0}`, or run `provisor unpin {0} {1}`",
                    need.node.name, need.provision
                ),
            ),
            Refusal::RowAgainstPin { pin, .. } => (
                code::ROW_AGAINST_PIN,
                format!(
                    "{requires}, which is pinned to {}, and the routing row leads elsewhere",
                    target(pin)
                ),
                format!(
                    "change the row, or run `provisor unpin {} {}`",
                    need.node.name, need.provision
                ),
            ),
        };
        let refusal = Diagnostic::error(code, message, help).at(need.place, "required here");
        let refusal = match mesh.is_assigned(need) {
            true => refusal,
            false => presence(mesh, &need.node.name, &need.component.name, refusal),
        };
        self.places(mesh, need, refusal)
    }

    fn places(&self, mesh: &Mesh<'a>, need: &Need<'a>, refusal: Diagnostic) -> Diagnostic {
        match self {
            Refusal::Ambiguous { offers } => {
                let refusal = offers.iter().take(NAMED).fold(refusal, |refusal, offer| {
                    presence(mesh, &offer.node.name, &offer.component.name, refusal)
                });
                others(mesh, need, refusal)
            }
            Refusal::NoSharedNetwork { offer } => others(
                mesh,
                need,
                refusal.at(
                    &offer.provision.place,
                    format!("provided by `{}`", offer.running()),
                ),
            ),
            Refusal::Nobody { .. } | Refusal::Unprovided { .. } => others(mesh, need, refusal),
            Refusal::PinNotAProvider { pin, .. }
            | Refusal::PinAtItself { pin }
            | Refusal::PinOffHost { pin } => refusal.at(&pin.place, "pinned here"),
            Refusal::RowAgainstPin { pin, row } => {
                refusal.at(&pin.place, "pinned here").at(&row.place, "the row")
            }
        }
    }
}

/// `` `app/website` requires `route` ``
pub(crate) fn requires(need: &Need<'_>) -> String {
    format!(
        "`{}/{}` requires `{}`",
        need.node.name, need.component.name, need.provision
    )
}

/// Why a component is on its node, step by step back to what is assigned there.
fn presence(mesh: &Mesh<'_>, node: &NodeName, component: &ComponentName, refusal: Diagnostic) -> Diagnostic {
    let chain = mesh.chain(node, component);
    chain.iter().take(NAMED).fold(refusal, |refusal, present| {
        let (place, why) = present.presence.told();
        refusal.at(place, format!("`{node}/{}` {why}", present.component.name))
    })
}

/// Why each offer that is no candidate is none.
fn others<'a>(mesh: &Mesh<'a>, need: &Need<'a>, refusal: Diagnostic) -> Diagnostic {
    let judge = Judge::of(mesh, need);
    let others = mesh.offers(need.provision).iter().filter_map(|offer| {
        let why = judge.standing(offer).why_not()?;
        Some((offer, why))
    });
    others.take(NAMED).fold(refusal, |refusal, (offer, why)| {
        let (place, _) = offer.presence.told();
        refusal.at(place, format!("`{}` is no candidate: {why}", offer.running()))
    })
}

fn unprovided(
    need: &Need<'_>,
    resource: Resource,
    group: &Group,
    provided: Provided,
    assignable: &[&ComponentName],
) -> (&'static str, String, String) {
    let requires = requires(need);
    match provided {
        Provided::By(_) | Provided::Not => (
            code::UNPROVIDED,
            format!(
                "{requires}, so that the node `{}` consumes the resource `{resource}`, which the deployment of the \
                 group `{}` does not provide",
                need.node.name, group.name
            ),
            hosting(
                resource,
                group,
                assign(assignable, &format!("a node of `{}`", group.name)),
            ),
        ),
        Provided::NoAnswer => (
            code::UNPROVIDED,
            format!(
                "{requires}, so that the node `{}` consumes the contract resource `{resource}`, and the provider table \
                 has no answer for it",
                need.node.name
            ),
            "this is a fault in the program's provider table: report it, with this message".to_owned(),
        ),
    }
}

fn hosting(resource: Resource, group: &Group, assign: String) -> String {
    let crosses = crate::routing::table::routes(resource).contains(&crate::routing::Route::CrossGroup);
    match (crosses, &group.hosting_provider) {
        (true, None) => format!("{assign}; or name the group's `hosting_provider`"),
        (true, Some(_)) | (false, _) => assign,
    }
}

fn assign(assignable: &[&ComponentName], to: &str) -> String {
    let names = enumerate(assignable.iter().map(|name| name.as_str()));
    match assignable {
        [] => "add it to the `provides` of another component: a component does not answer itself".to_owned(),
        [_] => format!("assign {names} to {to}"),
        [_, _, ..] => format!("assign one of {names} to {to}"),
    }
}

fn all_provide(offers: &[Offer<'_>]) -> String {
    let names: Vec<_> = offers
        .iter()
        .take(NAMED)
        .map(|offer| format!("`{}`", offer.running()))
        .collect();
    match (names.as_slice(), offers.len() - names.len()) {
        ([one, other], 0) => format!("both {one} and {other} provide"),
        (names, 0) => format!("all of {} provide", names.join(", ")),
        (names, more) => format!("all of {} and {more} more provide", names.join(", ")),
    }
}

/// The command that chooses each of them.
fn alternatives(need: &Need<'_>, offers: &[Offer<'_>]) -> String {
    let commands: Vec<_> = offers
        .iter()
        .take(NAMED)
        .map(|offer| {
            format!(
                "`provisor pin {} {} {} {}`",
                need.node.name, need.provision, offer.node.name, offer.component.name
            )
        })
        .collect();
    commands.join(" or ")
}

/// `` `proxy/caddy` ``, or `` the node `proxy` ``
fn target(pin: &Pin) -> String {
    match &pin.component {
        Some(component) => format!("`{}/{component}`", pin.from),
        None => format!("the node `{}`", pin.from),
    }
}

fn repin(need: &Need<'_>, pin: &Pin, there: &[Offer<'_>], elsewhere: &[Offer<'_>]) -> String {
    let unpin = format!("run `provisor unpin {} {}`", need.node.name, need.provision);
    let near = pin.component.as_ref().and_then(|component| {
        let names = there.iter().map(|offer| offer.component.name.as_str());
        nearest(component.as_str(), names)
    });
    let meant = there
        .iter()
        .find(|offer| Some(offer.component.name.as_str()) == near);
    match (meant, elsewhere) {
        (Some(meant), _) => format!(
            "if `{}` is meant: {}",
            meant.running(),
            alternatives(need, &[*meant])
        ),
        (None, []) => format!("nothing provides it: assign a component that does, or {unpin}"),
        (None, offers) => format!("pin what provides it: {}; or {unpin}", alternatives(need, offers)),
    }
}

impl Where<'_> {
    /// Who does not provide it, and where it could be assigned.
    fn words(self, need: &Need<'_>) -> (String, String) {
        match self {
            Where::Host => (
                "no component of the node".to_owned(),
                format!("the node `{}`", need.node.name),
            ),
            Where::Reach(Reach::Fleet | Reach::Outside) => (
                "no node has a component that".to_owned(),
                "the node where it is to run".to_owned(),
            ),
            Where::Reach(Reach::Own(group) | Reach::Hosting(group)) => (
                format!("no node of the group `{group}` has a component that"),
                format!("a node of `{group}`"),
            ),
            Where::Reach(Reach::OwnAndHosting(own, hosting)) => (
                format!("no node of the groups `{own}` and `{hosting}` has a component that"),
                format!("a node of `{own}` or `{hosting}`"),
            ),
        }
    }
}

impl Standing<'_> {
    /// Why it is no candidate, if it is none.
    pub(crate) fn why_not(self) -> Option<String> {
        match self {
            Standing::Candidate => None,
            Standing::Itself => Some("a component does not answer itself".to_owned()),
            Standing::OnAnotherHost => Some("it is for components of its own node".to_owned()),
            Standing::NotPinned(pin) => Some(format!("the pin names {}", target(pin))),
            Standing::OutOfReach(reach) => Some(format!("the route leads to {}", reach.words())),
            Standing::NotTheRows(row) => Some(format!("the routing row names `{row}`")),
        }
    }
}

impl Reach<'_> {
    /// Where it leads.
    pub(crate) fn words(self) -> String {
        match self {
            Reach::Fleet => "the whole fleet".to_owned(),
            Reach::Outside => "a service outside the fleet".to_owned(),
            Reach::Own(group) | Reach::Hosting(group) => format!("the nodes of `{group}`"),
            Reach::OwnAndHosting(own, hosting) => format!("the nodes of `{own}` and `{hosting}`"),
        }
    }
}

impl<'a> Presence<'a> {
    /// Why it is there, and where that is written.
    pub(crate) fn told(self) -> (&'a crate::diagnostic::Place, String) {
        match self {
            Presence::Assigned(place) => (place, "is assigned here".to_owned()),
            Presence::Added {
                consumer,
                requirement,
            } => (
                requirement,
                format!("is there because `{consumer}` requires this"),
            ),
        }
    }
}
