//! The guest's console: always in a file, searched from a cursor.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How much of a console's end is shown in an error, in bytes at most.
const TAIL_BYTES: u64 = 16 * 1024;

/// A console that QEMU writes to a file. Reading it never takes anything away.
#[derive(Clone, Debug)]
pub struct Console {
    path: PathBuf,
}

/// A place in a console. A search from it sees only what was printed after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(u64);

/// A search that goes on where it left off, so that a long console is read once.
#[derive(Debug)]
pub struct Search {
    path: PathBuf,
    needle: Vec<u8>,
    /// Where the next bytes are read.
    next: u64,
    /// The last bytes read, in which a match may have begun.
    carried: Vec<u8>,
}

impl Console {
    /// The console that is, or will be, written to `path`.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place where the next output will stand.
    pub fn cursor(&self) -> Cursor {
        Cursor(self.path.metadata().map_or(0, |metadata| metadata.len()))
    }

    /// The place before the first output.
    pub fn start(&self) -> Cursor {
        Cursor(0)
    }

    /// What was printed since `cursor`. Bytes that are not UTF-8 are shown as replacement characters.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn since(&self, cursor: Cursor) -> io::Result<String> {
        read_from(&self.path, cursor.0).map(|bytes| shown(&bytes))
    }

    /// The last `lines` lines, for people. Empty if there are none, or if the file cannot be read.
    pub fn tail(&self, lines: usize) -> String {
        tail(&self.path, lines)
    }

    /// Begins a search for `needle` in what is printed after `from`.
    pub fn search(&self, needle: &str, from: Cursor) -> Search {
        Search {
            path: self.path.clone(),
            needle: needle.as_bytes().to_vec(),
            next: from.0,
            carried: Vec::new(),
        }
    }
}

impl Search {
    /// Looks at what came since the last look; answers with the place just after the first match.
    ///
    /// # Errors
    /// The file cannot be read. A file that is not there yet holds nothing.
    pub fn look(&mut self) -> io::Result<Option<Cursor>> {
        let fresh = read_from(&self.path, self.next)?;
        self.next += fresh.len() as u64;
        self.carried.extend(fresh);
        let begin = self.next - self.carried.len() as u64;
        if let Some(at) = find(&self.carried, &self.needle) {
            let end = at + self.needle.len();
            self.carried.drain(..end);
            return Ok(Some(Cursor(begin + end as u64)));
        }
        let kept = self.needle.len().saturating_sub(1).min(self.carried.len());
        self.carried.drain(..self.carried.len() - kept);
        Ok(None)
    }
}

/// The last lines of any text file, for people.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let length = path.metadata().map_or(0, |metadata| metadata.len());
    let text = shown(&read_from(path, length.saturating_sub(TAIL_BYTES)).unwrap_or_default());
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

fn read_from(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A console ends its lines with carriage return and line feed; people want neither the former nor other control characters.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let visible = |character: &char| !character.is_control() || matches!(character, '\n' | '\t');
    String::from_utf8_lossy(bytes).chars().filter(visible).collect()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let Some(&first) = needle.first() else {
        return Some(0);
    };
    let mut from = 0;
    while let Some(at) = haystack[from..].iter().position(|byte| *byte == first) {
        if haystack[from + at..].starts_with(needle) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    struct Printed {
        file: tempfile::NamedTempFile,
    }

    impl Printed {
        fn new() -> Self {
            Self {
                file: tempfile::NamedTempFile::new().unwrap(),
            }
        }

        fn print(&mut self, bytes: impl AsRef<[u8]>) {
            self.file.write_all(bytes.as_ref()).unwrap();
        }

        fn console(&self) -> Console {
            Console::new(self.file.path())
        }
    }

    #[test]
    fn text_from_before_the_cursor_does_not_match() {
        let mut printed = Printed::new();
        printed.print("login:");
        let mut search = printed.console().search("login:", printed.console().cursor());
        assert_eq!(search.look().unwrap(), None);

        printed.print("\nlogin:");
        assert!(search.look().unwrap().is_some());
    }

    #[test]
    fn a_search_takes_nothing_away() {
        let mut printed = Printed::new();
        printed.print("one two");
        let console = printed.console();
        for _ in 0..2 {
            assert_eq!(
                console.search("one", console.start()).look().unwrap(),
                Some(Cursor(3))
            );
        }
    }

    #[test]
    fn a_match_may_arrive_in_pieces() {
        let mut printed = Printed::new();
        let mut search = printed.console().search("Reached target", Cursor(0));
        for piece in ["noise Rea", "ched", " targ"] {
            printed.print(piece);
            assert_eq!(search.look().unwrap(), None);
        }
        printed.print("et and more");
        assert_eq!(search.look().unwrap(), Some(Cursor(20)));
    }

    #[test]
    fn the_next_match_is_found_after_the_last_one() {
        let mut printed = Printed::new();
        printed.print("boot boot");
        let mut search = printed.console().search("boot", Cursor(0));
        let ends: Vec<_> = (0..3).map(|_| search.look().unwrap()).collect();
        assert_eq!(ends, [Some(Cursor(4)), Some(Cursor(9)), None]);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_stop_a_search_or_a_tail() {
        let mut printed = Printed::new();
        printed.print(b"\xff\xfe\x1b[0m\r\nready\r\n");
        let console = printed.console();
        assert!(console.search("ready", console.start()).look().unwrap().is_some());
        assert_eq!(console.tail(1), "ready");
        assert_eq!(
            console.since(console.start()).unwrap(),
            "\u{fffd}\u{fffd}[0m\nready\n"
        );
    }

    #[test]
    fn the_tail_is_the_last_lines_that_say_something() {
        let mut printed = Printed::new();
        printed.print("first\nsecond\n\nthird\n\n");
        assert_eq!(printed.console().tail(2), "second\nthird");
    }

    #[test]
    fn a_console_that_is_not_there_yet_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let console = Console::new(&folder.path().join("console"));
        assert_eq!(console.cursor(), console.start());
        assert_eq!(console.tail(5), "");
        assert_eq!(console.search("x", console.start()).look().unwrap(), None);
    }

    #[test]
    fn a_hundred_thousand_lines_are_read_once() {
        let mut printed = Printed::new();
        let line = "a line of a console that goes on and on\n";
        let mut search = printed.console().search("the end", Cursor(0));
        printed.print(line.repeat(100_000));
        assert_eq!(search.look().unwrap(), None);
        assert_eq!(search.next, 100_000 * line.len() as u64);
        assert!(search.carried.len() < "the end".len());
    }
}
