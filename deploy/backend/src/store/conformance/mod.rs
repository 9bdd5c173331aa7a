//! What every store promises, as tests that each implementation runs.

pub(super) mod locks;
pub(super) mod versions;
pub(super) mod writes;

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
            writes:
                nothing_is_stored_under_a_new_key
                bytes_come_back_as_they_were_written
                keys_do_not_share_anything
                a_write_repeated_is_no_new_version
                an_old_serial_is_refused
                other_content_under_the_stored_serial_is_refused
                another_lineage_is_refused_over_resources
                another_lineage_follows_a_destroyed_fleet
                a_deleted_state_is_gone_and_keeps_its_versions
                any_lineage_follows_a_deleted_state;
            locks:
                only_the_holder_writes_under_a_lock
                a_claim_without_a_lock_passes
                a_lock_is_taken_once
                a_holder_takes_its_lock_again_and_keeps_the_first_bytes
                only_the_holder_releases_its_lock
                a_release_by_force_takes_any_lock
                releasing_a_free_lock_succeeds
                a_delete_under_a_lock_needs_its_holder
                one_of_many_takes_the_lock
                one_of_many_writes_a_serial;
            versions:
                versions_are_listed_in_their_order
                old_versions_are_forgotten
                an_old_version_comes_back_as_a_new_one
                a_deleted_state_comes_back
                a_restore_that_cannot_be_says_why
                everything_is_there_after_reopening
                totals_count_what_is_stored
                a_sound_store_has_no_problems;
        }
    };
}

macro_rules! each_claim {
    ($place:path; $($group:ident: $($claim:ident)+;)+) => {
        $($(
            #[test]
            fn $claim() {
                $crate::store::conformance::$group::$claim(&$place());
            }
        )+)+
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
