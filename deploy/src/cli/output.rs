//! Where the program prints: the one edge that writes to stdout and stderr.

use std::io::Write as _;

use serde::Serialize;

/// Prints data, with a newline, to stdout.
pub(super) fn data(text: &str) {
    // A reader that has gone away wants no more.
    let _closed = writeln!(std::io::stdout().lock(), "{}", text.trim_end_matches('\n'));
}

/// Prints data as JSON to stdout.
pub(super) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => data(&text),
        Err(error) => note(&format!("error: cannot print the result as JSON: {error}")),
    }
}

/// Says something to people, on stderr. Colours are dropped where they are not wanted (`NO_COLOR`, a log).
pub(super) fn note(text: &str) {
    let _closed = writeln!(anstream::stderr().lock(), "{text}");
}

/// Says what went wrong.
pub(super) fn error(message: &dyn std::fmt::Display) {
    note(&format!("error: {message}"));
}
