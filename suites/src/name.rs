//! The names of suites.

use std::fmt;

use serde::Deserialize;

/// The name of a suite, of its nextest profile and of its workflow: words of `a-z0-9` joined by `-`, the first
/// of them saying what its tests need: `nix-unit-…`, `effects-…`, `harness-…`, `suites-…`, `vm-…`.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(try_from = "String")]
pub struct SuiteName(String);

const FAMILIES: [&str; 5] = ["nix-unit-", "effects-", "harness-", "suites-", "vm-"];

/// A text that is no name of a suite.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` is no name of a suite: begin it with nix-unit-, effects-, harness-, suites- or vm-, and go on with words of a-z and 0-9 joined by `-`"
)]
pub struct BadName(String);

impl SuiteName {
    /// The name as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SuiteName {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        let word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let known = FAMILIES.iter().any(|family| text.starts_with(family));
        if known && text.split('-').all(word) {
            Ok(Self(text))
        } else {
            Err(BadName(text))
        }
    }
}

impl fmt::Display for SuiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_a_family_and_goes_on_in_words() {
        for good in [
            "nix-unit-lib-data-model",
            "effects-conformance",
            "vm-tf-bootstrap",
            "harness-selftest",
        ] {
            assert_eq!(
                SuiteName::try_from(good.to_owned()).map(|name| name.to_string()),
                Ok(good.to_owned())
            );
        }
    }

    #[test]
    fn a_name_of_another_form_is_refused() {
        for bad in [
            "",
            "vm",
            "vm-",
            "tf-bootstrap",
            "vm-Tf",
            "vm-tf--x",
            "vm-tf/x",
            "ci",
            "default",
            "weekly",
        ] {
            assert_eq!(SuiteName::try_from(bad.to_owned()), Err(BadName(bad.to_owned())));
        }
    }
}
