//! Locks: who holds one, and what it keeps out.

use super::*;

pub(in crate::store) fn only_the_holder_writes_under_a_lock(place: &dyn Place) {
    let store = place.open();
    let document = state("A", 1, "one");
    store.lock(&key("a"), &lock("x")).unwrap();
    assert_eq!(write(&*store, &key("a"), &document), Written::Held(lock("x")));
    let other = Claim::Holder(holder("y"));
    assert_eq!(
        write_under(&*store, &key("a"), &document, &other),
        Written::Held(lock("x"))
    );
    assert_eq!(store.read(&key("a")).unwrap(), None);
    let own = Claim::Holder(holder("x"));
    assert_eq!(
        write_under(&*store, &key("a"), &document, &own),
        Written::Stored { version: 1 }
    );
}

pub(in crate::store) fn a_claim_without_a_lock_passes(place: &dyn Place) {
    let store = place.open();
    let claim = Claim::Holder(holder("x"));
    let written = write_under(&*store, &key("a"), &state("A", 1, "one"), &claim);
    assert_eq!(written, Written::Stored { version: 1 });
}

pub(in crate::store) fn a_lock_is_taken_once(place: &dyn Place) {
    let store = place.open();
    assert_eq!(store.lock(&key("a"), &lock("x")).unwrap(), Locked::Taken);
    assert_eq!(
        store.lock(&key("a"), &lock("y")).unwrap(),
        Locked::Held(lock("x"))
    );
}

pub(in crate::store) fn a_holder_takes_its_lock_again_and_keeps_the_first_bytes(place: &dyn Place) {
    let store = place.open();
    store.lock(&key("a"), &lock("x")).unwrap();
    let again = Lock::parse(r#"{"ID":"x","Who":"other"}"#.into()).unwrap();
    assert_eq!(store.lock(&key("a"), &again).unwrap(), Locked::Taken);
    assert_eq!(
        store.lock(&key("a"), &lock("y")).unwrap(),
        Locked::Held(lock("x"))
    );
}

pub(in crate::store) fn only_the_holder_releases_its_lock(place: &dyn Place) {
    let store = place.open();
    store.lock(&key("a"), &lock("x")).unwrap();
    let other = Release::Holder(holder("y"));
    assert_eq!(
        store.unlock(&key("a"), &other).unwrap(),
        Unlocked::Held(lock("x"))
    );
    assert_eq!(
        store.unlock(&key("a"), &Release::Holder(holder("x"))).unwrap(),
        Unlocked::Released
    );
    assert_eq!(store.lock(&key("a"), &lock("y")).unwrap(), Locked::Taken);
}

pub(in crate::store) fn a_release_by_force_takes_any_lock(place: &dyn Place) {
    let store = place.open();
    store.lock(&key("a"), &lock("x")).unwrap();
    assert_eq!(
        store.unlock(&key("a"), &Release::Forced).unwrap(),
        Unlocked::Released
    );
    assert_eq!(store.lock(&key("a"), &lock("y")).unwrap(), Locked::Taken);
}

pub(in crate::store) fn releasing_a_free_lock_succeeds(place: &dyn Place) {
    let store = place.open();
    assert_eq!(
        store.unlock(&key("a"), &Release::Holder(holder("x"))).unwrap(),
        Unlocked::WasFree
    );
    assert_eq!(
        store.unlock(&key("a"), &Release::Forced).unwrap(),
        Unlocked::WasFree
    );
}

pub(in crate::store) fn a_delete_under_a_lock_needs_its_holder(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 1, "one"));
    store.lock(&key("a"), &lock("x")).unwrap();
    assert_eq!(
        store.delete(&key("a"), &Claim::None).unwrap(),
        Deleted::Held(lock("x"))
    );
    assert_eq!(
        store.delete(&key("a"), &Claim::Holder(holder("y"))).unwrap(),
        Deleted::Held(lock("x"))
    );
    assert!(store.read(&key("a")).unwrap().is_some());
    assert_eq!(
        store.delete(&key("a"), &Claim::Holder(holder("x"))).unwrap(),
        Deleted::Gone
    );
    assert_eq!(
        store.lock(&key("a"), &lock("y")).unwrap(),
        Locked::Held(lock("x"))
    );
}

pub(in crate::store) fn one_of_many_takes_the_lock(place: &dyn Place) {
    place.open();
    let answers = race(place, |number, store| {
        store.lock(&key("a"), &lock(&format!("racer-{number}"))).unwrap()
    });
    let winner = answers
        .iter()
        .position(|answer| *answer == Locked::Taken)
        .unwrap();
    let held = Locked::Held(lock(&format!("racer-{winner}")));
    assert_eq!(
        answers.iter().filter(|answer| **answer == held).count(),
        RACERS - 1
    );
}

pub(in crate::store) fn one_of_many_writes_a_serial(place: &dyn Place) {
    write(&*place.open(), &key("a"), &state("A", 1, "before"));
    let answers = race(place, |number, store| {
        write(store, &key("a"), &state("A", 2, &format!("racer-{number}")))
    });
    let stored = answers
        .iter()
        .filter(|answer| **answer == Written::Stored { version: 2 })
        .count();
    let refused = Written::Refused(Refusal::SameSerial { serial: 2 });
    let refusals = answers.iter().filter(|answer| **answer == refused).count();
    assert_eq!((stored, refusals), (1, RACERS - 1));
}
