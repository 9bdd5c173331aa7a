//! What changes between two resolutions: who answers whom, which credentials are new, which files are written, and who
//! stops working when a node leaves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use crate::names::ProvisionName;
use crate::node_plan::{End, GrantKind, WrittenFile};
use crate::resolution::{Resolution, Running};

/// What is other in the new resolution. Empty where nothing is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Difference {
    /// Nodes that are new.
    pub nodes_added: Vec<String>,
    /// Nodes that are gone.
    pub nodes_removed: Vec<String>,
    /// Requirements with another answer.
    pub moves: Vec<Move>,
    /// Credentials to make or to discard.
    pub grants: Vec<GrantChange>,
    /// Files that tell components about each other.
    pub files: Vec<FileChange>,
    /// Nodes whose plan is another, the new ones too, for whatever reason: all that is deployed again.
    pub plans: Vec<String>,
}

/// A requirement with another answer. Nobody before: it is new. Nobody after: it is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Move {
    /// Who requires.
    pub consumer: End,
    /// What.
    pub provision: String,
    /// Who answered.
    pub from: Vec<End>,
    /// Who answers.
    pub to: Vec<End>,
}

/// A credential that comes or goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantChange {
    /// It is made.
    Made {
        /// Its name.
        grant: String,
    },
    /// It is discarded, on both of its ends.
    Discarded {
        /// Its name.
        grant: String,
    },
    /// Its consumer has another provider, and gets a new one.
    Rotated {
        /// Its name before, to be discarded.
        from: String,
        /// Its name now, to be made.
        to: String,
    },
}

/// A file that comes, goes, or says something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// The node.
    pub node: String,
    /// Absolute path.
    pub path: String,
    /// What becomes of it.
    pub change: Change,
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It says something else.
    Changed,
}

/// A component that stops working.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Stop {
    /// How many steps from the node that leaves: 1 takes from it.
    pub step: usize,
    /// What stops.
    pub consumer: End,
    /// What it is then without.
    pub provision: String,
    /// Who answered that.
    pub provider: End,
}

/// What is other in `new`.
pub fn difference(old: &Resolution, new: &Resolution) -> Difference {
    let (before, after) = (old.plans(&BTreeMap::new()), new.plans(&BTreeMap::new()));
    let changed = |(name, plan): &(&String, &_)| before.get(*name) != Some(plan);
    Difference {
        nodes_added: after
            .keys()
            .filter(|name| !before.contains_key(*name))
            .cloned()
            .collect(),
        nodes_removed: before
            .keys()
            .filter(|name| !after.contains_key(*name))
            .cloned()
            .collect(),
        moves: moves(old, new),
        grants: grants(old, new),
        files: files(old, new),
        plans: after
            .iter()
            .filter(changed)
            .map(|(name, _)| name.clone())
            .collect(),
    }
}

/// Every component that stops working when `node` leaves: those that take from it, and those that take from them.
/// Sorted by step, then by consumer. What runs on the node itself is not listed.
pub fn stops(resolution: &Resolution, node: &str) -> Vec<Stop> {
    let mut consumers: BTreeMap<&Running, Vec<(&Running, &ProvisionName)>> = BTreeMap::new();
    let mut leaving = BTreeSet::new();
    for answer in resolution.answers() {
        // Of several answers, each is enough.
        if let [provider] = answer.providers.as_slice() {
            consumers
                .entry(provider)
                .or_default()
                .push((&answer.consumer, &answer.provision));
            if provider.node.as_str() == node {
                leaving.insert(provider);
            }
        }
    }
    let mut stopped: BTreeSet<&Running> = BTreeSet::new();
    let mut reached: VecDeque<(usize, &Running)> =
        leaving.into_iter().map(|provider| (1, provider)).collect();
    let mut stops = Vec::new();
    while let Some((step, provider)) = reached.pop_front() {
        for (consumer, provision) in consumers.get(provider).into_iter().flatten() {
            if consumer.node.as_str() == node {
                continue;
            }
            stops.push(Stop {
                step,
                consumer: end(consumer),
                provision: provision.to_string(),
                provider: end(provider),
            });
            if stopped.insert(consumer) {
                reached.push_back((step + 1, consumer));
            }
        }
    }
    stops.sort();
    stops
}

fn end(running: &Running) -> End {
    End::new(&running.node, &running.component)
}

fn moves(old: &Resolution, new: &Resolution) -> Vec<Move> {
    let answers = |resolution: &Resolution| -> BTreeMap<(End, String), Vec<End>> {
        let answers = resolution.answers().iter();
        answers
            .map(|answer| {
                let key = (end(&answer.consumer), answer.provision.to_string());
                (key, answer.providers.iter().map(end).collect())
            })
            .collect()
    };
    let (mut before, after) = (answers(old), answers(new));
    let mut moves = Vec::new();
    for ((consumer, provision), to) in after {
        let key = (consumer, provision);
        let from = before.remove(&key);
        if from.as_ref() != Some(&to) {
            moves.push(Move {
                consumer: key.0,
                provision: key.1,
                from: from.unwrap_or_default(),
                to,
            });
        }
    }
    moves.extend(before.into_iter().map(|((consumer, provision), from)| Move {
        consumer,
        provision,
        from,
        to: Vec::new(),
    }));
    moves.sort_by(|a, b| (&a.consumer, &a.provision).cmp(&(&b.consumer, &b.provision)));
    moves
}

/// What a grant is for, whoever answers: a credential of one consumer for one provision; the grant itself otherwise.
type Purpose = (String, Option<(End, String)>);

fn grants(old: &Resolution, new: &Resolution) -> Vec<GrantChange> {
    let purposes = |resolution: &Resolution| -> BTreeMap<Purpose, String> {
        let grants = resolution.grants().into_iter();
        grants
            .map(|grant| {
                let purpose = match grant.kind {
                    GrantKind::Role(login) | GrantKind::AccessKey(login) => {
                        (String::new(), Some((login.consumer, login.provision)))
                    }
                    GrantKind::Certificate { .. } | GrantKind::BackendUsers => (grant.name.clone(), None),
                };
                (purpose, grant.name)
            })
            .collect()
    };
    let (mut before, after) = (purposes(old), purposes(new));
    let mut changes = Vec::new();
    for (purpose, to) in after {
        match before.remove(&purpose) {
            Some(from) if from == to => {}
            Some(from) => changes.push(GrantChange::Rotated { from, to }),
            None => changes.push(GrantChange::Made { grant: to }),
        }
    }
    changes.extend(before.into_values().map(|grant| GrantChange::Discarded { grant }));
    changes
}

fn files(old: &Resolution, new: &Resolution) -> Vec<FileChange> {
    let files = |resolution: &Resolution| -> BTreeMap<(String, String), WrittenFile> {
        let plans = resolution.plans(&BTreeMap::new()).into_values();
        let of_plan = |plan: crate::NodePlan| {
            let name = plan.name;
            plan.files
                .into_iter()
                .map(move |file| ((name.clone(), file.path.clone()), file))
        };
        plans.flat_map(of_plan).collect()
    };
    let (before, after) = (files(old), files(new));
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let change = |key: &&(String, String)| match (before.get(*key), after.get(*key)) {
        (None, Some(_)) => Some(Change::Added),
        (Some(_), None) => Some(Change::Removed),
        (Some(was), Some(is)) if was != is => Some(Change::Changed),
        (Some(_) | None, Some(_) | None) => None,
    };
    let changes = paths.iter().filter_map(|key| {
        let (node, path) = (*key).clone();
        change(key).map(|change| FileChange { node, path, change })
    });
    changes.collect()
}

#[cfg(test)]
mod tests;
