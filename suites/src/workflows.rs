//! The workflows: one file a suite, and one for the weekly run of everything.
//!
//! A runner called `ram-4g` has 4 GB of memory, Rust and git; `./dev` sets up the rest, as on a person's machine.

use crate::generated::NOTICE;
use crate::name::SuiteName;
use crate::registry::{Suite, When};

/// The workflow of a suite.
#[must_use]
pub fn suite(name: &SuiteName, suite: &Suite) -> String {
    let Suite {
        description,
        workflow,
        ..
    } = suite;
    render(
        &format!("{NOTICE}# {description}\n"),
        name.as_str(),
        on(*workflow),
        &format!("./dev suite {name}"),
    )
}

/// The workflow that runs every test there is, weekly suites too.
#[must_use]
pub fn weekly() -> String {
    render(NOTICE, "weekly", on(When::Weekly), "./dev test -P weekly")
}

fn render(head: &str, name: &str, on: &str, run: &str) -> String {
    format!(
        "{head}name: {name}
on:
{on}  workflow_dispatch:
jobs:
  {name}:
    runs-on: ram-4g
    timeout-minutes: 90
    steps:
      - uses: actions/checkout@v4
      - run: {run}
"
    )
}

fn on(when: When) -> &'static str {
    match when {
        When::EveryChange => "  push:\n    branches: [main]\n  pull_request:\n",
        // Sunday night, off the full hour, when the runners are idle.
        When::Weekly => "  schedule:\n    - cron: \"17 2 * * 0\"\n",
        When::OnRequest => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use crate::registry::tests::TWO_OF_EACH;

    #[test]
    fn a_suite_runs_by_its_name_when_the_list_says() {
        let registry = Registry::parse(TWO_OF_EACH).expect("a good list");
        let texts: Vec<_> = registry
            .suites()
            .map(|(name, each)| (name.as_str(), suite(name, each)))
            .collect();
        let of = |wanted: &str| {
            &texts
                .iter()
                .find(|(name, _)| *name == wanted)
                .expect("a workflow")
                .1
        };

        assert!(of("vm-x").contains("runs-on: ram-4g\n"));
        assert!(of("vm-x").contains("- run: ./dev suite vm-x\n"));
        assert!(of("vm-x").contains("  pull_request:\n") && !of("vm-x").contains("schedule"));
        assert!(of("vm-y").contains("  schedule:\n") && !of("vm-y").contains("pull_request"));
        assert!(!of("nix-unit-a").contains("schedule") && !of("nix-unit-a").contains("pull_request"));
        assert!(
            texts
                .iter()
                .all(|(_, text)| text.contains("  workflow_dispatch:\n"))
        );
    }

    #[test]
    fn the_weekly_run_selects_the_weekly_profile() {
        assert!(weekly().contains("- run: ./dev test -P weekly\n"));
    }
}
