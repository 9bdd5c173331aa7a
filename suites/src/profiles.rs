//! The nextest configuration: one profile a suite, and three that cut across the suites.
//!
//! Every profile builds on `default` (nextest lets each profile inherit from it), so the limits and the test
//! group of the VM tests stand there once; a profile adds the tests it selects and a JUnit report of its own, which
//! nextest writes to `target/nextest/<profile>/junit.xml`.
//!
//! | profile | tests |
//! |---|---|
//! | a suite's name | those of the suite |
//! | `default` | all |
//! | `ci` | all but those of the weekly suites |
//! | `weekly` | all |
//! | `vms` | those that need guests |

use std::fmt::Write;

use crate::generated::NOTICE;
use crate::registry::{Kind, Registry, When};

/// Whether VM tests are to run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Vms {
    /// Every profile selects what it says.
    On,
    /// Every profile but `vms` leaves the VM tests out, whatever filter stands on the command line beside it.
    Off,
}

/// The oldest nextest that reads this configuration as it is meant.
pub const NEXTEST: &str = "0.9.110";

/// The text of a nextest configuration file.
#[must_use]
pub fn render(registry: &Registry, vms: Vms) -> String {
    let guests = registry.union_of(|suite| suite.kind == Kind::Vm);
    let without_guests = |filter: String| match vms {
        Vms::On => filter,
        Vms::Off => format!("({filter}) & not ({guests})"),
    };
    let weekly = registry.union_of(|suite| suite.workflow == When::Weekly);

    let mut text = preamble(&guests, &without_guests("all()".to_owned()));
    let mut profile = |name: &str, filter: &str| {
        let _ = write!(text, "\n[profile.{name}]\ndefault-filter = {}\n", quoted(filter));
    };
    profile("ci", &without_guests(format!("not ({weekly})")));
    profile("vms", &guests);
    profile("weekly", &without_guests("all()".to_owned()));
    for (name, suite) in registry.suites() {
        profile(name.as_str(), &without_guests(registry.filter(suite)));
    }
    text
}

/// A minute and a half is far above what a test without guests needs, five times that is a hang. A VM test may wait for the
/// image to be built and for other guests to free their memory: half an hour.
fn preamble(guests: &str, all: &str) -> String {
    format!(
        r#"{NOTICE}
nextest-version = {{ required = "{NEXTEST}" }}

# Guests run one test at a time, with nothing beside it: emulation takes every core there is.
[test-groups]
vm = {{ max-threads = 1 }}

[profile.default]
default-filter = {all}
retries = 0
fail-fast = false
failure-output = "immediate-final"
slow-timeout = {{ period = "90s", terminate-after = 5, grace-period = "10s" }}

[profile.default.junit]
path = "junit.xml"

[[profile.default.overrides]]
filter = {guests}
test-group = "vm"
threads-required = "num-test-threads"
slow-timeout = {{ period = "120s", terminate-after = 15, grace-period = "10s" }}
"#,
        all = quoted(all),
        guests = quoted(guests),
    )
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::TWO_OF_EACH;

    fn filters(vms: Vms) -> Vec<(String, String)> {
        let registry = Registry::parse(TWO_OF_EACH).expect("a good list");
        let config: toml::Table = toml::from_str(&render(&registry, vms)).expect("TOML");
        let profiles = config["profile"].as_table().expect("profiles");
        let filter = |profile: &toml::Value| profile["default-filter"].as_str().expect("a filter").to_owned();
        profiles
            .iter()
            .map(|(name, profile)| (name.clone(), filter(profile)))
            .collect()
    }

    fn filter(vms: Vms, profile: &str) -> String {
        filters(vms)
            .into_iter()
            .find(|(name, _)| name == profile)
            .expect("a profile")
            .1
    }

    #[test]
    fn each_suite_and_each_cut_across_them_has_a_profile() {
        let names: Vec<_> = filters(Vms::On).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "ci",
                "default",
                "nix-unit-a",
                "nix-unit-all",
                "nix-unit-b",
                "vm-x",
                "vm-y",
                "vms",
                "weekly"
            ]
        );
    }

    #[test]
    fn ci_leaves_out_the_weekly_suites_and_weekly_nothing() {
        assert_eq!(filter(Vms::On, "ci"), "not ((binary(y)))");
        assert_eq!(filter(Vms::On, "weekly"), "all()");
    }

    #[test]
    fn without_vms_every_profile_leaves_the_guests_out_and_vms_still_counts_them() {
        let guests = "(binary(x)) | (binary(y))";
        for (name, filter) in filters(Vms::Off) {
            if name == "vms" {
                assert_eq!(filter, guests);
            } else {
                assert!(
                    filter.ends_with(&format!(") & not ({guests})")),
                    "{name}: {filter}"
                );
            }
        }
    }

    #[test]
    fn guests_share_a_group_of_one_and_retries_are_off() {
        let registry = Registry::parse(TWO_OF_EACH).expect("a good list");
        let config: toml::Table = toml::from_str(&render(&registry, Vms::On)).expect("TOML");
        assert_eq!(config["test-groups"]["vm"]["max-threads"].as_integer(), Some(1));
        assert_eq!(config["profile"]["default"]["retries"].as_integer(), Some(0));
        let guests = &config["profile"]["default"]["overrides"][0];
        assert_eq!(guests["test-group"].as_str(), Some("vm"));
        assert_eq!(guests["filter"].as_str(), Some("(binary(x)) | (binary(y))"));
    }
}
