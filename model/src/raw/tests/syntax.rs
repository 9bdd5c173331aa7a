//! Files: their names, their syntax, and what is defined twice.

use crate::testing::{assert_lines, files, two_of_everything};

#[test]
fn every_broken_file_is_reported_with_each_broken_line() {
    let fleet = files([
        ("fleet.toml", "name = = \"demo\"\n[groups\n"),
        ("components/a.toml", "requires = [\"shell\"\n"),
        ("components/b.toml", "provides = []\n"),
    ]);
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::syntax]: this is not TOML: unclosed array, expected `]`
          components/a.toml:1:20 "": here
          help: correct the syntax; https://toml.io describes it
        error[model::syntax]: this is not TOML: extra `=`, expected nothing
          fleet.toml:1:8 "=": here
          help: correct the syntax; https://toml.io describes it
        error[model::syntax]: this is not TOML: unclosed table, expected `]`
          fleet.toml:2:8 "": here
          help: correct the syntax; https://toml.io describes it
        "#,
    );
}

#[test]
fn a_broken_component_is_not_called_unknown_and_hides_no_mistake_of_others() {
    let fleet = two_of_everything()
        .with("components/website.toml", "requires = [")
        .edit(
            "fleet.toml",
            "networks.mesh = \"10.90.0.21\"",
            "networks.mash = \"10.90.0.21\"",
        );
    let errors = fleet.load_errors();
    assert!(errors.contains("error[model::syntax]"), "{errors}");
    assert!(
        errors.contains("error[model::unknown-network]: the node `site` is in the network `mash`"),
        "{errors}"
    );
    assert_eq!(errors.matches("error[").count(), 2, "{errors}");
}

#[test]
fn a_key_or_a_table_that_is_defined_twice_shows_both_places() {
    let fleet = files([(
        "fleet.toml",
        "name = \"a\"\n\n[networks.mesh]\n  name = 1\n\n[groups.a]\n[groups.a]\nx = 1\nx = 2\n",
    )]);
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::syntax]: the key `a` is defined twice
          fleet.toml:7:9 "a": defined again here
          fleet.toml:6:1 "[groups.a]": first defined here
          help: keep one of the two, or give one of them another name
        error[model::syntax]: the key `x` is defined twice
          fleet.toml:9:1 "x": defined again here
          fleet.toml:8:1 "x": first defined here
          help: keep one of the two, or give one of them another name
        "#,
    );
}

#[test]
fn the_first_definition_of_a_key_is_looked_for_in_its_own_table_only() {
    let fleet = files([(
        "fleet.toml",
        "name = \"a\"\n[networks.a]\ncidr = 1\n[networks.b]\nx.cidr = 1\nx.cidr = 2\n",
    )]);
    let errors = fleet.load_errors();
    assert!(
        errors.contains("fleet.toml:6:3 \"cidr\": defined again here"),
        "{errors}"
    );
    assert!(
        errors.contains("fleet.toml:5:1 \"x.cidr\": first defined here"),
        "{errors}"
    );
}

#[test]
fn a_number_out_of_range_is_refused() {
    let errors = files([("fleet.toml", "name = 99999999999999999999\n")]).load_errors();
    assert!(
        errors.contains("error[model::syntax]: this integer is out of range"),
        "{errors}"
    );
}

#[test]
fn integers_are_read_in_every_base() {
    for (written, port) in [
        ("0x50", 80),
        ("0o120", 80),
        ("0b101_0000", 80),
        ("8_080", 8080),
        ("+80", 80),
    ] {
        let fleet = two_of_everything().edit("fleet.toml", "port = 2222", &format!("port = {written}"));
        assert_eq!(fleet.model().node("site").unwrap().port, port, "{written}");
    }
}

#[test]
fn a_fleet_needs_its_file_and_has_no_others() {
    let fleet = files([
        ("pin.toml", ""),
        ("components/a/b.toml", ""),
        ("components/a.json", ""),
        ("Fleet.toml", ""),
    ]);
    let errors = fleet.load_errors();
    for file in [
        "pin.toml",
        "components/a/b.toml",
        "components/a.json",
        "Fleet.toml",
    ] {
        assert!(
            errors.contains(&format!(
                "error[model::unknown-file]: a fleet has no file `{file}`"
            )),
            "{errors}"
        );
    }
    assert!(errors.contains("error[model::no-fleet-file]"), "{errors}");
}

#[test]
fn a_components_file_name_is_its_name() {
    let errors = two_of_everything().with("components/Web.toml", "").load_errors();
    assert!(
        errors.contains("error[model::invalid-name]: the component name `Web` has 'W' where it may not"),
        "{errors}"
    );
}
