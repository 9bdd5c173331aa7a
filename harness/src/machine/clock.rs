//! The guest's clock: what it says, and wrong on purpose.

use std::time::{Duration, SystemTime};

use super::{Machine, RunError};
use crate::agent::Setup;
use crate::exec::ExecError;

/// How far a clock is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// It shows a time to come.
    Ahead(Duration),
    /// It shows a time that has passed.
    Behind(Duration),
}

impl Machine {
    /// What the guest's clock says.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn clock(&self) -> Result<SystemTime, RunError> {
        let said = self.run("date +%s%N").check_ok().await?.stdout_text();
        let nanoseconds = said.parse().map_err(|_| {
            self.failed(ExecError::Refused {
                command: "date +%s%N".to_owned(),
                reason: format!("{said:?} is no time"),
            })
        })?;
        Ok(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds))
    }

    /// Sets the guest's clock so far off the host's, until [`Machine::restore_clock`] or its next boot.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn skew_clock(&self, skew: Skew) -> Result<(), RunError> {
        self.note(format_args!("fault: its clock is {skew:?}"));
        self.set_clock(skewed(SystemTime::now(), skew)).await
    }

    /// Sets the guest's clock to the host's.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn restore_clock(&self) -> Result<(), RunError> {
        self.note("healed: its clock is the host's");
        self.set_clock(SystemTime::now()).await
    }

    async fn set_clock(&self, time: SystemTime) -> Result<(), RunError> {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let setup = Setup {
            clock: Some(since.as_nanos() as u64),
            ..Setup::default()
        };
        self.set_up("the clock", &setup).await
    }
}

/// A clock cannot stand before 1970.
fn skewed(now: SystemTime, skew: Skew) -> SystemTime {
    let moved = match skew {
        Skew::Ahead(by) => now.checked_add(by),
        Skew::Behind(by) => now.checked_sub(by),
    };
    moved
        .filter(|time| *time > SystemTime::UNIX_EPOCH)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_moves_the_clock_and_never_before_1970() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let by = Duration::from_secs;
        assert_eq!(skewed(at(1000), Skew::Ahead(by(60))), at(1060));
        assert_eq!(skewed(at(1000), Skew::Behind(by(60))), at(940));
        assert_eq!(skewed(at(1000), Skew::Behind(by(2000))), at(0));
    }
}
