//! The registry of Provisor's test suites.
