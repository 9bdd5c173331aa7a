//! The name of a state.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

/// The name of a state: one or more segments, joined by `/`.
///
/// A segment is UTF-8 without `/` and without control characters, and is neither empty nor `.` nor `..`. So the joined
/// form says where each segment ends, and two names are equal only if their segments are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateKey(String);

impl StateKey {
    /// Longest key in bytes, decoded.
    pub const MAX_BYTES: usize = 512;

    /// Reads the segments of a URL path, still percent-encoded. An encoded `/` is refused, since it would make two
    /// keys of one name.
    pub fn from_url_segments<'a>(segments: impl IntoIterator<Item = &'a str>) -> Result<Self, KeyError> {
        let decoded = segments.into_iter().map(decode).collect::<Result<Vec<_>, _>>()?;
        Self::from_segments(&decoded)
    }

    /// The key as it stands in a log or on a command line: decoded, joined by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn from_segments(segments: &[String]) -> Result<Self, KeyError> {
        if segments.is_empty() {
            return Err(KeyError::Empty);
        }
        if let Some(bad) = segments.iter().find(|segment| !is_segment(segment)) {
            return Err(KeyError::Segment {
                segment: bad.escape_debug().to_string(),
            });
        }
        let joined = segments.join("/");
        if joined.len() > Self::MAX_BYTES {
            return Err(KeyError::TooLong { bytes: joined.len() });
        }
        Ok(Self(joined))
    }
}

impl FromStr for StateKey {
    type Err = KeyError;

    /// Reads the decoded form, as [`StateKey::as_str`] gives it.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let segments: Vec<String> = text.split('/').map(str::to_owned).collect();
        Self::from_segments(&segments)
    }
}

impl fmt::Display for StateKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Why a text is not a state key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing follows `/state`.
    #[error("the address names no state; put its name after /state/, as in /state/production/web")]
    Empty,
    /// A segment that is no name.
    #[error(
        "\"{segment}\" cannot be a part of a state's name; use text without control characters that is not empty, \
         \".\" or \"..\", and holds no encoded \"/\""
    )]
    Segment {
        /// The segment, escaped.
        segment: String,
    },
    /// A segment with a `%` that starts no escape, or one that is not UTF-8.
    #[error("\"{segment}\" is not percent-encoded UTF-8; write a plain % as %25")]
    Encoding {
        /// The segment as sent.
        segment: String,
    },
    /// More than [`StateKey::MAX_BYTES`].
    #[error("the state's name has {bytes} bytes; use at most {}", StateKey::MAX_BYTES)]
    TooLong {
        /// Length in bytes.
        bytes: usize,
    },
}

fn is_segment(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..") && !segment.chars().any(|letter| letter == '/' || letter.is_control())
}

/// Strict: `percent_decode_str` alone would take `%zz` for itself, and so give two spellings of one key.
fn decode(segment: &str) -> Result<String, KeyError> {
    let refused = || KeyError::Encoding {
        segment: segment.escape_debug().to_string(),
    };
    let escapes_are_whole = segment.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if !escapes_are_whole {
        return Err(refused());
    }
    percent_decode_str(segment)
        .decode_utf8()
        .map(|decoded| decoded.into_owned())
        .map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::one_segment(&["web"], "web")]
    #[case::several(&["production", "web"], "production/web")]
    #[case::decoded(&["a%20b", "%C3%A9"], "a b/é")]
    #[case::a_plus_is_a_plus(&["a+b"], "a+b")]
    #[case::an_encoded_percent(&["%2525"], "%25")]
    fn a_path_becomes_a_key(#[case] segments: &[&str], #[case] key: &str) {
        let parsed = StateKey::from_url_segments(segments.iter().copied()).unwrap();
        assert_eq!(parsed.as_str(), key);
        assert_eq!(key.parse(), Ok(parsed));
    }

    #[rstest]
    #[case::nothing(&[], KeyError::Empty)]
    #[case::empty_segment(&["a", ""], KeyError::Segment { segment: "".into() })]
    #[case::dot(&["."], KeyError::Segment { segment: ".".into() })]
    #[case::encoded_dots(&["a", "%2e%2E"], KeyError::Segment { segment: "..".into() })]
    #[case::encoded_slash(&["a%2Fb"], KeyError::Segment { segment: "a/b".into() })]
    #[case::newline(&["a%0Ab"], KeyError::Segment { segment: "a\\nb".into() })]
    #[case::not_hex(&["%zz"], KeyError::Encoding { segment: "%zz".into() })]
    #[case::half_an_escape(&["a%2"], KeyError::Encoding { segment: "a%2".into() })]
    #[case::not_utf8(&["%ff"], KeyError::Encoding { segment: "%ff".into() })]
    fn what_is_no_key_is_refused(#[case] segments: &[&str], #[case] error: KeyError) {
        assert_eq!(StateKey::from_url_segments(segments.iter().copied()), Err(error));
    }

    #[test]
    fn the_longest_key_passes_and_one_byte_more_is_refused() {
        assert!("a".repeat(StateKey::MAX_BYTES).parse::<StateKey>().is_ok());
        let error = "a"
            .repeat(StateKey::MAX_BYTES + 1)
            .parse::<StateKey>()
            .unwrap_err();
        assert_eq!(
            error,
            KeyError::TooLong {
                bytes: StateKey::MAX_BYTES + 1
            }
        );
    }
}
