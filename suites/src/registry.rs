//! `suites/suites.toml`: what it may say, and the suites it names.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::name::SuiteName;

/// All suites, by name.
#[derive(Debug)]
pub struct Registry(BTreeMap<SuiteName, Suite>);

/// One suite.
#[derive(Debug)]
pub struct Suite {
    /// One sentence: what its tests show.
    pub description: String,
    /// What its tests need.
    pub kind: Kind,
    /// Which tests it has.
    pub selection: Selection,
    /// What all of its tests that run at once use at most, in MiB.
    pub memory_mib: u32,
    /// When its workflow runs.
    pub workflow: When,
}

/// What the tests of a suite need.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing but the program.
    Pure,
    /// Other programs on loopback: OpenTofu, sshd, a database, a scripted fake.
    Service,
    /// Guests under QEMU.
    Vm,
}

/// Which tests a suite has.
#[derive(Debug)]
pub enum Selection {
    /// Those a nextest filterset matches.
    Filter(String),
    /// Those of other suites. A member has a filter of its own: groups do not nest.
    Members(Vec<SuiteName>),
}

/// When the workflow of a suite runs. A person can start each of them by hand.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// On every change.
    EveryChange,
    /// Once a week: what takes too long for every change.
    Weekly,
    /// Only by hand: a suite that already runs as a member of another.
    OnRequest,
}

/// The memory of the runners called `ram-4g`.
pub const RUNNER_MIB: u32 = 4096;

/// What is wrong with the list.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It does not parse: a wrong key or type, a name given twice or of the wrong form.
    #[error("suites/suites.toml does not parse: {0}")]
    Parse(#[from] toml::de::Error),
    /// It parses and contradicts itself; every fault is named.
    #[error("suites/suites.toml is wrong:\n{}", lines(.0))]
    Faults(Vec<Fault>),
}

/// One contradiction in the list.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum Fault {
    /// Nobody could tell what the suite shows.
    #[error("{0}: the description is empty; say in one sentence what its tests show")]
    NoDescription(SuiteName),
    /// `filter` and `members` together, or neither.
    #[error("{0}: give either `filter` or `members`")]
    Selection(SuiteName),
    /// The member is not in the list.
    #[error("{group}: there is no suite `{member}`; add it, or take it out of `members`")]
    NoSuchMember {
        /// The suite that names it.
        group: SuiteName,
        /// What it names.
        member: SuiteName,
    },
    /// The member has members itself.
    #[error("{group}: `{member}` has members itself; name those")]
    Nested {
        /// The suite that names it.
        group: SuiteName,
        /// What it names.
        member: SuiteName,
    },
    /// The member needs other things than its group.
    #[error("{group}: `{member}` is of another kind; a group has one kind")]
    MixedKinds {
        /// The suite that names it.
        group: SuiteName,
        /// What it names.
        member: SuiteName,
    },
    /// `vm-` says that the tests need guests, and only that.
    #[error("{0}: a suite is of kind vm exactly when its name begins with vm-; rename it or change its kind")]
    NameAgainstKind(SuiteName),
    /// No runner has so much memory.
    #[error("{0}: it needs more memory than a runner has ({RUNNER_MIB} MiB); split it")]
    TooLarge(SuiteName),
}

impl Registry {
    /// Reads the text of `suites/suites.toml`.
    ///
    /// # Errors
    ///
    /// A text that does not parse, or every contradiction in one that does.
    pub fn parse(text: &str) -> Result<Self, RegistryError> {
        let raw: RawList = toml::from_str(text)?;
        let mut faults = Vec::new();
        for (name, suite) in &raw.suite {
            suite.check(name, &raw.suite, &mut faults);
        }
        if !faults.is_empty() {
            return Err(RegistryError::Faults(faults));
        }
        let suites = raw
            .suite
            .into_iter()
            .filter_map(|(name, raw)| Some((name, raw.into_suite()?)));
        Ok(Self(suites.collect()))
    }

    /// The suites, ordered by name.
    pub fn suites(&self) -> impl Iterator<Item = (&SuiteName, &Suite)> {
        self.0.iter()
    }

    /// The filterset of a suite; a group's is the union of its members'.
    #[must_use]
    pub fn filter(&self, suite: &Suite) -> String {
        match &suite.selection {
            Selection::Filter(filter) => filter.clone(),
            Selection::Members(members) => union(
                members
                    .iter()
                    .filter_map(|member| self.0.get(member))
                    .map(|member| self.filter(member)),
            ),
        }
    }

    /// The filterset of all suites that `wanted` holds for; `none()` where there is no such suite.
    pub fn union_of(&self, wanted: impl Fn(&Suite) -> bool) -> String {
        let alone = self
            .0
            .values()
            .filter(|suite| matches!(suite.selection, Selection::Filter(_)));
        union(
            alone
                .filter(|suite| wanted(suite))
                .map(|suite| self.filter(suite)),
        )
    }
}

fn union(filters: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = filters.map(|filter| format!("({filter})")).collect();
    if parts.is_empty() {
        "none()".to_owned()
    } else {
        parts.join(" | ")
    }
}

fn lines(faults: &[Fault]) -> String {
    faults
        .iter()
        .map(|fault| format!("  {fault}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawList {
    suite: BTreeMap<SuiteName, RawSuite>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    description: String,
    kind: Kind,
    filter: Option<String>,
    members: Option<Vec<SuiteName>>,
    memory_mib: u32,
    workflow: When,
}

impl RawSuite {
    fn check(&self, name: &SuiteName, all: &BTreeMap<SuiteName, RawSuite>, faults: &mut Vec<Fault>) {
        if self.description.trim().is_empty() {
            faults.push(Fault::NoDescription(name.clone()));
        }
        let members = self.members.as_deref().unwrap_or_default();
        let filtered = self
            .filter
            .as_ref()
            .is_some_and(|filter| !filter.trim().is_empty());
        if filtered != members.is_empty() || self.filter.is_some() == self.members.is_some() {
            faults.push(Fault::Selection(name.clone()));
        }
        if (self.kind == Kind::Vm) != name.as_str().starts_with("vm-") {
            faults.push(Fault::NameAgainstKind(name.clone()));
        }
        if self.memory_mib > RUNNER_MIB {
            faults.push(Fault::TooLarge(name.clone()));
        }
        for member in members {
            let (group, named) = (name.clone(), member.clone());
            match all.get(member) {
                None => faults.push(Fault::NoSuchMember { group, member: named }),
                Some(suite) if suite.members.is_some() => faults.push(Fault::Nested { group, member: named }),
                Some(suite) if suite.kind != self.kind => {
                    faults.push(Fault::MixedKinds { group, member: named })
                }
                Some(_) => {}
            }
        }
    }

    fn into_suite(self) -> Option<Suite> {
        let selection = match (self.filter, self.members) {
            (Some(filter), None) => Selection::Filter(one_line(&filter)),
            (None, Some(members)) => Selection::Members(members),
            _ => return None,
        };
        let description = one_line(&self.description);
        let Self {
            kind,
            memory_mib,
            workflow,
            ..
        } = self;
        Some(Suite {
            description,
            kind,
            selection,
            memory_mib,
            workflow,
        })
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TWO_OF_EACH: &str = r#"
        [suite.nix-unit-a]
        description = "Shows a."
        kind = "pure"
        filter = "test(a)"
        memory_mib = 512
        workflow = "on-request"

        [suite.nix-unit-b]
        description = "Shows b."
        kind = "pure"
        filter = '''
            test(/^b::/)
            | test(bb)
        '''
        memory_mib = 512
        workflow = "on-request"

        [suite.nix-unit-all]
        description = "Shows a and b."
        kind = "pure"
        members = ["nix-unit-a", "nix-unit-b"]
        memory_mib = 512
        workflow = "every-change"

        [suite.vm-x]
        description = "Shows x."
        kind = "vm"
        filter = "binary(x)"
        memory_mib = 3000
        workflow = "every-change"

        [suite.vm-y]
        description = "Shows y."
        kind = "vm"
        filter = "binary(y)"
        memory_mib = 3000
        workflow = "weekly"
    "#;

    fn faults(from: &str, to: &str) -> Vec<Fault> {
        let text = TWO_OF_EACH.replacen(from, to, 1);
        assert_ne!(text, TWO_OF_EACH, "the change must change something");
        match Registry::parse(&text) {
            Err(RegistryError::Faults(faults)) => faults,
            other => panic!("no faults but {other:?}"),
        }
    }

    fn name(text: &str) -> SuiteName {
        SuiteName::try_from(text.to_owned()).expect("a name")
    }

    #[test]
    fn a_group_selects_what_its_members_select() {
        let registry = Registry::parse(TWO_OF_EACH).expect("a good list");
        let filters: Vec<_> = registry
            .suites()
            .map(|(_, suite)| registry.filter(suite))
            .collect();
        assert_eq!(
            filters,
            [
                "test(a)",
                "(test(a)) | (test(/^b::/) | test(bb))",
                "test(/^b::/) | test(bb)",
                "binary(x)",
                "binary(y)"
            ]
        );
    }

    #[test]
    fn a_union_counts_no_test_of_a_group_twice() {
        let registry = Registry::parse(TWO_OF_EACH).expect("a good list");
        assert_eq!(
            registry.union_of(|suite| suite.kind == Kind::Vm),
            "(binary(x)) | (binary(y))"
        );
        assert_eq!(
            registry.union_of(|suite| suite.kind == Kind::Pure),
            "(test(a)) | (test(/^b::/) | test(bb))"
        );
        assert_eq!(registry.union_of(|suite| suite.kind == Kind::Service), "none()");
    }

    #[test]
    fn each_contradiction_is_a_fault_that_names_the_suite() {
        let group = || name("nix-unit-all");
        let cases = [
            (
                r#""Shows a.""#,
                r#"" ""#,
                Fault::NoDescription(name("nix-unit-a")),
            ),
            (r#"filter = "test(a)""#, "", Fault::Selection(name("nix-unit-a"))),
            (
                r#"filter = "test(a)""#,
                r#"filter = " ""#,
                Fault::Selection(name("nix-unit-a")),
            ),
            (
                r#"filter = "binary(x)""#,
                "members = []",
                Fault::Selection(name("vm-x")),
            ),
            (
                r#"filter = "binary(x)""#,
                "filter = \"binary(x)\"\nmembers = [\"vm-y\"]",
                Fault::Selection(name("vm-x")),
            ),
            (
                r#""nix-unit-b"]"#,
                r#""nix-unit-c"]"#,
                Fault::NoSuchMember {
                    group: group(),
                    member: name("nix-unit-c"),
                },
            ),
            (
                r#""nix-unit-b"]"#,
                r#""nix-unit-all"]"#,
                Fault::Nested {
                    group: group(),
                    member: group(),
                },
            ),
            (
                r#""nix-unit-b"]"#,
                r#""vm-x"]"#,
                Fault::MixedKinds {
                    group: group(),
                    member: name("vm-x"),
                },
            ),
            (
                "suite.vm-x",
                "suite.effects-x",
                Fault::NameAgainstKind(name("effects-x")),
            ),
            (
                "memory_mib = 3000",
                "memory_mib = 4097",
                Fault::TooLarge(name("vm-x")),
            ),
        ];
        for (from, to, fault) in cases {
            assert_eq!(faults(from, to), [fault], "{from} -> {to}");
        }
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let text = TWO_OF_EACH
            .replace("\"Shows a.\"", "\"\"")
            .replace("memory_mib = 3000", "memory_mib = 9000");
        let Err(RegistryError::Faults(faults)) = Registry::parse(&text) else {
            panic!("three faults")
        };
        assert_eq!(faults.len(), 3);
    }

    #[test]
    fn a_name_given_twice_and_an_unknown_key_do_not_parse() {
        for (from, to) in [
            ("suite.nix-unit-b", "suite.nix-unit-a"),
            ("memory_mib", "memory"),
            ("suite.vm-x", "suite.x"),
        ] {
            let text = TWO_OF_EACH.replacen(from, to, 1);
            assert!(
                matches!(Registry::parse(&text), Err(RegistryError::Parse(_))),
                "{from} -> {to}"
            );
        }
    }
}
