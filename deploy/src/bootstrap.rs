//! The wait between a bootstrap's local cycle and its migration: for a condition, not for a time.

use std::time::{Duration, Instant};

use crate::progress::{Event, Progress};
use crate::runner::Interrupts;
use crate::state::StateError;
use crate::store::{Client, Read, StoreError};

/// The first pause between two polls, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause: a person sees the backend come up within it.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Why the wait ended without a backend.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// It did not come up in time.
    #[error(
        "the backend that was deployed does not serve after {seconds} s; the last answer was: {last}\nlook at the backend's unit on its node (systemctl status, journalctl) and at the firewall between, then run --bootstrap again: it resumes here"
    )]
    TooLate {
        /// How long was waited.
        seconds: u64,
        /// The last answer.
        last: StoreError,
    },
    /// It answers, and waiting will not change the answer.
    #[error(
        "the backend that was deployed answers, but not as it should: {answer}\nthe state is kept in the working directory; once this is settled, run --bootstrap again: it resumes here"
    )]
    Decisive {
        /// The answer.
        answer: StoreError,
    },
    /// Something else answers there.
    #[error(
        "what answers at the backend's address is no state backend: {reason}\ncheck the address and the port; once this is settled, run --bootstrap again: it resumes here"
    )]
    SomethingElse {
        /// What is wrong with the answer.
        reason: StateError,
    },
    /// A signal came.
    #[error("interrupted while waiting for the backend; run --bootstrap again: it resumes here")]
    Interrupted,
}

/// Polls the state address until the backend serves it, for at most `limit`. Returns how many polls it took.
///
/// The state address and not a health page: that one would not show that the credentials fit.
pub fn wait_for_backend(
    client: &Client,
    limit: Duration,
    interrupts: &Interrupts,
    progress: &dyn Progress,
) -> Result<u32, WaitError> {
    let start = Instant::now();
    let (mut pause, mut told) = (FIRST_PAUSE, String::new());
    for poll in 1.. {
        let last = match client.read_once() {
            Ok(Read::Absent | Read::Held(_)) => return Ok(poll),
            Ok(Read::Corrupt(reason)) => return Err(WaitError::SomethingElse { reason }),
            Err(
                error @ (StoreError::Unreachable { .. }
                | StoreError::CutOff { .. }
                | StoreError::Failing { .. }),
            ) => error,
            Err(
                answer @ (StoreError::Denied { .. }
                | StoreError::Redirected { .. }
                | StoreError::Unexpected { .. }
                | StoreError::CaCertificates { .. }),
            ) => return Err(WaitError::Decisive { answer }),
        };
        if interrupts.seen() > 0 {
            return Err(WaitError::Interrupted);
        }
        if start.elapsed() >= limit {
            return Err(WaitError::TooLate {
                seconds: limit.as_secs(),
                last,
            });
        }
        // Only what is new is worth a line.
        let text = last.to_string();
        if text != told {
            progress.event(Event::Note {
                message: format!("waiting: {text}"),
            });
            told = text;
        }
        std::thread::sleep(pause.min(limit.saturating_sub(start.elapsed())));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Err(WaitError::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::StateAddress;
    use crate::store::fake_backend::{FakeBackend, Fault};
    use crate::store::{Credentials, Patience};
    use rstest::rstest;

    struct Silent;

    impl Progress for Silent {
        fn event(&self, _event: Event) {}
    }

    fn wait(url: &str, limit: Duration) -> Result<u32, WaitError> {
        let address = StateAddress::parse(url).unwrap();
        let client = Client::new(address, &Credentials::default(), Patience::of_a_poll()).unwrap();
        wait_for_backend(&client, limit, &Interrupts::watch().unwrap(), &Silent)
    }

    #[test]
    fn a_backend_that_comes_up_is_waited_for() {
        let backend = FakeBackend::start();
        backend.script("GET", 1, Fault::DieReading);
        backend.script("GET", 2, Fault::Answer(503, "", "starting"));
        assert_eq!(wait(&backend.url(), Duration::from_secs(60)).unwrap(), 3);
    }

    #[rstest]
    #[case::wrong_credentials(401, "")]
    #[case::a_redirect(301, "Location: http://elsewhere/\r\n")]
    #[case::a_server_without_states(405, "")]
    fn an_answer_that_waiting_does_not_change_ends_the_wait_at_once(
        #[case] status: u16,
        #[case] headers: &'static str,
    ) {
        let backend = FakeBackend::start();
        backend.script("GET", 1, Fault::Answer(status, headers, ""));
        assert!(matches!(
            wait(&backend.url(), Duration::from_secs(60)),
            Err(WaitError::Decisive { .. })
        ));
        assert_eq!(backend.methods().len(), 1);
    }

    #[test]
    fn something_else_at_the_address_ends_the_wait_at_once() {
        let backend = FakeBackend::start();
        backend.script("GET", 1, Fault::Answer(200, "", "<html>Welcome to nginx!</html>"));
        assert!(matches!(
            wait(&backend.url(), Duration::from_secs(60)),
            Err(WaitError::SomethingElse { .. })
        ));
    }

    #[test]
    fn a_backend_that_never_comes_up_is_told_with_its_last_answer() {
        let url = FakeBackend::start().url();
        let error = wait(&url, Duration::ZERO).unwrap_err();
        assert!(
            matches!(
                error,
                WaitError::TooLate {
                    last: StoreError::Unreachable { .. },
                    ..
                }
            ),
            "{error}"
        );
    }
}
