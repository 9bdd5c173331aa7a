//! Versions, restarts and damage.

use super::*;

pub(in crate::store) fn versions_are_listed_in_their_order(place: &dyn Place) {
    let store = place.open();
    let documents = [state("A", 1, "one"), state("A", 2, "two")];
    for document in &documents {
        write(&*store, &key("a"), document);
    }
    let versions = store.versions(&key("a")).unwrap();
    let told: Vec<_> = versions
        .iter()
        .map(|is| (is.number, is.standing, is.author.as_str(), is.summary.clone()))
        .collect();
    let expected = [
        (1, Standing::Past, "alice", documents[0].summary().clone()),
        (2, Standing::Current, "alice", documents[1].summary().clone()),
    ];
    assert_eq!(told, expected);
    assert_eq!(versions[0].bytes, documents[0].bytes().len() as u64);
    assert_eq!(versions[0].stored_at.len(), "2026-01-01T00:00:00Z".len());
}

pub(in crate::store) fn old_versions_are_forgotten(place: &dyn Place) {
    let store = place.open();
    for serial in 1..=5 {
        write(&*store, &key("a"), &state("A", serial, "content"));
    }
    write(&*store, &key("b"), &state("B", 1, "content"));
    assert_eq!(KEPT, 3);
    assert_eq!(numbers(&*store, &key("a")), [3, 4, 5]);
    assert_eq!(numbers(&*store, &key("b")), [1]);
}

pub(in crate::store) fn an_old_version_comes_back_as_a_new_one(place: &dyn Place) {
    let store = place.open();
    let old = state("A", 1, "one");
    write(&*store, &key("a"), &old);
    write(&*store, &key("a"), &state("A", 2, "two"));
    assert_eq!(
        store.restore(&key("a"), 1, "bob").unwrap(),
        Restored::Stored { version: 3 }
    );
    assert_eq!(store.read(&key("a")).unwrap().unwrap(), old.bytes());
    let newest = store.versions(&key("a")).unwrap().pop().unwrap();
    assert_eq!((newest.author.as_str(), &newest.summary), ("bob", old.summary()));
    assert_eq!(
        write(&*store, &key("a"), &state("A", 2, "after")),
        Written::Stored { version: 4 }
    );
}

pub(in crate::store) fn a_deleted_state_comes_back(place: &dyn Place) {
    let store = place.open();
    let document = state("A", 1, "one");
    write(&*store, &key("a"), &document);
    store.delete(&key("a"), &Claim::None).unwrap();
    assert_eq!(
        store.restore(&key("a"), 1, "bob").unwrap(),
        Restored::Stored { version: 2 }
    );
    assert_eq!(store.read(&key("a")).unwrap().unwrap(), document.bytes());
}

pub(in crate::store) fn a_restore_that_cannot_be_says_why(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 1, "one"));
    assert_eq!(
        store.restore(&key("a"), 1, "bob").unwrap(),
        Restored::AlreadyCurrent
    );
    assert_eq!(
        store.restore(&key("a"), 7, "bob").unwrap(),
        Restored::NoSuchVersion
    );
    assert_eq!(
        store.restore(&key("a"), u64::MAX, "bob").unwrap(),
        Restored::NoSuchVersion
    );
    assert_eq!(
        store.restore(&key("b"), 1, "bob").unwrap(),
        Restored::NoSuchVersion
    );
    store.lock(&key("a"), &lock("x")).unwrap();
    assert_eq!(
        store.restore(&key("a"), 1, "bob").unwrap(),
        Restored::Held(lock("x"))
    );
}

pub(in crate::store) fn everything_is_there_after_reopening(place: &dyn Place) {
    let document = state("A", 1, "one");
    let store = place.open();
    write(&*store, &key("a"), &document);
    store.lock(&key("a"), &lock("x")).unwrap();
    drop(store);

    let store = place.open();
    assert_eq!(store.read(&key("a")).unwrap().unwrap(), document.bytes());
    assert_eq!(
        store.lock(&key("a"), &lock("y")).unwrap(),
        Locked::Held(lock("x"))
    );
}

pub(in crate::store) fn totals_count_what_is_stored(place: &dyn Place) {
    let store = place.open();
    assert_eq!(
        store.totals().unwrap(),
        Totals {
            states: 0,
            versions: 0,
            locks: 0
        }
    );
    write(&*store, &key("a"), &state("A", 1, "one"));
    write(&*store, &key("a"), &state("A", 2, "two"));
    write(&*store, &key("b"), &state("B", 1, "one"));
    store.delete(&key("b"), &Claim::None).unwrap();
    store.lock(&key("c"), &lock("x")).unwrap();
    assert_eq!(
        store.totals().unwrap(),
        Totals {
            states: 1,
            versions: 3,
            locks: 1
        }
    );
}

pub(in crate::store) fn a_sound_store_has_no_problems(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 1, "one"));
    let sealed = Document::parse(r#"{"encrypted_data":"AA=="}"#.into()).unwrap();
    write(&*store, &key("b/c"), &sealed);
    store.lock(&key("a"), &lock("x")).unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
