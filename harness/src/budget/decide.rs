//! Whose turn it is: a pure function of who holds what and who waits.

use std::collections::BTreeSet;

use super::claim::Claim;

/// A claim with the name of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filed {
    pub(super) file: String,
    pub(super) claim: Claim,
}

/// How long a share of a pool is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tenure {
    /// As long as the claimant likes. It may come to wait for more meanwhile.
    Long,
    /// Until work is done that waits for nobody.
    Short,
}

/// What is known when a claim is decided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing<'a> {
    pub(super) total: u64,
    pub(super) tenure: Tenure,
    /// What is held, in any order.
    pub(super) held: &'a [Filed],
    /// Those that wait, in the order they came.
    pub(super) queue: &'a [Filed],
}

/// What is to be done about a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is granted.
    Take,
    /// It is looked at again when one of these shares is given back.
    WaitForHolders(Vec<String>),
    /// It is looked at again when one of these has left the queue.
    WaitForQueue(Vec<String>),
    /// It can never be granted beside what its claimant holds, which is this much.
    TooLarge { own: u64 },
    /// All that hold something wait for more.
    Deadlock,
}

impl Standing<'_> {
    /// Decides about the claim of the file `file`, which may have left the queue.
    pub(super) fn decide(self, file: &str, claim: &Claim) -> Verdict {
        let own = self.own(claim);
        if claim.amount.saturating_add(own) > self.total {
            return Verdict::TooLarge { own };
        }
        let others = || self.queue.iter().filter(|other| other.file != file);
        let growing = |other: &&Filed| self.grows(&other.claim);
        if !self.grows(claim) {
            let before = others().filter(|other| other.file.as_str() < file);
            let first: Vec<_> = others().filter(growing).collect();
            let turn = match first.is_empty() {
                // Only the nearest: it has its own to wait for.
                true => before.clone().next_back().into_iter().collect(),
                false => first,
            };
            if !turn.is_empty() {
                // When another claim of its own claimant is granted, it goes first.
                let own = before.filter(|other| other.claim.claimant == claim.claimant);
                let files: BTreeSet<_> = turn
                    .into_iter()
                    .chain(own)
                    .map(|other| other.file.clone())
                    .collect();
                return Verdict::WaitForQueue(files.into_iter().collect());
            }
        }
        if self.fits(claim) {
            return Verdict::Take;
        }
        let waiting: BTreeSet<_> = others()
            .filter(growing)
            .map(|other| &other.claim.claimant)
            .chain([&claim.claimant])
            .collect();
        let stuck = self.tenure == Tenure::Long
            && self
                .held
                .iter()
                .all(|held| waiting.contains(&held.claim.claimant))
            && !others().filter(growing).any(|other| self.fits(&other.claim));
        if stuck {
            Verdict::Deadlock
        } else {
            Verdict::WaitForHolders(self.held.iter().map(|held| held.file.clone()).collect())
        }
    }

    pub(super) fn used(self) -> u64 {
        self.held.iter().map(|held| held.claim.amount).sum()
    }

    fn fits(self, claim: &Claim) -> bool {
        self.used().saturating_add(claim.amount) <= self.total
    }

    fn grows(self, claim: &Claim) -> bool {
        self.own(claim) > 0
    }

    /// What the claimant keeps while it waits.
    fn own(self, claim: &Claim) -> u64 {
        let own = |held: &&Filed| held.claim.claimant == claim.claimant;
        match self.tenure {
            Tenure::Long => self.held.iter().filter(own).map(|held| held.claim.amount).sum(),
            Tenure::Short => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifacts::TestName;
    use crate::budget::Claimant;

    fn claim(test: &str, amount: u64) -> Claim {
        let test = TestName {
            binary: "guests".to_owned(),
            test: test.to_owned(),
        };
        Claim {
            claimant: Claimant::of(&test),
            name: "app".to_owned(),
            amount,
        }
    }

    fn filed<const N: usize>(claims: [(&str, &str, u64); N]) -> Vec<Filed> {
        let filed = |(file, test, amount): (&str, &str, u64)| Filed {
            file: file.to_owned(),
            claim: claim(test, amount),
        };
        claims.map(filed).into()
    }

    /// What `file`, which is in the queue, is told in a pool of 10.
    fn decide(tenure: Tenure, held: &[Filed], queue: &[Filed], file: &str) -> Verdict {
        let standing = Standing {
            total: 10,
            tenure,
            held,
            queue,
        };
        let mine = queue.iter().find(|filed| filed.file == file).unwrap();
        standing.decide(file, &mine.claim)
    }

    fn holders(files: &[&str]) -> Verdict {
        Verdict::WaitForHolders(files.iter().map(|&file| file.to_owned()).collect())
    }

    fn queue(files: &[&str]) -> Verdict {
        Verdict::WaitForQueue(files.iter().map(|&file| file.to_owned()).collect())
    }

    #[test]
    fn who_is_first_takes_what_fits_and_nobody_overtakes() {
        let waiting = filed([("1", "large", 8), ("2", "small", 1), ("3", "small too", 1)]);
        let cases = [
            (filed([]), "1", Verdict::Take),
            (filed([("h", "other", 2)]), "1", Verdict::Take),
            (
                filed([("h", "other", 2), ("i", "another", 1)]),
                "1",
                holders(&["h", "i"]),
            ),
            (filed([("h", "other", 3)]), "2", queue(&["1"])),
            (filed([]), "3", queue(&["2"])),
        ];
        for (held, file, verdict) in cases {
            assert_eq!(
                decide(Tenure::Long, &held, &waiting, file),
                verdict,
                "{held:?} {file}"
            );
        }
    }

    #[test]
    fn what_no_budget_ever_gives_is_refused_at_once_whoever_is_before_it() {
        let waiting = filed([("1", "first", 8), ("2", "huge", 11), ("3", "grown", 5)]);
        let held = filed([("h", "grown", 6)]);
        assert_eq!(
            decide(Tenure::Long, &held, &waiting, "2"),
            Verdict::TooLarge { own: 0 }
        );
        assert_eq!(
            decide(Tenure::Long, &held, &waiting, "3"),
            Verdict::TooLarge { own: 6 }
        );
    }

    #[test]
    fn who_holds_some_and_wants_more_goes_before_those_that_hold_none() {
        let held = filed([("g", "grows", 2), ("h", "other", 2)]);
        let waiting = filed([("1", "none", 6), ("2", "grows", 6)]);
        assert_eq!(decide(Tenure::Long, &held, &waiting, "2"), Verdict::Take);
        assert_eq!(decide(Tenure::Long, &held, &waiting, "1"), queue(&["2"]));
    }

    #[test]
    fn who_waits_is_looked_at_again_when_its_own_test_comes_to_hold_some() {
        let waiting = filed([("1", "mine", 4), ("2", "other", 8), ("3", "mine", 4)]);
        assert_eq!(decide(Tenure::Long, &[], &waiting, "3"), queue(&["1", "2"]));
    }

    #[test]
    fn two_that_wait_for_each_other_are_told_apart_from_two_that_wait_for_a_third() {
        let waiting = filed([("1", "a", 4), ("2", "b", 4)]);
        let pair = filed([("g", "a", 5), ("h", "b", 4)]);
        assert_eq!(decide(Tenure::Long, &pair, &waiting, "2"), Verdict::Deadlock);
        assert_eq!(
            decide(Tenure::Long, &pair, &waiting[..1], "1"),
            holders(&["g", "h"])
        );

        let three = filed([("g", "a", 4), ("h", "b", 4), ("i", "c", 2)]);
        assert_eq!(
            decide(Tenure::Long, &three, &waiting, "2"),
            holders(&["g", "h", "i"])
        );
    }

    #[test]
    fn it_is_no_deadlock_as_long_as_one_of_those_that_wait_can_go_on() {
        let held = filed([("g", "a", 4), ("h", "b", 4)]);
        let waiting = filed([("1", "a", 2), ("2", "b", 4)]);
        assert_eq!(decide(Tenure::Long, &held, &waiting, "2"), holders(&["g", "h"]));
        assert_eq!(decide(Tenure::Long, &held, &waiting, "1"), Verdict::Take);
    }

    #[test]
    fn turns_end_by_themselves_so_that_nobody_goes_first_and_none_deadlocks() {
        let held = filed([("g", "a", 10)]);
        let waiting = filed([("1", "b", 1), ("2", "a", 10)]);
        assert_eq!(decide(Tenure::Short, &held, &waiting, "1"), holders(&["g"]));
        assert_eq!(decide(Tenure::Short, &held, &waiting, "2"), queue(&["1"]));
        assert_eq!(decide(Tenure::Short, &held, &waiting[1..], "2"), holders(&["g"]));
    }
}
