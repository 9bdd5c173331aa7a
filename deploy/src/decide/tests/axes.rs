//! The axes of the table: all values that a decision can tell apart. States are compared with `L` serial 4.

use super::*;

pub(super) fn unreachable() -> Remote {
    Remote::Unreachable(StoreError::Unreachable {
        method: "GET",
        address: "http://b/s".into(),
        reason: "refused".into(),
    })
}

pub(super) fn denied() -> Remote {
    Remote::Denied(StoreError::Denied {
        method: "GET",
        address: "http://b/s".into(),
        status: 401,
    })
}

pub(super) fn failing() -> Remote {
    let (address, head) = ("http://b/s".into(), String::new());
    Remote::Failing(StoreError::Failing {
        method: "GET",
        address,
        status: 503,
        head,
    })
}

pub(super) fn corrupt() -> Remote {
    Remote::Corrupt {
        reason: "HTML".into(),
    }
}

pub(super) fn held() -> Remote {
    Remote::Held(state("L", 4, &["a"]))
}

pub(super) fn empty() -> Remote {
    Remote::Empty(state("L", 4, &[]))
}

pub(super) fn remotes() -> Vec<Remote> {
    vec![
        unreachable(),
        Remote::Absent,
        empty(),
        held(),
        corrupt(),
        denied(),
        failing(),
    ]
}

pub(super) fn locals() -> Vec<Local> {
    let held = |lineage: &str, serial, names: &[&str]| Local::Held(state(lineage, serial, names));
    vec![
        Local::None,
        Local::Zero,
        Local::Empty(state("L", 5, &[])),
        held("L", 3, &["a"]),
        held("L", 4, &["a"]),
        held("L", 4, &["b"]),
        held("L", 5, &["a"]),
        held("M", 1, &["a"]),
        Local::Corrupt {
            reason: "torn".into(),
        },
    ]
}

pub(super) fn marker(lineage: &str, serial: u64) -> Option<Marker> {
    Some(Marker {
        lineage: lineage.into(),
        serial,
        at: Timestamp::UNIX_EPOCH,
        cause: Cause::Migrated,
    })
}

pub(super) fn markers() -> Vec<Option<Marker>> {
    vec![None, marker("L", 4), marker("L", 9), marker("M", 4)]
}

pub(super) fn holder() -> Holder {
    Holder::read(br#"{"ID":"1","Who":"bob@laptop"}"#.to_vec())
}

pub(super) fn locks() -> Vec<Lock> {
    vec![
        Lock::Free,
        Lock::Abandoned(holder()),
        Lock::Mine(holder()),
        Lock::Other(holder()),
    ]
}

pub(super) fn waits(cycle: Cycle, lineage: &str, serial: u64) -> Errored {
    Errored::Waits {
        cycle,
        state: state(lineage, serial, &["a"]),
    }
}

pub(super) fn errored() -> Vec<Errored> {
    let mut all = vec![Errored::None];
    for cycle in [Cycle::Local, Cycle::Remote] {
        all.push(Errored::Damaged {
            cycle,
            reason: "torn".into(),
        });
        all.extend(
            [("L", 3), ("L", 4), ("L", 6), ("N", 6)].map(|(lineage, serial)| waits(cycle, lineage, serial)),
        );
    }
    all
}

pub(super) fn verbs() -> Vec<Option<Verb>> {
    let named = [
        Verb::Apply,
        Verb::Plan,
        Verb::Destroy,
        Verb::State,
        Verb::Output,
        Verb::Refresh,
        Verb::Redeploy,
        Verb::Lock,
        Verb::Unlock,
    ];
    std::iter::once(None).chain(named.map(Some)).collect()
}

pub(super) fn asked() -> Vec<Asked> {
    let mut all = Vec::new();
    for verb in verbs() {
        for mode in [Mode::Steady, Mode::Bootstrap] {
            for lost_state in [LostState::Refuse, LostState::Allow] {
                for stale_lock in [StaleLock::Refuse, StaleLock::Release] {
                    all.push(Asked {
                        mode,
                        verb,
                        flags: Flags {
                            lost_state,
                            stale_lock,
                        },
                    });
                }
            }
        }
    }
    all
}
