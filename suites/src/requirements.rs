//! Which tests show which requirement.
//!
//! `suites/ids.toml` holds what the product must do, one sentence an id, in a table a source: `[RF]` resources,
//! `[PR]` provider resolution, `[TF]` the OpenTofu method, `[HA]` harness and suites. Written out, the entry `EC-8` of `[TF]` is
//! `TF-EC-8`. `suites/requirements.toml` has the same tables, from an id to the tests that show it, and the list `open` of those that
//! no test shows yet. A test is named as nextest prints it, with `::` in place of the blank:
//! `provisor-model::shape::tests::a_scalar_is_refused`; the cases of a table (`…::case_1_empty`) may be named by
//! their function alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

/// The id of one requirement.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RequirementId {
    source: String,
    entry: String,
}

impl RequirementId {
    /// The entry `entry` of the table `source`: ("TF", "EC-8") is TF-EC-8.
    #[must_use]
    pub fn new(source: &str, entry: &str) -> Self {
        Self {
            source: source.to_owned(),
            entry: entry.to_owned(),
        }
    }
}

impl fmt::Display for RequirementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.source, self.entry)
    }
}

/// What the product must do.
#[derive(Debug)]
pub struct Requirements(BTreeMap<RequirementId, String>);

/// Who shows it.
#[derive(Debug)]
pub struct Shown {
    open: Vec<String>,
    by: BTreeMap<RequirementId, Vec<String>>,
}

/// Something the table says that is not so. Each ends in what to do.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum Fault {
    /// A sentence is missing.
    #[error("{0} has no text in suites/ids.toml; say in one sentence what it asks")]
    NoText(RequirementId),
    /// Neither mapped nor open.
    #[error("{0} is neither mapped nor open; name the tests that show it, or list it under `open`")]
    Forgotten(RequirementId),
    /// Mapped and open.
    #[error("{0} is mapped and open; take it out of `open` if its tests show it")]
    Both(RequirementId),
    /// Mapped to no test.
    #[error("{0} is mapped to no test; list it under `open`")]
    NoTests(RequirementId),
    /// No requirement has this id.
    #[error("{0} is no id of suites/ids.toml; correct it or add it there")]
    Unknown(String),
    /// Under `open` more than once.
    #[error("{0} is open twice; take one out")]
    OpenTwice(String),
    /// No test has this name.
    #[error("{id}: there is no test `{test}`; `cargo nextest list --workspace` names them all")]
    NoSuchTest {
        /// The requirement.
        id: RequirementId,
        /// The name.
        test: String,
    },
}

type Tables<T> = BTreeMap<String, BTreeMap<String, T>>;

#[derive(Deserialize)]
struct RawShown {
    open: Vec<String>,
    #[serde(flatten)]
    by: Tables<Vec<String>>,
}

impl Requirements {
    /// Reads the text of `suites/ids.toml`.
    ///
    /// # Errors
    ///
    /// The text is no such table; TOML itself refuses an id given twice.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        Ok(Self(by_id(toml::from_str(text)?)))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Shown {
    /// Reads the text of `suites/requirements.toml`.
    ///
    /// # Errors
    ///
    /// The text is no such table; TOML itself refuses an id mapped twice.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let RawShown { open, by } = toml::from_str(text)?;
        Ok(Self { open, by: by_id(by) })
    }

    /// Every fault of this table, against what is asked and the tests there are, in a fixed order.
    #[must_use]
    pub fn faults(&self, asked: &Requirements, tests: &BTreeSet<String>) -> Vec<Fault> {
        let mut faults = BTreeSet::new();
        let ids: BTreeMap<String, &RequirementId> = asked.0.keys().map(|id| (id.to_string(), id)).collect();
        let mut open = BTreeSet::new();
        for text in &self.open {
            match ids.get(text) {
                None => drop(faults.insert(Fault::Unknown(text.clone()))),
                Some(id) if !open.insert(*id) => drop(faults.insert(Fault::OpenTwice(text.clone()))),
                Some(_) => {}
            }
        }
        for (id, text) in &asked.0 {
            if text.trim().is_empty() {
                faults.insert(Fault::NoText(id.clone()));
            }
            match (self.by.contains_key(id), open.contains(id)) {
                (false, false) => drop(faults.insert(Fault::Forgotten(id.clone()))),
                (true, true) => drop(faults.insert(Fault::Both(id.clone()))),
                _ => {}
            }
        }
        for (id, named) in &self.by {
            if !asked.0.contains_key(id) {
                faults.insert(Fault::Unknown(id.to_string()));
            }
            if named.is_empty() {
                faults.insert(Fault::NoTests(id.clone()));
            }
            let missing = named.iter().filter(|test| !exists(test, tests));
            faults.extend(missing.map(|test| Fault::NoSuchTest {
                id: id.clone(),
                test: test.clone(),
            }));
        }
        faults.into_iter().collect()
    }
}

fn exists(named: &str, tests: &BTreeSet<String>) -> bool {
    let cases = format!("{named}::case_");
    tests.contains(named)
        || tests
            .range(cases.clone()..)
            .next()
            .is_some_and(|test| test.starts_with(&cases))
}

fn by_id<T>(tables: Tables<T>) -> BTreeMap<RequirementId, T> {
    let entries = tables.into_iter().flat_map(|(source, table)| {
        table
            .into_iter()
            .map(move |(entry, value)| (RequirementId::new(&source, &entry), value))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: &str = r#"
        [PR]
        01 = "A provider is a pair."
        02 = "A pin names both."
        [TF]
        EC-1 = "No address is no pin."
        EC-2 = "Lost state is refused."
    "#;

    const SHOWN: &str = r#"
        open = ["PR-02"]
        [PR]
        01 = ["provisor-model::pins::tests::a_pin_names_a_pair"]
        [TF]
        EC-1 = ["provisor-deploy::address::tests::nothing_is_pinned", "provisor-deploy::wrapper::phases"]
        EC-2 = ["provisor-deploy::decide::tests::lost"]
    "#;

    fn faults(shown: &str) -> Vec<Fault> {
        let tests = [
            "provisor-deploy::address::tests::nothing_is_pinned",
            "provisor-deploy::decide::tests::lost::case_1_absent",
            "provisor-deploy::decide::tests::lost::case_2_marker",
            "provisor-deploy::wrapper::phases",
            "provisor-model::pins::tests::a_pin_names_a_pair",
        ];
        let asked = Requirements::parse(ASKED).expect("ids");
        Shown::parse(shown)
            .expect("a table")
            .faults(&asked, &tests.map(str::to_owned).into())
    }

    fn id(source: &str, entry: &str) -> RequirementId {
        RequirementId::new(source, entry)
    }

    #[test]
    fn a_table_that_maps_or_opens_each_id_has_no_fault() {
        assert_eq!(faults(SHOWN), []);
    }

    #[test]
    fn each_untruth_is_a_fault_that_names_the_id() {
        let missing = |test: &str| Fault::NoSuchTest {
            id: id("PR", "01"),
            test: test.to_owned(),
        };
        let cases = [
            (
                r#"open = ["PR-02"]"#,
                "open = []",
                Fault::Forgotten(id("PR", "02")),
            ),
            (
                r#"["PR-02"]"#,
                r#"["PR-02", "PR-01"]"#,
                Fault::Both(id("PR", "01")),
            ),
            (
                r#"["PR-02"]"#,
                r#"["PR-02", "PR-02"]"#,
                Fault::OpenTwice("PR-02".to_owned()),
            ),
            (
                r#"["PR-02"]"#,
                r#"["PR-02", "PR-2"]"#,
                Fault::Unknown("PR-2".to_owned()),
            ),
            (
                "[TF]",
                "[TF]\nEC-9 = [\"provisor-deploy::wrapper::phases\"]",
                Fault::Unknown("TF-EC-9".to_owned()),
            ),
            (
                r#"["provisor-deploy::decide::tests::lost"]"#,
                "[]",
                Fault::NoTests(id("TF", "EC-2")),
            ),
            (
                "tests::a_pin_names_a_pair",
                "a_pin_names_a_pair",
                missing("provisor-model::pins::a_pin_names_a_pair"),
            ),
            (
                "names_a_pair",
                "names",
                missing("provisor-model::pins::tests::a_pin_names"),
            ),
        ];
        for (from, to, fault) in cases {
            assert_eq!(faults(&SHOWN.replacen(from, to, 1)), [fault], "{from} -> {to}");
        }
    }

    #[test]
    fn a_requirement_without_a_sentence_is_a_fault() {
        let asked = Requirements::parse("[PR]\n01 = \"\"").expect("ids");
        let shown = Shown::parse("open = [\"PR-01\"]").expect("a table");
        assert_eq!(
            shown.faults(&asked, &BTreeSet::new()),
            [Fault::NoText(id("PR", "01"))]
        );
    }
}
