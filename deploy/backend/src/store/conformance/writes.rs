//! States: what is stored, and what may replace it.

use super::*;

pub(in crate::store) fn nothing_is_stored_under_a_new_key(place: &dyn Place) {
    let store = place.open();
    assert_eq!(store.read(&key("a")).unwrap(), None);
    assert_eq!(store.versions(&key("a")).unwrap(), []);
}

pub(in crate::store) fn bytes_come_back_as_they_were_written(place: &dyn Place) {
    let store = place.open();
    let document = state("A", 1, "é \\u0000 \\t");
    assert_eq!(
        write(&*store, &key("a"), &document),
        Written::Stored { version: 1 }
    );
    assert_eq!(store.read(&key("a")).unwrap().unwrap(), document.bytes());
}

pub(in crate::store) fn keys_do_not_share_anything(place: &dyn Place) {
    let store = place.open();
    let (short, long) = (key("a"), key("a/b"));
    write(&*store, &short, &state("A", 1, "one"));
    store.lock(&short, &lock("x")).unwrap();
    assert_eq!(store.read(&long).unwrap(), None);
    assert_eq!(store.lock(&long, &lock("y")).unwrap(), Locked::Taken);
    store.delete(&long, &Claim::Holder(holder("y"))).unwrap();
    assert!(store.read(&short).unwrap().is_some());
}

pub(in crate::store) fn a_write_repeated_is_no_new_version(place: &dyn Place) {
    let store = place.open();
    let document = state("A", 1, "one");
    write(&*store, &key("a"), &document);
    assert_eq!(write(&*store, &key("a"), &document), Written::AlreadyStored);
    assert_eq!(numbers(&*store, &key("a")), [1]);
}

pub(in crate::store) fn an_old_serial_is_refused(place: &dyn Place) {
    let store = place.open();
    let current = state("A", 5, "five");
    write(&*store, &key("a"), &current);
    let refused = Written::Refused(Refusal::OldSerial {
        current: 5,
        incoming: 4,
    });
    assert_eq!(write(&*store, &key("a"), &state("A", 4, "four")), refused);
    assert_eq!(store.read(&key("a")).unwrap().unwrap(), current.bytes());
}

pub(in crate::store) fn other_content_under_the_stored_serial_is_refused(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 5, "one"));
    let refused = Written::Refused(Refusal::SameSerial { serial: 5 });
    assert_eq!(write(&*store, &key("a"), &state("A", 5, "two")), refused);
}

pub(in crate::store) fn another_lineage_is_refused_over_resources(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 5, "one"));
    let refused = Written::Refused(Refusal::OtherLineage {
        current: Identity {
            lineage: "A".into(),
            serial: 5,
        },
        incoming: Identity {
            lineage: "B".into(),
            serial: 9,
        },
    });
    assert_eq!(write(&*store, &key("a"), &state("B", 9, "two")), refused);
}

pub(in crate::store) fn another_lineage_follows_a_destroyed_fleet(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &destroyed("A", 5));
    assert_eq!(
        write(&*store, &key("a"), &state("B", 1, "new")),
        Written::Stored { version: 2 }
    );
}

pub(in crate::store) fn a_deleted_state_is_gone_and_keeps_its_versions(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 1, "one"));
    assert_eq!(store.delete(&key("a"), &Claim::None).unwrap(), Deleted::Gone);
    assert_eq!(store.read(&key("a")).unwrap(), None);
    assert_eq!(store.versions(&key("a")).unwrap()[0].standing, Standing::Past);
    assert_eq!(store.delete(&key("a"), &Claim::None).unwrap(), Deleted::Gone);
}

pub(in crate::store) fn any_lineage_follows_a_deleted_state(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 9, "one"));
    store.delete(&key("a"), &Claim::None).unwrap();
    assert_eq!(
        write(&*store, &key("a"), &state("B", 1, "new")),
        Written::Stored { version: 2 }
    );
}
