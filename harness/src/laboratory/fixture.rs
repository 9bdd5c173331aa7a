//! The fixture for tests.

use rstest::fixture;

use super::Lab;

/// An empty lab for the test that runs now: `#[rstest] #[tokio::test] async fn a_test(lab: Lab)`.
///
/// # Panics
/// There can be no lab: its message says what to do.
#[fixture]
pub fn lab() -> Lab {
    match Lab::new() {
        Ok(lab) => lab,
        Err(error) => std::panic::panic_any(error.to_string()),
    }
}
