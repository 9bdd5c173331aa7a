//! Who answers whom, and what becomes of each node: the third stage.
//!
//! Two passes. The first says which components each node has: those assigned to it, and those that a requirement on
//! the host itself adds. The second answers every requirement from that. Nothing is declared from the first pass, and
//! it looks at one node at a time, so that no data can make it ask itself (PR-21, PR-25).

mod answers;
mod refusal;
mod walk;

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Report};
use crate::fleet::Model;
use crate::names::{ComponentName, NodeName, ProvisionName};
use crate::node_plan::{Grant, NodePlan};
use crate::setup::Setup;

/// A fleet in which every requirement and request has its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// With generation 0.
    plans: BTreeMap<NodeName, NodePlan>,
    answers: Vec<Answer>,
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
    /// Who answers: one; several only for a host's plain capability, where it is no choice (PR-04).
    pub providers: Vec<Running>,
}

/// Answers every requirement and request of a fleet.
///
/// # Errors
///
/// All that cannot be answered, sorted by file and place. The outcome does not depend on the order in which anything
/// is declared.
pub fn resolve(model: &Model) -> Result<Resolution, Vec<Diagnostic>> {
    let mut report = Report::default();
    let rosters = walk::rosters(model);
    let answers = answers::answers(model, &rosters, &mut report);
    let mut setup = Setup::new(model, &mut report);
    let mut plans = BTreeMap::new();
    for node in model.nodes() {
        let components = rosters.components(model, &node.name);
        let made = setup.node(node, &components);
        let mut grants: Vec<Grant> = made.claims.iter().map(|claim| claim.on(&node.name)).collect();
        grants.sort();
        let plan = NodePlan {
            name: node.name.to_string(),
            group: node.group.to_string(),
            components: components
                .iter()
                .map(|component| component.name.to_string())
                .collect(),
            networks: node
                .networks
                .iter()
                .map(|(name, address)| (name.to_string(), address.to_string()))
                .collect(),
            modules: made.modules,
            grants,
            state_backend: made.state_backend,
        };
        plans.insert(node.name.clone(), plan);
    }
    let (errors, _) = report.sorted();
    if errors.is_empty() {
        Ok(Resolution { plans, answers })
    } else {
        Err(errors)
    }
}

impl Resolution {
    /// Every requirement with its answer, sorted by consumer, then by provision.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// Every grant of the fleet, sorted by name. Generation 0 says that it is not made yet.
    pub fn grants(&self) -> Vec<Grant> {
        let mut grants: Vec<_> = self
            .plans
            .values()
            .flat_map(|plan| &plan.grants)
            .cloned()
            .collect();
        grants.sort_by(|a, b| a.name.cmp(&b.name));
        grants
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

impl std::fmt::Display for Running {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.node, self.component)
    }
}

#[cfg(test)]
mod tests;
