//! Why: the tree of reasons behind an answer or a refusal.
//!
//! Both come from the resolver's own choice and from its judgement of every offer, so that what is told is what was
//! decided. A fleet need not resolve to be asked.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

use crate::diagnostic::{Diagnostic, Label};
use crate::fleet::Model;
use crate::names::ProvisionName;
use crate::near::did_you_mean;
use crate::networks;
use crate::resolution::choice::{self, Choice, Ground, Judge};
use crate::resolution::mesh::{Mesh, Need};
use crate::resolution::refusal::{NAMED, requires};
use crate::resolution::walk::Offer;

/// A statement, and the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What is so, on one line.
    pub text: String,
    /// Why; at most two levels deep.
    pub because: Vec<Reason>,
}

/// Why there is nothing to tell.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WhyError {
    /// There is no such node.
    #[error("the fleet has no node `{node}`; {help}")]
    UnknownNode {
        /// As asked.
        node: String,
        /// What to do.
        help: String,
    },
    /// No component of the node requires it.
    #[error("no component of `{node}` requires `{provision}`; {help}")]
    NotRequired {
        /// The node.
        node: String,
        /// As asked.
        provision: String,
        /// What to do.
        help: String,
    },
}

/// Why `provision` is answered, or refused, as it is on `node`: a tree for each component of the node that requires it.
///
/// # Errors
///
/// [`WhyError`] where nothing is required.
pub fn why(model: &Model, node: &str, provision: &str) -> Result<Vec<Reason>, WhyError> {
    let mesh = Mesh::of(model);
    let Some(consumer) = model.node(node) else {
        let names = model.nodes().map(|node| node.name.as_str());
        let names: Vec<_> = names.collect();
        return Err(WhyError::UnknownNode {
            node: node.to_owned(),
            help: did_you_mean(node, names, "declare one in `fleet.toml`"),
        });
    };
    let needs: Vec<_> = mesh.needs_of(consumer).collect();
    let asked = needs.iter().filter(|need| need.provision.as_str() == provision);
    let trees: Vec<_> = asked.map(|need| tree(&mesh, need)).collect();
    if trees.is_empty() {
        let mut known: Vec<_> = needs.iter().map(|need| need.provision.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        return Err(WhyError::NotRequired {
            node: node.to_owned(),
            provision: provision.to_owned(),
            help: did_you_mean(provision, known, "its components require nothing"),
        });
    }
    Ok(trees)
}

fn tree<'a>(mesh: &Mesh<'a>, need: &Need<'a>) -> Reason {
    let (text, mut because) = match choice::choose(mesh, need) {
        Ok(Choice::Offers { offers, ground }) => {
            let names: Vec<_> = offers
                .iter()
                .map(|offer| format!("`{}`", offer.running()))
                .collect();
            let text = format!("{}: {} answers", requires(need), names.join(" and "));
            (text, answered(mesh, need, &offers, ground))
        }
        Ok(Choice::Elsewhere(route)) => {
            let text = format!("{}: nobody of the fleet answers", requires(need));
            (text, vec![leaf(format!("its route is `{route}`"))])
        }
        Err(refusal) => refused(refusal.diagnostic(mesh, need)),
    };
    because.extend(others(mesh, need));
    Reason { text, because }
}

fn leaf(text: String) -> Reason {
    Reason {
        text,
        because: Vec::new(),
    }
}

fn answered<'a>(mesh: &Mesh<'a>, need: &Need<'a>, offers: &[Offer<'a>], ground: Ground<'a>) -> Vec<Reason> {
    let mut because = vec![leaf(match ground {
        Ground::Pinned(pin) => format!(
            "a pin names it: `{}.{}` in {}",
            pin.consumer, pin.provision, pin.place.file
        ),
        Ground::OnHost => match offers {
            [_] => "it is on the node itself".to_owned(),
            _ => "all are on the node itself, and none serves or grants anything: they are no choice"
                .to_owned(),
        },
        Ground::Only(reach) => format!("no other is in reach: {}", reach.words()),
    })];
    if !mesh.is_assigned(need) {
        because.push(presence(mesh, &need.node.name, &need.component.name));
    }
    for offer in offers {
        because.push(presence(mesh, &offer.node.name, &offer.component.name));
        if offer.node.name != need.node.name
            && let Some(member) = networks::shared(need.node, offer.node)
        {
            because.push(leaf(format!(
                "`{}` reaches it as `{}` ({}), by the network `{}`",
                need.node.name,
                member.host_name(),
                member.address,
                member.network
            )));
        }
    }
    because
}

/// Why a component is on its node, step by step.
fn presence(
    mesh: &Mesh<'_>,
    node: &crate::names::NodeName,
    component: &crate::names::ComponentName,
) -> Reason {
    let steps = mesh.chain(node, component);
    let told = |present: &crate::resolution::walk::Present<'_>| {
        let (place, why) = present.presence.told();
        format!("`{node}/{}` {why}: {}", present.component.name, place.file)
    };
    let mut steps = steps.iter().take(NAMED).map(told);
    Reason {
        text: steps.next().unwrap_or_default(),
        because: steps.map(leaf).collect(),
    }
}

fn refused(diagnostic: Diagnostic) -> (String, Vec<Reason>) {
    let Diagnostic {
        message,
        labels,
        help,
        ..
    } = diagnostic;
    let of_candidates = |Label { file, text, .. }: Label| leaf(format!("{text}: {file}"));
    // The first place is the requirement itself. What is no candidate is told for answers and refusals alike.
    let reasons = labels
        .into_iter()
        .skip(1)
        .filter(|label| !label.text.contains("is no candidate"))
        .map(of_candidates);
    let to_do = leaf(format!("to do: {help}"));
    (message, reasons.chain([to_do]).collect())
}

/// Why each other offer is none.
fn others<'a>(mesh: &Mesh<'a>, need: &Need<'a>) -> Vec<Reason> {
    let judge = Judge::of(mesh, need);
    let others = mesh.offers(need.provision).iter().filter_map(|offer| {
        let why = judge.standing(offer).why_not()?;
        Some(leaf(format!("`{}` is no candidate: {why}", offer.running())))
    });
    others.take(NAMED).collect()
}

/// Every provision that a component of `node` requires, sorted: what [`why`] can be asked about.
pub fn required<'a>(model: &'a Model, node: &str) -> Vec<&'a ProvisionName> {
    let Some(node) = model.node(node) else {
        return Vec::new();
    };
    let mesh = Mesh::of(model);
    let mut names: Vec<_> = mesh.needs_of(node).map(|need| need.provision).collect();
    names.sort();
    names.dedup();
    names
}

impl fmt::Display for Reason {
    /// The statement, and its reasons below it, indented.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.text)?;
        for reason in &self.because {
            for (nth, line) in reason.to_string().lines().enumerate() {
                let lead = if nth == 0 { "- " } else { "  " };
                write!(formatter, "\n  {lead}{line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
