//! Why a requirement is not answered, told with every candidate and what to do.

use super::answers::Need;
use super::walk::{Offer, Presence};
use crate::diagnostic::{Diagnostic, code};
use crate::names::ComponentName;
use crate::near::enumerate;

/// Why a requirement is not answered.
pub(super) enum Refusal<'a> {
    /// Nothing on the node provides it; several components could, or none but the consumer.
    NobodyOnHost { assignable: Vec<&'a ComponentName> },
    /// Nothing in the fleet provides it. Where it is to run is not for the resolver to decide.
    NobodyInFleet { assignable: Vec<&'a ComponentName> },
    /// More than one provides it (PR-03).
    Ambiguous { offers: Vec<Offer<'a>> },
    /// The one that provides it cannot be reached (PR-20).
    NoSharedNetwork { offer: Offer<'a> },
}

impl Refusal<'_> {
    pub(super) fn diagnostic(&self, need: &Need<'_>) -> Diagnostic {
        match self {
            Refusal::NobodyOnHost { assignable } => nobody_on_host(need, assignable),
            Refusal::NobodyInFleet { assignable } => nobody_in_fleet(need, assignable),
            Refusal::Ambiguous { offers } => ambiguous(need, offers),
            Refusal::NoSharedNetwork { offer } => no_shared_network(need, offer),
        }
    }
}

/// `` `app/website` requires `route` ``
fn requires(need: &Need<'_>) -> String {
    format!(
        "`{}/{}` requires `{}`",
        need.node.name, need.component, need.provision
    )
}

fn nobody_on_host(need: &Need<'_>, assignable: &[&ComponentName]) -> Diagnostic {
    let message = format!("{}, and no component of the node provides it", requires(need));
    let help = assign(assignable, &format!("the node `{}`", need.node.name));
    Diagnostic::error(code::NO_PROVIDER, message, help).at(need.place, "required here")
}

fn nobody_in_fleet(need: &Need<'_>, assignable: &[&ComponentName]) -> Diagnostic {
    let message = format!("{}, and no node has a component that provides it", requires(need));
    let help = assign(assignable, "the node where it is to run");
    Diagnostic::error(code::NO_PROVIDER, message, help).at(need.place, "required here")
}

fn assign(assignable: &[&ComponentName], to: &str) -> String {
    let names = enumerate(assignable.iter().map(|name| name.as_str()));
    match assignable {
        [] => "add it to the `provides` of another component: a component does not answer itself".to_owned(),
        [_] => format!("assign {names} to {to}"),
        [_, _, ..] => format!("assign one of {names} to {to}"),
    }
}

fn ambiguous(need: &Need<'_>, offers: &[Offer<'_>]) -> Diagnostic {
    let names: Vec<_> = offers
        .iter()
        .map(|offer| format!("`{}`", offer.running()))
        .collect();
    let candidates = match names.as_slice() {
        [one, other] => format!("both {one} and {other} provide"),
        names => format!("all of {} provide", names.join(", ")),
    };
    let message = format!("{}, and {candidates} it", requires(need));
    let help = "keep one of them: remove the others from the `components` of their nodes";
    let refusal = Diagnostic::error(code::AMBIGUOUS_PROVIDER, message, help).at(need.place, "required here");
    offers.iter().fold(refusal, |refusal, offer| {
        let running = offer.running();
        match offer.presence {
            Presence::Assigned(place) => refusal.at(place, format!("`{running}` is assigned here")),
            Presence::Added {
                consumer,
                requirement,
            } => refusal.at(
                requirement,
                format!("`{running}` is there because `{consumer}` requires this"),
            ),
        }
    })
}

fn no_shared_network(need: &Need<'_>, offer: &Offer<'_>) -> Diagnostic {
    let running = offer.running();
    let message = format!(
        "{}, which `{running}` provides, and the two nodes share no network",
        requires(need)
    );
    let help = format!(
        "give `{}` and `{}` an address in one network, in the `networks` of both",
        need.node.name, offer.node
    );
    Diagnostic::error(code::NO_SHARED_NETWORK, message, help)
        .at(need.place, "required here")
        .at(&offer.provision.place, format!("provided by `{running}`"))
}
