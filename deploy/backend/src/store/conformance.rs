//! What every store promises, as tests that each implementation runs.

use std::sync::Barrier;
use std::thread;

use super::{Deleted, Locked, Restored, Standing, Store, Totals, Unlocked, Write, Written};
use crate::state::{Claim, Document, Identity, Lock, LockId, Refusal, Release, StateKey};

/// An empty store under test. Dropping it leaves nothing behind.
pub(super) trait Place: Sync {
    /// Opens the store. Each call is a connection of its own to the same content, as after a restart or in a second
    /// process. It keeps [`KEPT`] versions.
    fn open(&self) -> Box<dyn Store>;
}

/// Versions that a store under test keeps.
pub(super) const KEPT: u32 = 3;

/// Makes one test of each claim for the place that `$place` makes.
macro_rules! conforms {
    ($place:path) => {
        $crate::store::conformance::each_claim! { $place;
            nothing_is_stored_under_a_new_key
            bytes_come_back_as_they_were_written
            keys_do_not_share_anything
            a_write_repeated_is_no_new_version
            an_old_serial_is_refused
            other_content_under_the_stored_serial_is_refused
            another_lineage_is_refused_over_resources
            another_lineage_follows_a_destroyed_fleet
            only_the_holder_writes_under_a_lock
            a_claim_without_a_lock_passes
            a_lock_is_taken_once
            a_holder_takes_its_lock_again_and_keeps_the_first_bytes
            only_the_holder_releases_its_lock
            a_release_by_force_takes_any_lock
            releasing_a_free_lock_succeeds
            a_deleted_state_is_gone_and_keeps_its_versions
            a_delete_under_a_lock_needs_its_holder
            any_lineage_follows_a_deleted_state
            versions_are_listed_in_their_order
            old_versions_are_forgotten
            an_old_version_comes_back_as_a_new_one
            a_deleted_state_comes_back
            a_restore_that_cannot_be_says_why
            everything_is_there_after_reopening
            one_of_many_takes_the_lock
            one_of_many_writes_a_serial
            totals_count_what_is_stored
            a_sound_store_has_no_problems
        }
    };
}

macro_rules! each_claim {
    ($place:path; $($claim:ident)+) => {
        $(
            #[test]
            fn $claim() {
                $crate::store::conformance::$claim(&$place());
            }
        )+
    };
}

pub(super) use {conforms, each_claim};

fn key(text: &str) -> StateKey {
    text.parse().unwrap()
}

fn lock(id: &str) -> Lock {
    Lock::parse(format!(r#"{{"ID":"{id}","Who":"{id}@host","Created":"2026-01-01T00:00:00.120Z"}}"#).into())
        .unwrap()
}

fn holder(id: &str) -> LockId {
    LockId::new(id).unwrap()
}

/// A state with one resource, whose value is `content`.
fn state(lineage: &str, serial: u64, content: &str) -> Document {
    let resources = format!(r#"[{{"value":"{content}"}}]"#);
    document(lineage, serial, &resources)
}

fn destroyed(lineage: &str, serial: u64) -> Document {
    document(lineage, serial, "[]")
}

fn document(lineage: &str, serial: u64, resources: &str) -> Document {
    let body = format!(
        "{{\"version\":4,\"serial\":{serial},\"lineage\":\"{lineage}\",\n\t\"resources\" : {resources}}}\n"
    );
    Document::parse(body.into()).unwrap()
}

fn write(store: &dyn Store, key: &StateKey, document: &Document) -> Written {
    write_under(store, key, document, &Claim::None)
}

fn write_under(store: &dyn Store, key: &StateKey, document: &Document, claim: &Claim) -> Written {
    store
        .write(
            key,
            &Write {
                document,
                claim,
                author: "alice",
            },
        )
        .unwrap()
}

fn numbers(store: &dyn Store, key: &StateKey) -> Vec<u64> {
    store
        .versions(key)
        .unwrap()
        .iter()
        .map(|version| version.number)
        .collect()
}

pub(super) fn nothing_is_stored_under_a_new_key(place: &dyn Place) {
    let store = place.open();
    assert_eq!(store.read(&key("a")).unwrap(), None);
    assert_eq!(store.versions(&key("a")).unwrap(), []);
}

pub(super) fn bytes_come_back_as_they_were_written(place: &dyn Place) {
    let store = place.open();
    let document = state("A", 1, "é \\u0000 \\t");
    assert_eq!(
        write(&*store, &key("a"), &document),
        Written::Stored { version: 1 }
    );
    assert_eq!(store.read(&key("a")).unwrap().unwrap(), document.bytes());
}

pub(super) fn keys_do_not_share_anything(place: &dyn Place) {
    let store = place.open();
    let (short, long) = (key("a"), key("a/b"));
    write(&*store, &short, &state("A", 1, "one"));
    store.lock(&short, &lock("x")).unwrap();
    assert_eq!(store.read(&long).unwrap(), None);
    assert_eq!(store.lock(&long, &lock("y")).unwrap(), Locked::Taken);
    store.delete(&long, &Claim::Holder(holder("y"))).unwrap();
    assert!(store.read(&short).unwrap().is_some());
}

pub(super) fn a_write_repeated_is_no_new_version(place: &dyn Place) {
    let store = place.open();
    let document = state("A", 1, "one");
    write(&*store, &key("a"), &document);
    assert_eq!(write(&*store, &key("a"), &document), Written::AlreadyStored);
    assert_eq!(numbers(&*store, &key("a")), [1]);
}

pub(super) fn an_old_serial_is_refused(place: &dyn Place) {
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

pub(super) fn other_content_under_the_stored_serial_is_refused(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 5, "one"));
    let refused = Written::Refused(Refusal::SameSerial { serial: 5 });
    assert_eq!(write(&*store, &key("a"), &state("A", 5, "two")), refused);
}

pub(super) fn another_lineage_is_refused_over_resources(place: &dyn Place) {
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

pub(super) fn another_lineage_follows_a_destroyed_fleet(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &destroyed("A", 5));
    assert_eq!(
        write(&*store, &key("a"), &state("B", 1, "new")),
        Written::Stored { version: 2 }
    );
}

pub(super) fn only_the_holder_writes_under_a_lock(place: &dyn Place) {
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

pub(super) fn a_claim_without_a_lock_passes(place: &dyn Place) {
    let store = place.open();
    let claim = Claim::Holder(holder("x"));
    let written = write_under(&*store, &key("a"), &state("A", 1, "one"), &claim);
    assert_eq!(written, Written::Stored { version: 1 });
}

pub(super) fn a_lock_is_taken_once(place: &dyn Place) {
    let store = place.open();
    assert_eq!(store.lock(&key("a"), &lock("x")).unwrap(), Locked::Taken);
    assert_eq!(
        store.lock(&key("a"), &lock("y")).unwrap(),
        Locked::Held(lock("x"))
    );
}

pub(super) fn a_holder_takes_its_lock_again_and_keeps_the_first_bytes(place: &dyn Place) {
    let store = place.open();
    store.lock(&key("a"), &lock("x")).unwrap();
    let again = Lock::parse(r#"{"ID":"x","Who":"other"}"#.into()).unwrap();
    assert_eq!(store.lock(&key("a"), &again).unwrap(), Locked::Taken);
    assert_eq!(
        store.lock(&key("a"), &lock("y")).unwrap(),
        Locked::Held(lock("x"))
    );
}

pub(super) fn only_the_holder_releases_its_lock(place: &dyn Place) {
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

pub(super) fn a_release_by_force_takes_any_lock(place: &dyn Place) {
    let store = place.open();
    store.lock(&key("a"), &lock("x")).unwrap();
    assert_eq!(
        store.unlock(&key("a"), &Release::Forced).unwrap(),
        Unlocked::Released
    );
    assert_eq!(store.lock(&key("a"), &lock("y")).unwrap(), Locked::Taken);
}

pub(super) fn releasing_a_free_lock_succeeds(place: &dyn Place) {
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

pub(super) fn a_deleted_state_is_gone_and_keeps_its_versions(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 1, "one"));
    assert_eq!(store.delete(&key("a"), &Claim::None).unwrap(), Deleted::Gone);
    assert_eq!(store.read(&key("a")).unwrap(), None);
    assert_eq!(store.versions(&key("a")).unwrap()[0].standing, Standing::Past);
    assert_eq!(store.delete(&key("a"), &Claim::None).unwrap(), Deleted::Gone);
}

pub(super) fn a_delete_under_a_lock_needs_its_holder(place: &dyn Place) {
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

pub(super) fn any_lineage_follows_a_deleted_state(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 9, "one"));
    store.delete(&key("a"), &Claim::None).unwrap();
    assert_eq!(
        write(&*store, &key("a"), &state("B", 1, "new")),
        Written::Stored { version: 2 }
    );
}

pub(super) fn versions_are_listed_in_their_order(place: &dyn Place) {
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

pub(super) fn old_versions_are_forgotten(place: &dyn Place) {
    let store = place.open();
    for serial in 1..=5 {
        write(&*store, &key("a"), &state("A", serial, "content"));
    }
    write(&*store, &key("b"), &state("B", 1, "content"));
    assert_eq!(KEPT, 3);
    assert_eq!(numbers(&*store, &key("a")), [3, 4, 5]);
    assert_eq!(numbers(&*store, &key("b")), [1]);
}

pub(super) fn an_old_version_comes_back_as_a_new_one(place: &dyn Place) {
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

pub(super) fn a_deleted_state_comes_back(place: &dyn Place) {
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

pub(super) fn a_restore_that_cannot_be_says_why(place: &dyn Place) {
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

pub(super) fn everything_is_there_after_reopening(place: &dyn Place) {
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

/// How many connections race for one thing.
const RACERS: usize = 8;

/// Lets each racer do `run` on a connection of its own, all from one moment on.
fn race<T: Send>(place: &dyn Place, run: impl Fn(usize, &dyn Store) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(RACERS);
    thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|number| {
                let (start, run) = (&start, &run);
                scope.spawn(move || {
                    let store = place.open();
                    start.wait();
                    run(number, &*store)
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    })
}

pub(super) fn one_of_many_takes_the_lock(place: &dyn Place) {
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

pub(super) fn one_of_many_writes_a_serial(place: &dyn Place) {
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

pub(super) fn totals_count_what_is_stored(place: &dyn Place) {
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

pub(super) fn a_sound_store_has_no_problems(place: &dyn Place) {
    let store = place.open();
    write(&*store, &key("a"), &state("A", 1, "one"));
    let sealed = Document::parse(r#"{"encrypted_data":"AA=="}"#.into()).unwrap();
    write(&*store, &key("b/c"), &sealed);
    store.lock(&key("a"), &lock("x")).unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
