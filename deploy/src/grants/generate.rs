//! Whether a grant at rest is still good, and the making of one that is not.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::civil::Date;
use provisor_model::node_plan::{GrantKind, GrantPart, Login};

use super::at_rest::{Kept, Made, Record, Secret};
use super::ca::{Authority, AuthorityError};

/// A certificate with fewer days left than this is made anew by the next run.
pub const RENEWAL_DAYS: i32 = 30;

/// What is to be done with one grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is good.
    Keep {
        /// Its generation.
        generation: u64,
    },
    /// It is to be made.
    Make {
        /// The generation it then has.
        generation: u64,
        /// Why.
        reason: Reason,
    },
}

impl Decision {
    /// The generation that is, or will be.
    pub fn generation(self) -> u64 {
        match self {
            Decision::Keep { generation } | Decision::Make { generation, .. } => generation,
        }
    }
}

/// Why a grant is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is none yet.
    Absent,
    /// The one at rest is of another kind.
    OtherKind,
    /// The domain is another.
    OtherDomain,
    /// The fleet's authority is another.
    OtherAuthority,
    /// Fewer than [`RENEWAL_DAYS`] days are left.
    EndsSoon,
    /// The operator's name or password is another.
    OtherCredentials,
    /// The consumer, the provider, or what it is called there is another.
    OtherLogin,
    /// The one at rest does not say which component it was for.
    Unclear,
    /// It was discarded when nothing used it.
    Discarded,
    /// A person asked for it.
    Asked,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reason::Absent => "there is none yet",
            Reason::OtherKind => "it is of another kind now",
            Reason::OtherDomain => "its domain has changed",
            Reason::OtherAuthority => "the fleet's authority has changed",
            Reason::EndsSoon => "it ends soon",
            Reason::OtherCredentials => "the backend's name or password has changed",
            Reason::OtherLogin => "its consumer or its provider has changed",
            Reason::Unclear => "the one at rest does not say which component it was for",
            Reason::Discarded => "the one before was discarded when nothing used it",
            Reason::Asked => "a rotation was asked for",
        })
    }
}

/// Whether the operator's credentials are those of a users file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// They are, or no users file is concerned.
    Same,
    /// They are not.
    Other,
}

/// Decides about one grant. `authority` is the fingerprint of the fleet's authority, if it has one.
pub fn decide(
    kept: &Kept,
    wanted: &GrantKind,
    authority: Option<&str>,
    credentials: Credentials,
    today: Date,
) -> Decision {
    let record = match kept {
        Kept::Record(record) => record,
        Kept::Nothing => {
            return Decision::Make {
                generation: 1,
                reason: Reason::Absent,
            };
        }
        Kept::Unclear { generation } => {
            return Decision::Make {
                generation: generation + 1,
                reason: Reason::Unclear,
            };
        }
    };
    match reason(&record.made, wanted, authority, credentials, today) {
        None => Decision::Keep {
            generation: record.generation,
        },
        Some(reason) => Decision::Make {
            generation: record.generation + 1,
            reason,
        },
    }
}

fn reason(
    made: &Made,
    wanted: &GrantKind,
    authority: Option<&str>,
    credentials: Credentials,
    today: Date,
) -> Option<Reason> {
    match (made, wanted) {
        (
            Made::Certificate {
                domain,
                not_after,
                authority: signer,
            },
            GrantKind::Certificate { domain: want },
        ) => {
            if domain != want {
                Some(Reason::OtherDomain)
            } else if authority != Some(signer.as_str()) {
                Some(Reason::OtherAuthority)
            } else if (*not_after - today).get_days() < RENEWAL_DAYS {
                Some(Reason::EndsSoon)
            } else {
                None
            }
        }
        (Made::BackendUsers, GrantKind::BackendUsers) => match credentials {
            Credentials::Same => None,
            Credentials::Other => Some(Reason::OtherCredentials),
        },
        (Made::Role(made), GrantKind::Role(wanted))
        | (Made::AccessKey(made), GrantKind::AccessKey(wanted)) => {
            (made != wanted).then_some(Reason::OtherLogin)
        }
        (Made::Discarded, _) => Some(Reason::Discarded),
        (Made::Certificate { .. } | Made::BackendUsers | Made::Role(_) | Made::AccessKey(_), _) => {
            Some(Reason::OtherKind)
        }
    }
}

/// A certificate's record.
pub fn certificate(
    authority: &Authority,
    domain: &str,
    generation: u64,
    today: Date,
) -> Result<Record, AuthorityError> {
    let signed = authority.sign(domain, today)?;
    Ok(Record {
        generation,
        made: Made::Certificate {
            domain: domain.to_owned(),
            not_after: signed.not_after,
            authority: authority.fingerprint().to_owned(),
        },
        parts: BTreeMap::from([
            (GrantPart::PrivateKey, signed.key),
            (GrantPart::CertificateChain, Secret::new(signed.chain)),
        ]),
    })
}

/// The record of the state backend's users; `line` is one line of its users file.
pub fn backend_users(line: &str, generation: u64) -> Record {
    Record {
        generation,
        made: Made::BackendUsers,
        parts: BTreeMap::from([(GrantPart::Users, Secret::new(format!("{}\n", line.trim_end())))]),
    }
}

/// The record of a role with a new password.
pub fn role(login: &Login, generation: u64) -> Result<Record, getrandom::Error> {
    Ok(Record {
        generation,
        made: Made::Role(login.clone()),
        parts: BTreeMap::from([(GrantPart::Password, random()?)]),
    })
}

/// The record of an access key, whose id is the consumer's name, with a new secret.
pub fn access_key(login: &Login, generation: u64) -> Result<Record, getrandom::Error> {
    Ok(Record {
        generation,
        made: Made::AccessKey(login.clone()),
        parts: BTreeMap::from([
            (GrantPart::AccessKeyId, Secret::new(login.name.clone())),
            (GrantPart::SecretAccessKey, random()?),
        ]),
    })
}

/// 256 bits as 43 letters, digits, `-` and `_`: nothing that a URL, a shell or SQL would read.
fn random() -> Result<Secret, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const TODAY: Date = date(2026, 3, 1);

    fn made_for(domain: &str, not_after: Date) -> Record {
        let made = Made::Certificate {
            domain: domain.into(),
            not_after,
            authority: "ours".into(),
        };
        Record {
            generation: 4,
            made,
            parts: BTreeMap::new(),
        }
    }

    fn certificate_for(domain: &str) -> GrantKind {
        GrantKind::Certificate {
            domain: domain.into(),
        }
    }

    #[test]
    fn a_grant_is_made_anew_for_a_reason_and_with_the_next_number() {
        let fresh = Kept::Record(made_for("a", date(2026, 3, 31)));
        let users = Kept::Record(backend_users("name:hash", 4));
        let (same, other) = (Credentials::Same, Credentials::Other);
        let keep = Decision::Keep { generation: 4 };
        let again = |reason| Decision::Make {
            generation: 5,
            reason,
        };
        let table = [
            (
                &Kept::Nothing,
                certificate_for("a"),
                Some("ours"),
                same,
                Decision::Make {
                    generation: 1,
                    reason: Reason::Absent,
                },
            ),
            (&fresh, certificate_for("a"), Some("ours"), same, keep),
            (&fresh, certificate_for("a"), Some("ours"), other, keep),
            (
                &fresh,
                certificate_for("b"),
                Some("ours"),
                same,
                again(Reason::OtherDomain),
            ),
            (
                &fresh,
                certificate_for("a"),
                Some("theirs"),
                same,
                again(Reason::OtherAuthority),
            ),
            (
                &fresh,
                certificate_for("a"),
                None,
                same,
                again(Reason::OtherAuthority),
            ),
            (
                &fresh,
                GrantKind::BackendUsers,
                None,
                same,
                again(Reason::OtherKind),
            ),
            (&users, GrantKind::BackendUsers, None, same, keep),
            (
                &users,
                GrantKind::BackendUsers,
                None,
                other,
                again(Reason::OtherCredentials),
            ),
            (
                &users,
                certificate_for("a"),
                Some("ours"),
                same,
                again(Reason::OtherKind),
            ),
        ];
        for (kept, wanted, authority, credentials, decision) in table {
            assert_eq!(
                decide(kept, &wanted, authority, credentials, TODAY),
                decision,
                "{kept:?} {wanted:?}"
            );
        }
    }

    #[test]
    fn a_certificate_is_renewed_when_fewer_than_thirty_days_are_left() {
        for (not_after, renewed) in [
            (date(2026, 3, 31), false),
            (date(2026, 3, 30), true),
            (date(2026, 3, 1), true),
            (date(2025, 3, 1), true),
            (date(2027, 3, 1), false),
        ] {
            let record = made_for("a", not_after);
            let decision = decide(
                &Kept::Record(record),
                &certificate_for("a"),
                Some("ours"),
                Credentials::Same,
                TODAY,
            );
            assert_eq!(matches!(decision, Decision::Make { .. }), renewed, "{not_after}");
        }
    }

    #[test]
    fn a_certificate_s_record_says_what_it_was_made_for_and_has_both_parts() {
        let authority = Authority::make(TODAY).unwrap();
        let record = certificate(&authority, "forge.example", 7, TODAY).unwrap();
        let wanted = certificate_for("forge.example");
        let decision = decide(
            &Kept::Record(record.clone()),
            &wanted,
            Some(authority.fingerprint()),
            Credentials::Same,
            TODAY,
        );
        assert_eq!(decision, Decision::Keep { generation: 7 });
        assert!(
            record
                .part(GrantPart::PrivateKey)
                .unwrap()
                .contains("PRIVATE KEY")
        );
        assert!(
            record
                .part(GrantPart::CertificateChain)
                .unwrap()
                .contains("BEGIN CERTIFICATE")
        );
        assert_eq!(record.part(GrantPart::Users), None);
    }
}
