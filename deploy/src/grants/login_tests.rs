//! Credentials of consumers at their providers.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::civil::{Date, date};
use provisor_model::node_plan::{End, Grant, GrantKind, GrantPart, Login};

use super::at_rest::{Kept, Made, Record, Shelf};
use super::generate::{Decision, Reason};
use super::{Survey, Unused, make, survey};

const TODAY: Date = date(2026, 3, 1);

fn end(text: &str) -> End {
    let (node, component) = text.split_once('/').unwrap();
    End {
        node: node.into(),
        component: component.into(),
    }
}

fn login(consumer: &str, provider: &str) -> Login {
    let consumer = end(consumer);
    Login {
        name: format!("{}_{}", consumer.component, consumer.node),
        provision: "postgresql".into(),
        consumer,
        provider: end(provider),
    }
}

fn grant(consumer: &str, provider: &str, kind: fn(Login) -> GrantKind) -> Grant {
    Grant {
        name: format!("{consumer}/postgresql/{provider}"),
        kind: kind(login(consumer, provider)),
        files: vec![],
        units: vec![],
        generation: 0,
    }
}

/// Two components on each of two nodes.
fn four(provider: &str) -> Vec<Grant> {
    ["a/one", "a/two", "b/one", "b/two"]
        .map(|consumer| grant(consumer, provider, GrantKind::Role))
        .into()
}

fn push(shelf: &Shelf, wanted: &[Grant]) -> Survey {
    let survey = survey(shelf, wanted, None, TODAY).unwrap();
    make(shelf, &survey, None, &shelf.folder().join("ca.pem"), TODAY).unwrap();
    survey
}

fn password(shelf: &Shelf, grant: &Grant) -> String {
    let record = shelf.record(&grant.name).unwrap().unwrap();
    record.part(GrantPart::Password).unwrap().to_owned()
}

fn generation(survey: &Survey, grant: &Grant) -> u64 {
    survey.generations()[&grant.name]
}

fn shelf(directory: &tempfile::TempDir) -> Shelf {
    Shelf::at(&directory.path().join("grants"))
}

#[test]
fn every_consumer_component_has_a_long_password_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = shelf(&directory);
    let wanted = four("c/database");
    push(&shelf, &wanted);
    let passwords: BTreeSet<String> = wanted.iter().map(|grant| password(&shelf, grant)).collect();
    assert_eq!(passwords.len(), 4);
    for password in passwords {
        assert_eq!(password.len(), 43);
        assert!(
            password
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
            "it must be safe in URLs, shells and SQL"
        );
    }
}

#[test]
fn an_access_key_has_the_consumer_s_name_as_its_id_and_a_secret() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = shelf(&directory);
    let wanted = [grant("a/one", "c/storage", GrantKind::AccessKey)];
    push(&shelf, &wanted);
    let record = shelf.record(&wanted[0].name).unwrap().unwrap();
    assert_eq!(record.part(GrantPart::AccessKeyId), Some("one_a"));
    assert_eq!(record.part(GrantPart::SecretAccessKey).unwrap().len(), 43);
}

#[test]
fn a_second_run_makes_nothing_anew() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = shelf(&directory);
    let wanted = four("c/database");
    push(&shelf, &wanted);
    let before: Vec<String> = wanted.iter().map(|grant| password(&shelf, grant)).collect();
    let second = push(&shelf, &wanted);
    assert!(
        second
            .decisions()
            .all(|(_, decision)| decision == Decision::Keep { generation: 1 })
    );
    let after: Vec<String> = wanted.iter().map(|grant| password(&shelf, grant)).collect();
    assert_eq!(before, after);
}

/// What is at rest after `make` is what every later run delivers, with the number that it puts into both ends' triggers:
/// a run that dies before, between or after the two deliveries changes neither.
#[test]
fn value_and_number_are_durable_together_before_an_end_is_deployed() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = shelf(&directory);
    let wanted = four("c/database");
    push(&shelf, &wanted);
    let mut rotation = survey(&shelf, &wanted, None, TODAY).unwrap();
    rotation.rotate(&wanted[0].name).unwrap();
    make(&shelf, &rotation, None, &directory.path().join("ca.pem"), TODAY).unwrap();
    // The run dies here.
    let at_rest = shelf.record(&wanted[0].name).unwrap().unwrap();
    assert_eq!(at_rest.generation, generation(&rotation, &wanted[0]));

    let next = push(&shelf, &wanted);
    assert_eq!(generation(&next, &wanted[0]), 2);
    assert_eq!(shelf.record(&wanted[0].name).unwrap(), Some(at_rest));
    assert_eq!(generation(&next, &wanted[1]), 1, "the others are not rotated");
}

#[test]
fn another_provider_is_another_credential_and_the_old_value_is_discarded() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = shelf(&directory);
    let old = four("c/database");
    push(&shelf, &old);
    let before = password(&shelf, &old[0]);
    let mut moved = old.clone();
    moved[0] = grant("a/one", "d/database", GrantKind::Role);

    let survey = push(&shelf, &moved);
    assert_ne!(password(&shelf, &moved[0]), before);
    let discards: Vec<String> = survey
        .discards()
        .iter()
        .map(|discard| discard.why.to_string())
        .collect();
    assert_eq!(discards, ["a/one takes nothing from c/database any more"]);
    assert_eq!(shelf.record(&old[0].name).unwrap(), Some(Record::discarded(1)));
    let text = std::fs::read_to_string(shelf.path(&old[0].name)).unwrap();
    assert!(!text.contains(&before));
    assert_eq!(push(&shelf, &moved).discards(), [], "it is said once");

    // Back again: the provider must see another number than the one that it had.
    let back = push(&shelf, &old);
    assert_eq!(generation(&back, &old[0]), 2);
    assert_ne!(password(&shelf, &old[0]), before);
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_secret_that_cannot_say_its_component_is_made_anew_with_the_next_number() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = shelf(&directory);
    let wanted = four("c/database");
    let by_machine = r#"{"generation":6,"made":{"kind":"role","provision":"postgresql","consumer":"a","provider":"c"},"parts":{"password":"old"}}"#;
    write(&shelf.path(&wanted[0].name), by_machine);
    let survey = push(&shelf, &wanted);
    let decisions: Vec<Decision> = survey.decisions().map(|(_, decision)| decision).collect();
    let anew = Decision::Make {
        generation: 7,
        reason: Reason::Unclear,
    };
    assert_eq!(decisions[0], anew);
    assert_ne!(password(&shelf, &wanted[0]), "old");
}

#[test]
fn a_file_that_is_named_after_no_component_is_discarded() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = shelf(&directory);
    let wanted = four("c/database");
    let numbered = shelf.path("a/postgresql/c");
    let bare = shelf.path("database-a");
    write(&numbered, r#"{"generation":6,"value":"old"}"#);
    write(&bare, "old");
    let survey = push(&shelf, &wanted);
    let why: Vec<&Unused> = survey.discards().iter().map(|discard| &discard.why).collect();
    assert_eq!(why, [&Unused::Unclear, &Unused::Unclear]);
    assert_eq!(
        shelf.kept("a/postgresql/c").unwrap(),
        Kept::Record(Record::discarded(6))
    );
    assert!(!bare.exists());
}

#[test]
fn a_credential_for_another_component_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = shelf(&directory);
    let wanted = four("c/database");
    push(&shelf, &wanted);
    std::fs::copy(shelf.path(&wanted[1].name), shelf.path(&wanted[0].name)).unwrap();
    let survey = push(&shelf, &wanted);
    assert_eq!(generation(&survey, &wanted[0]), 2);
    let record = shelf.record(&wanted[0].name).unwrap().unwrap();
    assert_eq!(record.made, Made::Role(login("a/one", "c/database")));
    assert_ne!(password(&shelf, &wanted[0]), password(&shelf, &wanted[1]));
}

#[test]
fn other_grants_that_nothing_uses_now_stay() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = shelf(&directory);
    let certificate = Grant {
        kind: GrantKind::Certificate {
            domain: "a.example".into(),
        },
        name: "a/one/ssl/main".into(),
        ..grant("a/one", "c/database", GrantKind::Role)
    };
    push(&shelf, &[certificate]);
    assert_eq!(push(&shelf, &[]).discards(), []);
}

#[test]
fn a_rotation_of_what_is_not_there_names_what_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut survey = survey(&shelf(&directory), &four("c/database"), None, TODAY).unwrap();
    let message = survey.rotate("a/one").unwrap_err().to_string();
    assert!(message.contains("a/one/postgresql/c/database"), "{message}");
}
