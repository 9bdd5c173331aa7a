//! Credentials at rest that no grant of the fleet is kept in: their values go, their numbers stay.

use std::collections::BTreeSet;
use std::path::PathBuf;

use provisor_model::node_plan::{End, Grant, Login};

use super::GrantsError;
use super::at_rest::{AtRestError, Kept, Made, Record, Shelf};
use super::ca::Authority;

/// A file at rest that nothing uses, or that nobody can tell the use of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discard {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: Unused,
    generation: Option<u64>,
}

/// Why a file at rest is discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unused {
    /// The consumer is gone, or another provider answers it.
    NotWanted {
        /// Who used it.
        consumer: End,
        /// Where.
        provider: End,
    },
    /// It does not say which component it was for.
    Unclear,
}

impl std::fmt::Display for Unused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unused::NotWanted { consumer, provider } => {
                write!(f, "{consumer} takes nothing from {provider} any more")
            }
            Unused::Unclear => f.write_str("it does not say which component it was for"),
        }
    }
}

/// The files of credentials that no grant of the fleet is kept in. Other grants stay: a certificate may be wanted again.
pub(super) fn find(shelf: &Shelf, wanted: &[Grant]) -> Result<Vec<Discard>, GrantsError> {
    let wanted: BTreeSet<PathBuf> = wanted.iter().map(|grant| shelf.path(&grant.name)).collect();
    let mut discards = Vec::new();
    for path in shelf.files()? {
        if wanted.contains(&path) || path == Authority::path(shelf) {
            continue;
        }
        let (generation, why) = match shelf.kept_in(&path) {
            Ok(Kept::Record(Record {
                generation,
                made: Made::Role(login) | Made::AccessKey(login),
                ..
            })) => {
                let Login {
                    consumer, provider, ..
                } = login;
                (Some(generation), Unused::NotWanted { consumer, provider })
            }
            Ok(Kept::Nothing | Kept::Record(_)) => continue,
            Ok(Kept::Unclear { generation }) => (Some(generation), Unused::Unclear),
            Err(AtRestError::Damaged { .. }) => (None, Unused::Unclear),
            Err(error) => return Err(error.into()),
        };
        discards.push(Discard {
            path,
            why,
            generation,
        });
    }
    Ok(discards)
}

pub(super) fn carry_out(shelf: &Shelf, discard: &Discard) -> Result<(), GrantsError> {
    let Discard { path, generation, .. } = discard;
    match generation {
        Some(generation) => Ok(shelf.store(path, &Record::discarded(*generation))?),
        None => std::fs::remove_file(path).map_err(|source| GrantsError::Discard {
            path: path.clone(),
            source,
        }),
    }
}
