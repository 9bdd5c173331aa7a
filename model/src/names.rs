//! Names, each a type of its own, checked when it is read.
//!
//! All are ASCII, sort as bytes, and print as they were written. Limits are refused, never cut: a cut name can
//! become another name that exists.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Why a text is not a name of its kind. [`NameError::help`] says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing is written.
    #[error("a {kind} is empty")]
    Empty {
        /// What kind of name.
        kind: &'static str,
        /// Which characters it may have.
        allowed: &'static str,
    },
    /// Longer than its limit.
    #[error("the {kind} `{name}` has {length} bytes, and the limit is {limit}")]
    TooLong {
        /// What kind of name.
        kind: &'static str,
        /// As written.
        name: String,
        /// Its bytes.
        length: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A character that its kind does not allow, or not in that place.
    #[error("the {kind} `{name}` has {found:?} where it may not")]
    Character {
        /// What kind of name.
        kind: &'static str,
        /// As written.
        name: String,
        /// The first wrong character.
        found: char,
        /// Which characters it may have.
        allowed: &'static str,
    },
    /// A provision named after a role that several engines play in ways a consumer can tell (PR-15).
    #[error("the provision `{name}` does not say which engine it is")]
    GenericEngine {
        /// As written.
        name: String,
    },
}

impl NameError {
    /// What to do.
    pub fn help(&self) -> String {
        match self {
            NameError::Empty { kind, allowed } => format!("write a {kind} of {allowed}"),
            NameError::TooLong { length, limit, .. } => {
                format!("shorten it by at least {} bytes", length - limit)
            }
            NameError::Character { allowed, .. } => format!("use {allowed}"),
            NameError::GenericEngine { .. } => {
                "name the engine, such as `postgresql`, `mysql` or `sqlserver`: a consumer written for one engine \
                 fails on another"
                    .to_owned()
            }
        }
    }
}

/// What a kind of name looks like, as data.
struct Rule {
    kind: &'static str,
    limit: usize,
    /// Allowed anywhere.
    inside: fn(char) -> bool,
    /// Allowed as the first and the last character.
    edge: fn(char) -> bool,
    allowed: &'static str,
    /// Well-formed, but too general to be matched.
    generic: &'static [&'static str],
}

impl Rule {
    fn check(&self, name: &str) -> Result<(), NameError> {
        let Rule {
            kind,
            limit,
            inside,
            edge,
            allowed,
            generic,
        } = *self;
        if name.is_empty() {
            return Err(NameError::Empty { kind, allowed });
        }
        let last = name.chars().count() - 1;
        let wrong = |(index, found): &(usize, char)| {
            let may = if *index == 0 || *index == last {
                edge
            } else {
                inside
            };
            !may(*found)
        };
        if let Some((_, found)) = name.chars().enumerate().find(wrong) {
            return Err(NameError::Character {
                kind,
                name: name.to_owned(),
                found,
                allowed,
            });
        }
        if name.len() > limit {
            return Err(NameError::TooLong {
                kind,
                name: name.to_owned(),
                length: name.len(),
                limit,
            });
        }
        if generic.contains(&name) {
            return Err(NameError::GenericEngine {
                name: name.to_owned(),
            });
        }
        Ok(())
    }
}

fn lower_or_digit(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit()
}

fn lower_digit_hyphen(character: char) -> bool {
    lower_or_digit(character) || character == '-'
}

/// A DNS label (RFC 1123), lower case.
const fn dns_label(kind: &'static str) -> Rule {
    Rule {
        kind,
        limit: 63,
        inside: lower_digit_hyphen,
        edge: lower_or_digit,
        allowed: "lower-case letters, digits and `-`, with a letter or digit first and last",
        generic: &[],
    }
}

/// Safe as one component of a path.
const fn key(kind: &'static str) -> Rule {
    Rule {
        kind,
        limit: 63,
        inside: |character| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-'),
        edge: |character| character.is_ascii_alphanumeric(),
        allowed: "letters, digits, `.`, `_` and `-`, with a letter or digit first and last",
        generic: &[],
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $rule:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// As it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<$name, NameError> {
                $rule.check(text)?;
                Ok($name(text.to_owned()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    )*};
}

names! {
    /// The fleet: names its state. A DNS label.
    FleetName: dns_label("fleet name");
    /// A hosting provider or one operator. A DNS label.
    GroupName: dns_label("group name");
    /// One host, by its deployment name. A DNS label, unique in the fleet.
    NodeName: dns_label("node name");
    /// What is assigned to nodes. A DNS label; so it has no dot, and `<component>.<instance key>` is unambiguous.
    ComponentName: dns_label("component name");
    /// A network that nodes are members of. A DNS label.
    NetworkName: dns_label("network name");
    /// A set of policies. A DNS label.
    EnvironmentName: dns_label("environment name");
    /// The key under which an environment holds a policy. Safe in a path, at most 63 bytes.
    PolicyLabel: key("label");
    /// The key under which a component makes a request. Safe in a path, at most 63 bytes.
    InstanceKey: key("instance key");
    /// What is provided and required. A DNS label; engines are named (PR-15).
    ProvisionName: Rule { generic: GENERIC_ENGINES, ..dns_label("provision") };
}

/// Roles that several engines play in ways a consumer can tell.
const GENERIC_ENGINES: &[&str] = &["database", "db", "sql", "sql-database"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_label_is_lower_case_ascii_of_at_most_63_bytes() {
        let longest = "a".repeat(63);
        for good in ["a", "0", "app", "app-2", "2-app", longest.as_str()] {
            assert_eq!(good.parse::<NodeName>().unwrap().to_string(), good);
        }
        for (bad, found) in [
            ("App", 'A'),
            ("-app", '-'),
            ("app-", '-'),
            ("-", '-'),
            ("a.b", '.'),
            ("a_b", '_'),
            ("a b", ' '),
            ("a/b", '/'),
            ("ä", 'ä'),
        ] {
            let error = bad.parse::<NodeName>().unwrap_err();
            assert!(
                matches!(error, NameError::Character { found: it, .. } if it == found),
                "{bad}: {error}"
            );
        }
        assert!(matches!("".parse::<NodeName>(), Err(NameError::Empty { .. })));
    }

    #[test]
    fn a_name_over_its_limit_is_refused_with_its_length_the_limit_and_what_to_cut() {
        let error = "n".repeat(65).parse::<NodeName>().unwrap_err();
        assert!(
            error.to_string().ends_with("has 65 bytes, and the limit is 63"),
            "{error}"
        );
        assert_eq!(error.help(), "shorten it by at least 2 bytes");
    }

    #[test]
    fn a_key_is_safe_as_one_component_of_a_path() {
        for good in ["main", "app.example.test", "a_b", "A-1"] {
            assert!(good.parse::<InstanceKey>().is_ok(), "{good}");
            assert!(good.parse::<PolicyLabel>().is_ok(), "{good}");
        }
        for bad in [".", "..", ".main", "main.", "a/b", "../x", "a\0b", "a b", "a\n"] {
            assert!(bad.parse::<InstanceKey>().is_err(), "{bad:?}");
            assert!(bad.parse::<PolicyLabel>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_generic_engine_is_no_provision_and_the_help_names_what_to_write() {
        for generic in ["database", "db", "sql", "sql-database"] {
            let error = generic.parse::<ProvisionName>().unwrap_err();
            assert_eq!(
                error,
                NameError::GenericEngine {
                    name: generic.to_owned()
                }
            );
            assert!(error.help().contains("`postgresql`"));
        }
        for role in ["postgresql", "mysql", "route", "resolver", "database-backup"] {
            assert!(role.parse::<ProvisionName>().is_ok(), "{role}");
        }
    }
}
