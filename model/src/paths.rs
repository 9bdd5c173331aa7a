//! Paths on a node that the fleet's files name.

use thiserror::Error;

/// Why a text is not the path of a file below `/etc`. [`PathError::help`] says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not the path of a file below `/etc`")]
pub struct PathError {
    /// As written.
    pub text: String,
}

impl PathError {
    /// What to do.
    pub fn help(&self) -> String {
        "write a path such as `/etc/app/database.json`: letters, digits, `.`, `_`, `-` and `@` between single `/`, \
         without `.` and `..`"
            .to_owned()
    }
}

/// The path of a file below `/etc`, in the one form it can be written in: so that equal paths are equal texts.
///
/// # Errors
///
/// [`PathError`] for anything else.
pub fn etc_file(text: &str) -> Result<String, PathError> {
    let allowed =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-' | '@');
    let part = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(allowed);
    match text.strip_prefix("/etc/") {
        Some(rest) if rest.split('/').all(part) => Ok(text.to_owned()),
        Some(_) | None => Err(PathError {
            text: text.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_below_etc_has_one_way_to_be_written() {
        for good in ["/etc/a", "/etc/app/database.json", "/etc/app@1/x_y-z"] {
            assert_eq!(etc_file(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "/etc",
            "/etc/",
            "etc/a",
            "/etc//a",
            "/etc/a/",
            "/etc/./a",
            "/etc/../a",
            "/var/a",
            "/etc/a b",
            "/etc/ä",
        ] {
            assert!(etc_file(bad).is_err(), "{bad}");
        }
    }
}
