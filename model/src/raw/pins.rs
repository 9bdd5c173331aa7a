//! `pins.toml` as it is written: `[NODE]`, then `PROVISION = { node = "…", component = "…" }`.

use super::spot::{Key, Keys, Sited, Spot};
use crate::names::{ComponentName, NodeName, ProvisionName};

pub(crate) const PIN: Keys = Keys {
    of: "a pin",
    all: &["node", "component"],
};

/// A choice that a person made.
pub(crate) struct RawPin {
    /// The consumer's node.
    pub(crate) consumer: Sited<NodeName>,
    pub(crate) provision: Sited<ProvisionName>,
    /// The provider's node.
    pub(crate) from: Sited<NodeName>,
    /// Absent in a pin that was made when a provider was a node.
    pub(crate) component: Option<Sited<ComponentName>>,
}

/// Reads `pins.toml`.
pub(crate) fn read(root: Spot<'_>) -> Vec<RawPin> {
    let nodes = root.entries("a table of pins by node").unwrap_or_default();
    let mut pins = Vec::new();
    for (node, spot) in nodes {
        let consumer = sited::<NodeName>(&node);
        for (provision, spot) in spot.entries("a table of pins by provision").unwrap_or_default() {
            let provision = sited::<ProvisionName>(&provision);
            let provider = provider(spot);
            if let (Some(consumer), Some(provision), Some((from, component))) =
                (consumer.clone(), provision, provider)
            {
                pins.push(RawPin {
                    consumer,
                    provision,
                    from,
                    component,
                });
            }
        }
    }
    pins
}

fn sited<T: std::str::FromStr<Err: super::spot::Refusal>>(key: &Key<'_>) -> Option<Sited<T>> {
    Some(Sited {
        value: key.name()?,
        place: key.place(),
    })
}

fn provider(spot: Spot<'_>) -> Option<(Sited<NodeName>, Option<Sited<ComponentName>>)> {
    let fields = spot.fields(&PIN)?;
    let node = fields
        .require("node", "node = \"database\"")
        .and_then(|spot| spot.name("the name of a node (a string)"));
    let component = match fields.get("component") {
        Some(spot) => Some(spot.name("the name of a component (a string)")?),
        None => None,
    };
    Some((node?, component))
}
