//! Waiting: one deadline, one factor, the last value seen, and the guest's death.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::death::{Death, DeathWatch, Evidence};

/// Multiplies every deadline of the harness: 3 on a host three times as slow.
pub const TIMEOUT_FACTOR_VARIABLE: &str = "PROVISOR_TIMEOUT_FACTOR";

/// The pause between two looks. A look by the agent costs about 15 ms of the guest under emulation.
const PAUSE: Duration = Duration::from_millis(100);

/// A point in time after which a wait gives up. Its clock does not follow the host's wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    began: Instant,
    ends: Instant,
}

/// What one look at the guest found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look<T> {
    /// What was waited for.
    Done(T),
    /// Not yet; this is what there was instead.
    NotYet(String),
    /// It will never come, for this reason.
    Hopeless(String),
}

/// Why a wait ended without what was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// The deadline passed; `last` is what the last look found.
    TimedOut {
        /// What the last look found.
        last: String,
    },
    /// It would never have come.
    Hopeless {
        /// Why.
        reason: String,
    },
    /// The guest died.
    Died {
        /// How.
        death: Death,
    },
}

/// A wait that ended without what was waited for, with all that is known of why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitError {
    /// The guest.
    pub machine: String,
    /// What was waited for, as in "unit nginx.service".
    pub what: String,
    /// How long.
    pub waited: Duration,
    /// Why it ended.
    pub end: WaitEnd,
    /// What else the guest said about it, such as a unit's status. May be empty.
    pub detail: String,
    /// Console, QEMU's output, artifacts.
    pub evidence: Evidence,
}

impl Deadline {
    /// A deadline `patience` from now, times [`TIMEOUT_FACTOR_VARIABLE`].
    pub fn after(patience: Duration) -> Self {
        let began = Instant::now();
        Self {
            began,
            ends: began + scaled(patience),
        }
    }

    /// Time since the wait began.
    pub fn waited(&self) -> Duration {
        self.began.elapsed()
    }

    /// Time left; zero after the deadline.
    pub fn left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// Waits for `work` until the deadline; `None` after it.
    pub async fn limit<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.ends, work).await.ok()
    }
}

/// `patience` times [`TIMEOUT_FACTOR_VARIABLE`]. What is not a number of at least a thousandth counts as 1.
pub fn scaled(patience: Duration) -> Duration {
    patience.mul_f64(factor(std::env::var(TIMEOUT_FACTOR_VARIABLE).ok().as_deref()))
}

fn factor(text: Option<&str>) -> f64 {
    let number = text.and_then(|text| text.trim().parse::<f64>().ok());
    number
        .filter(|factor| (0.001..=1000.0).contains(factor))
        .unwrap_or(1.0)
}

/// Looks again and again until a look is done, the deadline passes, or the guest dies.
///
/// A look that hangs is cut off at the deadline, and what the look before it found is told.
///
/// # Errors
/// Why the wait ended.
pub async fn poll<T, L>(
    deadline: Deadline,
    death: &DeathWatch,
    mut look: impl FnMut() -> L,
) -> Result<T, WaitEnd>
where
    L: Future<Output = Look<T>>,
{
    let mut last = "nothing seen yet".to_owned();
    let looking = async {
        loop {
            match look().await {
                Look::Done(found) => return Ok(found),
                Look::Hopeless(reason) => return Err(WaitEnd::Hopeless { reason }),
                Look::NotYet(found) => last = found,
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let ended = death.race(deadline.limit(looking)).await;
    match ended {
        Ok(Some(looked)) => looked,
        Ok(None) => Err(WaitEnd::TimedOut { last }),
        Err(death) => Err(WaitEnd::Died { death }),
    }
}

impl std::error::Error for WaitError {}

impl fmt::Display for WaitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            machine,
            what,
            waited,
            end,
            detail,
            evidence,
        } = self;
        let seconds = waited.as_secs_f64();
        match end {
            WaitEnd::TimedOut { last } => write!(
                formatter,
                "`{machine}`: waited {seconds:.1} s for {what}, in vain; the last look found: {last}"
            )?,
            WaitEnd::Hopeless { reason } => {
                write!(
                    formatter,
                    "`{machine}`: {what} will not come: {reason} (after {seconds:.1} s)"
                )?;
            }
            WaitEnd::Died { death } => {
                write!(
                    formatter,
                    "`{machine}` died after {seconds:.1} s of waiting for {what}: {death}"
                )?;
            }
        }
        if !detail.is_empty() {
            write!(formatter, "\n{}", detail.trim_end())?;
        }
        if let WaitEnd::TimedOut { .. } = end {
            write!(
                formatter,
                "\nif the host is just slow, set {TIMEOUT_FACTOR_VARIABLE} above 1"
            )?;
        }
        write!(formatter, "{evidence}")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::death::death_watch;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn the_factor_is_a_sane_number_or_one() {
        let cases = [
            (None, 1.0),
            (Some("3"), 3.0),
            (Some(" 0.5 "), 0.5),
            (Some("0"), 1.0),
            (Some("-2"), 1.0),
            (Some("inf"), 1.0),
            (Some("NaN"), 1.0),
            (Some("fast"), 1.0),
        ];
        for (text, expected) in cases {
            assert_eq!(factor(text), expected, "{text:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_with_the_first_look_that_is_done() {
        let (_notice, death) = death_watch();
        let looks = Cell::new(0);
        let found = poll(Deadline::after(LONG), &death, || async {
            looks.set(looks.get() + 1);
            if looks.get() < 3 {
                Look::NotYet("activating".to_owned())
            } else {
                Look::Done(looks.get())
            }
        });
        assert_eq!(found.await, Ok(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_tells_what_the_last_look_found_even_if_the_next_one_hung() {
        let (_notice, death) = death_watch();
        let looks = Cell::new(0);
        let found: Result<(), _> = poll(Deadline::after(LONG), &death, || async {
            looks.set(looks.get() + 1);
            if looks.get() > 2 {
                std::future::pending::<()>().await;
            }
            Look::NotYet(format!("look {}", looks.get()))
        })
        .await;
        assert_eq!(
            found,
            Err(WaitEnd::TimedOut {
                last: "look 2".to_owned()
            })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_never_come_is_not_waited_for() {
        let (_notice, death) = death_watch();
        let deadline = Deadline::after(LONG);
        let found: Result<(), _> =
            poll(deadline, &death, || async { Look::Hopeless("failed".to_owned()) }).await;
        assert_eq!(
            found,
            Err(WaitEnd::Hopeless {
                reason: "failed".to_owned()
            })
        );
        assert_eq!(deadline.waited(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_death_ends_a_wait_whose_look_hangs() {
        let (notice, death) = death_watch();
        let deadline = Deadline::after(LONG);
        let waiting = poll(deadline, &death, std::future::pending::<Look<()>>);
        let (found, ()) = tokio::join!(waiting, async { notice.tell(Death::Panicked) });
        assert_eq!(
            found,
            Err(WaitEnd::Died {
                death: Death::Panicked
            })
        );
        assert_eq!(deadline.waited(), Duration::ZERO);
    }

    fn error(end: WaitEnd, detail: &str) -> String {
        let evidence = Evidence {
            machine: "app".to_owned(),
            console: "Reached target".to_owned(),
            stderr: String::new(),
            artifacts: "/artifacts".into(),
        };
        let (machine, what) = ("app".to_owned(), "unit nginx.service".to_owned());
        WaitError {
            machine,
            what,
            waited: LONG,
            end,
            detail: detail.to_owned(),
            evidence,
        }
        .to_string()
    }

    #[test]
    fn a_timeout_s_text_has_the_last_value_the_status_and_the_evidence() {
        let end = WaitEnd::TimedOut {
            last: "activating (start)".to_owned(),
        };
        let text = "\
`app`: waited 30.0 s for unit nginx.service, in vain; the last look found: activating (start)
nginx.service - a web server
if the host is just slow, set PROVISOR_TIMEOUT_FACTOR above 1
the last lines of the console of `app`:
  | Reached target
QEMU said: nothing
artifacts: /artifacts";
        assert_eq!(error(end, "nginx.service - a web server\n"), text);
    }

    #[test]
    fn a_death_s_text_has_the_death_and_the_evidence() {
        let text = "\
`app` died after 30.0 s of waiting for unit nginx.service: the guest's kernel panicked
the last lines of the console of `app`:
  | Reached target
QEMU said: nothing
artifacts: /artifacts";
        assert_eq!(
            error(
                WaitEnd::Died {
                    death: Death::Panicked
                },
                ""
            ),
            text
        );
    }
}
