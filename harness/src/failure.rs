//! What a test returns.

use std::error::Error;
use std::fmt;

/// What a test, or a step of one, returns: [`Failure`] takes any error, so that `?` is all that is needed.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// Any error, shown to people: a test runner prints what a test returned by `Debug`, and here that is the error's own text and
/// that of its causes.
pub struct Failure(Box<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.0.to_string();
        let causes = std::iter::successors(self.0.source(), |cause| cause.source()).map(ToString::to_string);
        // Causes first: an error's text ends in where the evidence is.
        causes.filter(|cause| !told.contains(cause.as_str())).try_for_each(|cause| writeln!(formatter, "{cause}"))?;
        formatter.write_str(&told)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot start the guest: {source}")]
    struct Outer {
        source: Inner,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("QEMU ended")]
    struct Inner {
        source: std::io::Error,
    }

    #[test]
    fn a_test_runner_shows_each_text_once_and_the_error_s_own_last() {
        let lowest = std::io::Error::other("no space left");
        let failure = Failure::from(Outer { source: Inner { source: lowest } });
        assert_eq!(format!("{failure:?}"), "no space left\ncannot start the guest: QEMU ended");
        assert_eq!(failure.to_string(), "cannot start the guest: QEMU ended");
        assert_eq!(format!("{:?}", Failure::from("plain")), "plain");
    }
}
