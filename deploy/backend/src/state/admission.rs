//! Whether one state file may replace another.

use super::{Identity, Resources, Summary};

/// How the bytes that are stored compare with those that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredBytes {
    /// They are the same.
    Same,
    /// They differ.
    Different,
}

/// What happens with a state file that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It becomes the state.
    Store,
    /// It is the state already: a client repeats a write whose answer it lost.
    AlreadyStored,
    /// It must not become the state.
    Refuse(Refusal),
}

/// Decides about `incoming` where `current` is stored.
///
/// A lineage that differs may replace only a state without resources: that is what a destroyed fleet leaves, and what
/// a migration may fill. Where an envelope hides lineage or serial there is nothing to compare, and the lock is the
/// only guard.
pub fn admit(current: &Summary, bytes: StoredBytes, incoming: &Summary) -> Admission {
    if bytes == StoredBytes::Same {
        return Admission::AlreadyStored;
    }
    let (Some(from), Some(to)) = (&current.identity, &incoming.identity) else {
        return Admission::Store;
    };
    if from.lineage != to.lineage {
        return match current.resources {
            Resources::Count(0) => Admission::Store,
            Resources::Count(_) | Resources::Sealed => Admission::Refuse(Refusal::OtherLineage {
                current: from.clone(),
                incoming: to.clone(),
            }),
        };
    }
    if to.serial > from.serial {
        Admission::Store
    } else if to.serial == from.serial {
        Admission::Refuse(Refusal::SameSerial { serial: to.serial })
    } else {
        Admission::Refuse(Refusal::OldSerial {
            current: from.serial,
            incoming: to.serial,
        })
    }
}

/// Why a state file must not replace the one that is stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is older than the stored one.
    #[error(
        "serial {incoming} is older than the stored serial {current}; read the state again, or go back to an old \
         version with `provisor-backend restore`"
    )]
    OldSerial {
        /// Serial that is stored.
        current: u64,
        /// Serial that came.
        incoming: u64,
    },
    /// Another state file has its serial.
    #[error("serial {serial} is stored with other content; somebody else wrote it: read the state again")]
    SameSerial {
        /// The serial of both.
        serial: u64,
    },
    /// It belongs to another state.
    #[error(
        "lineage {} is not the stored lineage {}, which has resources; check the address, or DELETE the stored state \
         first if it is not needed",
        incoming.lineage,
        current.lineage
    )]
    OtherLineage {
        /// What is stored.
        current: Identity,
        /// What came.
        incoming: Identity,
    },
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn identity(lineage: &str, serial: u64) -> Identity {
        Identity {
            lineage: lineage.into(),
            serial,
        }
    }

    fn plain(lineage: &str, serial: u64, resources: u64) -> Summary {
        Summary {
            identity: Some(identity(lineage, serial)),
            resources: Resources::Count(resources),
        }
    }

    fn sealed(lineage: &str, serial: u64) -> Summary {
        Summary {
            identity: Some(identity(lineage, serial)),
            resources: Resources::Sealed,
        }
    }

    const HIDDEN: Summary = Summary {
        identity: None,
        resources: Resources::Sealed,
    };

    fn other_lineage() -> Admission {
        Admission::Refuse(Refusal::OtherLineage {
            current: identity("A", 4),
            incoming: identity("B", 9),
        })
    }

    #[rstest]
    #[case::newer(plain("A", 4, 1), plain("A", 5, 1), Admission::Store)]
    #[case::much_newer(plain("A", 4, 1), plain("A", 50, 0), Admission::Store)]
    #[case::same_serial(plain("A", 4, 1), plain("A", 4, 1), Admission::Refuse(Refusal::SameSerial { serial: 4 }))]
    #[case::older(
        plain("A", 4, 1),
        plain("A", 3, 1),
        Admission::Refuse(Refusal::OldSerial { current: 4, incoming: 3 })
    )]
    #[case::older_over_a_destroyed_fleet(
        plain("A", 4, 0),
        plain("A", 3, 1),
        Admission::Refuse(Refusal::OldSerial { current: 4, incoming: 3 })
    )]
    #[case::stranger_over_resources(plain("A", 4, 1), plain("B", 9, 1), other_lineage())]
    #[case::stranger_over_a_sealed_state(sealed("A", 4), plain("B", 9, 1), other_lineage())]
    #[case::stranger_over_a_destroyed_fleet(plain("A", 4, 0), plain("B", 1, 1), Admission::Store)]
    #[case::encryption_turned_on(plain("A", 4, 1), sealed("A", 5), Admission::Store)]
    #[case::sealed_and_older(
        sealed("A", 4),
        sealed("A", 3),
        Admission::Refuse(Refusal::OldSerial { current: 4, incoming: 3 })
    )]
    #[case::hidden_by_the_new_one(plain("A", 4, 1), HIDDEN, Admission::Store)]
    #[case::hidden_by_the_old_one(HIDDEN, plain("A", 1, 1), Admission::Store)]
    fn other_bytes_are_weighed(
        #[case] current: Summary,
        #[case] incoming: Summary,
        #[case] expected: Admission,
    ) {
        assert_eq!(admit(&current, StoredBytes::Different, &incoming), expected);
    }

    #[rstest]
    #[case::plain(plain("A", 4, 1))]
    #[case::hidden(HIDDEN)]
    fn the_same_bytes_again_change_nothing(#[case] state: Summary) {
        assert_eq!(admit(&state, StoredBytes::Same, &state), Admission::AlreadyStored);
    }
}
