//! Secrets on their way from the deployer to both ends: made here, kept at rest here, delivered by the transport.
//!
//! [`survey`] says what a run needs and writes nothing; [`make`] makes what is missing. A plan only surveys, and shows
//! the generations that an apply would have.
//!
//! A consumer's credential at its provider is one file, named after all that it depends on. Both ends are delivered from
//! that file, with its number in both ends' triggers, and it is durable before either is: a run that dies between the two
//! ends leaves a number that the other end has not had, so that the next one delivers it.

pub mod at_rest;
pub mod ca;
mod discard;
pub mod generate;
mod users;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use provisor_model::node_plan::{Grant, GrantKind, GrantPart};

use self::at_rest::{AtRestError, Kept, Secret, Shelf};
use self::ca::{Authority, AuthorityError};
pub use self::discard::{Discard, Unused};
use self::generate::{Credentials, Decision, Reason};

/// The operator's name and password at the state backend.
#[derive(Clone, Debug)]
pub struct Login {
    /// `TF_HTTP_USERNAME`.
    pub name: String,
    /// `TF_HTTP_PASSWORD`.
    pub password: Secret,
}

/// What is to be done with every grant of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    decisions: BTreeMap<String, (GrantKind, Decision)>,
    discards: Vec<Discard>,
}

impl Survey {
    /// Has a grant made anew, though it is good.
    ///
    /// # Errors
    ///
    /// The fleet has no such grant.
    pub fn rotate(&mut self, grant: &str) -> Result<(), GrantsError> {
        let Some((_, decision)) = self.decisions.get_mut(grant) else {
            return Err(GrantsError::Unknown {
                grant: grant.to_owned(),
                all: self.decisions.keys().cloned().collect::<Vec<_>>().join(", "),
            });
        };
        if let Decision::Keep { generation } = *decision {
            *decision = Decision::Make {
                generation: generation + 1,
                reason: Reason::Asked,
            };
        }
        Ok(())
    }

    /// What [`make`] discards, by file.
    pub fn discards(&self) -> &[Discard] {
        &self.discards
    }

    /// The generation that each grant has after [`make`], by the grant's name.
    pub fn generations(&self) -> BTreeMap<String, u64> {
        self.decisions
            .iter()
            .map(|(name, (_, decision))| (name.clone(), decision.generation()))
            .collect()
    }

    /// What is to be done with each grant, by its name.
    pub fn decisions(&self) -> impl Iterator<Item = (&str, Decision)> {
        self.decisions
            .iter()
            .map(|(name, (_, decision))| (name.as_str(), *decision))
    }
}

/// Why the grants of a fleet are not there.
#[derive(Debug, thiserror::Error)]
pub enum GrantsError {
    /// A file at rest cannot be used.
    #[error(transparent)]
    AtRest(#[from] AtRestError),
    /// A certificate cannot be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The fleet serves its own state, and nobody said who may use it.
    #[error(
        "grant {grant} needs the name and password of the state backend; set TF_HTTP_USERNAME and TF_HTTP_PASSWORD"
    )]
    NoLogin {
        /// The grant.
        grant: String,
    },
    /// The backend does not take the name or the password.
    #[error(
        "the state backend takes no such login: {reason}; choose another TF_HTTP_USERNAME or TF_HTTP_PASSWORD"
    )]
    Login {
        /// Its reason, without the password.
        reason: String,
    },
    /// There is no such grant.
    #[error("the fleet has no grant `{grant}`; it has: {all}")]
    Unknown {
        /// As it was named.
        grant: String,
        /// Those that there are.
        all: String,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes for grant {grant}: {source}; make /dev/urandom readable")]
    NoRandomness {
        /// The grant.
        grant: String,
        /// The system's reason.
        source: getrandom::Error,
    },
    /// A file at rest could not be removed.
    #[error("cannot remove {path}: {source}; make the state folder writable for you")]
    Discard {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The certificate could not be written for clients.
    #[error("cannot write the CA certificate {path}: {source}; make the state folder writable for you")]
    Export {
        /// Where.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Looks at what is at rest and writes nothing.
pub fn survey(
    shelf: &Shelf,
    wanted: &[Grant],
    login: Option<&Login>,
    today: Date,
) -> Result<Survey, GrantsError> {
    let authority = Authority::load(shelf)?;
    let fingerprint = authority.as_ref().map(Authority::fingerprint);
    let mut decisions = BTreeMap::new();
    for grant in wanted {
        let kept = shelf.kept(&grant.name)?;
        let credentials = match grant.kind {
            GrantKind::BackendUsers => credentials(&kept, login_for(&grant.name, login)?),
            GrantKind::Certificate { .. } | GrantKind::Role(_) | GrantKind::AccessKey(_) => Credentials::Same,
        };
        let decision = generate::decide(&kept, &grant.kind, fingerprint, credentials, today);
        decisions.insert(grant.name.clone(), (grant.kind.clone(), decision));
    }
    let discards = discard::find(shelf, wanted)?;
    Ok(Survey { decisions, discards })
}

/// Makes what a survey found missing. `certificate` is where the authority's certificate is written for clients.
pub fn make(
    shelf: &Shelf,
    survey: &Survey,
    login: Option<&Login>,
    certificate: &Path,
    today: Date,
) -> Result<(), GrantsError> {
    for (name, (kind, decision)) in &survey.decisions {
        let Decision::Make { generation, .. } = *decision else {
            continue;
        };
        let record = match kind {
            GrantKind::Certificate { domain } => {
                let authority = Authority::load_or_make(shelf, today)?;
                generate::certificate(&authority, domain, generation, today)?
            }
            GrantKind::BackendUsers => {
                generate::backend_users(&users::line(login_for(name, login)?)?, generation)
            }
            GrantKind::Role(login) => generate::role(login, generation).map_err(no_randomness(name))?,
            GrantKind::AccessKey(login) => {
                generate::access_key(login, generation).map_err(no_randomness(name))?
            }
        };
        shelf.keep(name, &record)?;
    }
    for unused in &survey.discards {
        discard::carry_out(shelf, unused)?;
    }
    if let Some(authority) = Authority::load(shelf)? {
        std::fs::write(certificate, authority.certificate()).map_err(|source| GrantsError::Export {
            path: certificate.to_owned(),
            source,
        })?;
    }
    Ok(())
}

fn no_randomness(grant: &str) -> impl FnOnce(getrandom::Error) -> GrantsError {
    let grant = grant.to_owned();
    |source| GrantsError::NoRandomness { grant, source }
}

fn login_for<'a>(grant: &str, login: Option<&'a Login>) -> Result<&'a Login, GrantsError> {
    login.ok_or_else(|| GrantsError::NoLogin {
        grant: grant.to_owned(),
    })
}

fn credentials(kept: &Kept, login: &Login) -> Credentials {
    let users = match kept {
        Kept::Record(record) => record.part(GrantPart::Users),
        Kept::Nothing | Kept::Unclear { .. } => None,
    };
    let same = users.is_some_and(|text| users::accepts(text, login));
    if same {
        Credentials::Same
    } else {
        Credentials::Other
    }
}

#[cfg(test)]
mod login_tests;

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const TODAY: Date = date(2026, 3, 1);

    fn wanted() -> Vec<Grant> {
        let grant = |name: &str, kind| Grant {
            name: name.into(),
            kind,
            files: vec![],
            units: vec![],
            generation: 0,
        };
        vec![
            grant("backend/state-backend/users", GrantKind::BackendUsers),
            grant(
                "forge/gitea/ssl/a",
                GrantKind::Certificate {
                    domain: "a.example".into(),
                },
            ),
            grant(
                "forge/gitea/ssl/b",
                GrantKind::Certificate {
                    domain: "b.example".into(),
                },
            ),
        ]
    }

    fn login(password: &str) -> Login {
        Login {
            name: "operator".into(),
            password: Secret::new(password.into()),
        }
    }

    fn numbers(survey: &Survey) -> Vec<u64> {
        survey.generations().into_values().collect()
    }

    #[test]
    fn a_survey_writes_nothing_and_tells_what_a_make_will_have_done() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(&directory.path().join("grants"));
        let login = login("one");
        let before = survey(&shelf, &wanted(), Some(&login), TODAY).unwrap();
        assert!(!shelf.folder().exists());
        make(
            &shelf,
            &before,
            Some(&login),
            &directory.path().join("ca.pem"),
            TODAY,
        )
        .unwrap();
        let after = survey(&shelf, &wanted(), Some(&login), TODAY).unwrap();
        assert_eq!(before.generations(), after.generations());
        assert!(
            after
                .decisions()
                .all(|(_, decision)| matches!(decision, Decision::Keep { generation: 1 }))
        );
    }

    #[test]
    fn another_password_rotates_the_users_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(&directory.path().join("grants"));
        let certificate = directory.path().join("ca.pem");
        for (password, users) in [("one", 1), ("one", 1), ("two", 2), ("one", 3)] {
            let login = login(password);
            let survey = survey(&shelf, &wanted(), Some(&login), TODAY).unwrap();
            assert_eq!(numbers(&survey), [users, 1, 1], "{password}");
            make(&shelf, &survey, Some(&login), &certificate, TODAY).unwrap();
        }
    }

    #[test]
    fn a_certificate_that_ends_soon_gets_the_next_number() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(&directory.path().join("grants"));
        let certificates = &wanted()[1..];
        for (today, number) in [(TODAY, 1), (date(2026, 4, 30), 1), (date(2026, 5, 1), 2)] {
            let survey = survey(&shelf, certificates, None, today).unwrap();
            assert_eq!(numbers(&survey), [number, number], "{today}");
            make(&shelf, &survey, None, &directory.path().join("ca.pem"), today).unwrap();
        }
    }

    #[test]
    fn without_a_login_the_error_names_both_variables() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(directory.path());
        let message = survey(&shelf, &wanted(), None, TODAY).unwrap_err().to_string();
        assert!(
            message.contains("TF_HTTP_USERNAME") && message.contains("TF_HTTP_PASSWORD"),
            "{message}"
        );
    }

    #[test]
    fn the_exported_certificate_is_the_authority_s_and_has_no_key() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(&directory.path().join("grants"));
        let certificate = directory.path().join("ca.pem");
        let survey = survey(&shelf, &wanted()[1..], None, TODAY).unwrap();
        make(&shelf, &survey, None, &certificate, TODAY).unwrap();
        let text = std::fs::read_to_string(certificate).unwrap();
        assert_eq!(text, Authority::load(&shelf).unwrap().unwrap().certificate());
        assert!(!text.contains("PRIVATE"));
    }
}
