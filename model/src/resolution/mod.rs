//! Who answers whom, and what becomes of each node: the third stage.
//!
//! Two passes. The first says which components each node has: those assigned to it, and those that a requirement on
//! the host itself adds. The second answers every requirement from that. Nothing is declared from the first pass, and
//! it looks at one node at a time, so that no data can make it ask itself (PR-21, PR-25).

pub(crate) mod choice;
pub(crate) mod mesh;
mod plans;
pub(crate) mod refusal;
mod unused;
pub(crate) mod walk;

use std::collections::BTreeMap;

use self::choice::Choice;
use self::mesh::{Mesh, Need};
use self::walk::Offer;
use crate::diagnostic::{Diagnostic, Report};
use crate::fleet::Model;
use crate::names::{ComponentName, NodeName, ProvisionName};
use crate::node_plan::{Grant, NodePlan};

/// A fleet in which every requirement and request has its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// With generation 0.
    plans: BTreeMap<NodeName, NodePlan>,
    answers: Vec<Answer>,
    warnings: Vec<Diagnostic>,
}

/// A component on a node: a provider or a consumer is always both (PR-01).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Running {
    /// The node.
    pub node: NodeName,
    /// The component.
    pub component: ComponentName,
}

/// A requirement and who answers it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answer {
    /// Who requires.
    pub consumer: Running,
    /// What.
    pub provision: ProvisionName,
    /// Who answers: one; several only for a host's plain capability, where it is no choice (PR-04); none where a
    /// resource comes from outside the fleet or is always there.
    pub providers: Vec<Running>,
}

/// A requirement and the offers that answer it.
pub(crate) struct Link<'a> {
    pub(crate) need: Need<'a>,
    pub(crate) offers: Vec<Offer<'a>>,
}

/// Answers every requirement and request of a fleet.
///
/// # Errors
///
/// All that cannot be answered, sorted by file and place. The outcome does not depend on the order in which anything
/// is declared.
pub fn resolve(model: &Model) -> Result<Resolution, Vec<Diagnostic>> {
    let mut report = Report::default();
    let mesh = Mesh::of(model);
    let links = links(&mesh, &mut report);
    unused::pins(&mesh, &links, &mut report);
    let plans = plans::plans(&mesh, &links, &mut report);
    let (errors, warnings) = report.sorted();
    if errors.is_empty() {
        Ok(Resolution {
            plans,
            answers: links.iter().map(Link::answer).collect(),
            warnings,
        })
    } else {
        Err(errors)
    }
}

/// Why the requirements of `provision` on `node` are refused, if they are; empty where each is answered or there is
/// none. The rest of the fleet need not resolve.
pub fn refusals(model: &Model, node: &str, provision: &str) -> Vec<Diagnostic> {
    let mesh = Mesh::of(model);
    let Some(node) = model.node(node) else {
        return Vec::new();
    };
    let refusal = |need: Need<'_>| {
        let refusal = choice::choose(&mesh, &need).err()?;
        Some(refusal.diagnostic(&mesh, &need))
    };
    mesh.needs_of(node)
        .filter(|need| need.provision.as_str() == provision)
        .filter_map(refusal)
        .collect()
}

/// The second pass: every need with what answers it; refusals go to the report.
fn links<'a>(mesh: &Mesh<'a>, report: &mut Report) -> Vec<Link<'a>> {
    let mut links = Vec::new();
    for need in mesh.needs() {
        match choice::choose(mesh, &need) {
            Ok(Choice::Offers { offers, .. }) => links.push(Link { need, offers }),
            Ok(Choice::Elsewhere(_)) => links.push(Link {
                need,
                offers: Vec::new(),
            }),
            Err(refusal) => report.add(refusal.diagnostic(mesh, &need)),
        }
    }
    links
}

impl Resolution {
    /// Every requirement with its answer, sorted by consumer, then by provision.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// What to look at all the same, sorted by file and place: pins that decide nothing.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Every grant of the fleet once, sorted by name; a consumer's credential with the files of its own node. Generation
    /// 0 says that it is not made yet.
    pub fn grants(&self) -> Vec<Grant> {
        let mut grants: BTreeMap<&str, &Grant> = BTreeMap::new();
        for (node, plan) in &self.plans {
            for grant in &plan.grants {
                let own = grant.name.split('/').next() == Some(node.as_str());
                if own || !grants.contains_key(grant.name.as_str()) {
                    grants.insert(&grant.name, grant);
                }
            }
        }
        grants.into_values().cloned().collect()
    }

    /// The plan of each node by its name, with each grant's generation by the grant's name (0 where it is absent).
    pub fn plans(&self, generations: &BTreeMap<String, u64>) -> BTreeMap<String, NodePlan> {
        let with_generations = |plan: &NodePlan| {
            let mut plan = plan.clone();
            for grant in &mut plan.grants {
                grant.generation = generations.get(&grant.name).copied().unwrap_or(0);
            }
            (plan.name.clone(), plan)
        };
        self.plans.values().map(with_generations).collect()
    }
}

impl<'a> Link<'a> {
    /// The one provider, where it is on another machine.
    pub(crate) fn answer_from_elsewhere(&self) -> Option<&Offer<'a>> {
        match self.offers.as_slice() {
            [offer] if offer.node.name != self.need.node.name => Some(offer),
            _ => None,
        }
    }

    fn answer(&self) -> Answer {
        Answer {
            consumer: Running {
                node: self.need.node.name.clone(),
                component: self.need.component.name.clone(),
            },
            provision: self.need.provision.clone(),
            providers: self.offers.iter().map(Offer::running).collect(),
        }
    }
}

impl std::fmt::Display for Running {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.node, self.component)
    }
}

#[cfg(test)]
mod tests;
