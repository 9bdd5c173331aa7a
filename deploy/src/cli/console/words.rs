//! A line as words: separated by blanks, kept together by quotes or a backslash, as a shell does it.
//!
//! Nothing else of a shell is here: no variables, no patterns, no pipes.

/// A word, and where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Without its quotes and backslashes.
    pub(super) text: String,
    /// The first byte of it in the line, its quote included.
    pub(super) start: usize,
}

/// Why a line has no words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WordsError {
    /// A quote that nothing ends.
    #[error("the {quote} at column {column} is never closed; close it, or put a \\ before it")]
    Open {
        /// The quote.
        quote: char,
        /// Its place in the line, from 1.
        column: usize,
    },
    /// A backslash with nothing behind it.
    #[error("the line ends in a \\ that keeps nothing; write \\\\ for a backslash")]
    Backslash,
}

/// The words of a whole line.
pub(super) fn split(line: &str) -> Result<Vec<String>, WordsError> {
    let scan = scan(line);
    match scan.end {
        End::Between | End::Inside => Ok(scan.words.into_iter().map(|word| word.text).collect()),
        End::Quote { quote, column } => Err(WordsError::Open { quote, column }),
        End::Backslash => Err(WordsError::Backslash),
    }
}

/// The words before the cursor at the end of `line`, and the word that it is in: an empty one after a blank.
pub(super) fn before_cursor(line: &str) -> (Vec<String>, Word) {
    let mut scan = scan(line);
    let here = match scan.end {
        End::Between => None,
        End::Inside | End::Quote { .. } | End::Backslash => scan.words.pop(),
    };
    let here = here.unwrap_or(Word {
        text: String::new(),
        start: line.len(),
    });
    (scan.words.into_iter().map(|word| word.text).collect(), here)
}

struct Scan {
    words: Vec<Word>,
    end: End,
}

/// Where the line ends.
enum End {
    Between,
    Inside,
    Quote { quote: char, column: usize },
    Backslash,
}

fn scan(line: &str) -> Scan {
    let mut words: Vec<Word> = Vec::new();
    let mut end = End::Between;
    for (column, (start, character)) in line.char_indices().enumerate() {
        if matches!(end, End::Between) && !character.is_whitespace() {
            words.push(Word {
                text: String::new(),
                start,
            });
        }
        let mut keep = |character| {
            if let Some(word) = words.last_mut() {
                word.text.push(character);
            }
        };
        end = match end {
            End::Between | End::Inside if character.is_whitespace() => End::Between,
            End::Between | End::Inside if character == '\\' => End::Backslash,
            End::Between | End::Inside if matches!(character, '"' | '\'') => End::Quote {
                quote: character,
                column: column + 1,
            },
            End::Quote { quote, .. } if character == quote => End::Inside,
            End::Quote { .. } => {
                keep(character);
                end
            }
            End::Between | End::Inside | End::Backslash => {
                keep(character);
                End::Inside
            }
        };
    }
    Scan { words, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_separate_and_quotes_keep_together() {
        let table: [(&str, &[&str]); 8] = [
            ("", &[]),
            ("  show   app ", &["show", "app"]),
            ("--fleet 'my fleet' check", &["--fleet", "my fleet", "check"]),
            ("--fleet=\"my fleet\"", &["--fleet=my fleet"]),
            (r"a\ b \'", &["a b", "'"]),
            ("show ''", &["show", ""]),
            ("'it''s'", &["its"]),
            ("\tché\u{a0}x", &["ché", "x"]),
        ];
        for (line, wanted) in table {
            assert_eq!(split(line).unwrap(), wanted, "{line}");
        }
    }

    #[test]
    fn what_is_left_open_is_an_error_with_its_place() {
        assert_eq!(
            split("é 'app"),
            Err(WordsError::Open {
                quote: '\'',
                column: 3
            })
        );
        assert_eq!(split("show app\\"), Err(WordsError::Backslash));
    }

    #[test]
    fn the_cursor_s_word_is_empty_after_a_blank_and_whole_inside_a_quote() {
        let table: [(&str, &[&str], &str, usize); 5] = [
            ("", &[], "", 0),
            ("sh", &[], "sh", 0),
            ("show ", &["show"], "", 5),
            ("show ap", &["show"], "ap", 5),
            ("show \"my a", &["show"], "my a", 5),
        ];
        for (line, words, text, start) in table {
            let (before, here) = before_cursor(line);
            assert_eq!(before, words, "{line}");
            assert_eq!((here.text.as_str(), here.start), (text, start), "{line}");
        }
    }
}
