//! The committed files are those of the list, every test has a suite, every suite has tests, and the requirements
//! name tests that exist.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;

use provisor_suites::generated;
use provisor_suites::requirements::{Requirements, Shown};
use provisor_suites::workspace_root;
use provisor_suites::workspace_tests::TestBinaries;

type Result = std::result::Result<(), Box<dyn Error>>;

#[test]
fn the_committed_profiles_and_workflows_are_those_of_the_list() -> Result {
    let root = workspace_root();
    let files = generated::files(&generated::registry(&root)?);
    let differences = generated::differences(&root, &files)?;
    assert_eq!(
        differences,
        [],
        "run `cargo run -p provisor-suites -- generate` and commit what it writes"
    );
    Ok(())
}

#[test]
fn every_suite_selects_a_test_and_every_test_belongs_to_a_suite() -> Result {
    let root = workspace_root();
    let binaries = TestBinaries::build(&root)?;
    let mut homeless = binaries.selected_by("default")?;
    let mut empty = Vec::new();
    for (name, _) in generated::registry(&root)?.suites() {
        let tests = binaries.selected_by(name.as_str())?;
        if tests.is_empty() {
            empty.push(name.to_string());
        }
        homeless.retain(|test| !tests.contains(test));
    }
    assert_eq!(
        empty, [""; 0],
        "suites without a test: correct the filters in suites/suites.toml"
    );
    assert_eq!(
        homeless,
        BTreeSet::new(),
        "tests of no suite: widen a filter in suites/suites.toml"
    );
    Ok(())
}

#[test]
fn every_requirement_is_open_or_mapped_to_tests_that_exist() -> Result {
    let root = workspace_root();
    let asked = Requirements::parse(&fs::read_to_string(root.join("suites/ids.toml"))?)?;
    let shown = Shown::parse(&fs::read_to_string(root.join("suites/requirements.toml"))?)?;
    let tests = TestBinaries::build(&root)?.selected_by("default")?;
    let faults: Vec<String> = shown
        .faults(&asked, &tests)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(faults, [""; 0], "correct suites/requirements.toml");
    Ok(())
}
