//! A capture of a switch's frames in the format pcapng, which Wireshark, tshark and tcpdump read.
//!
//! Each frame is written once, as it came from a guest, at once and unbuffered: what a killed test leaves is readable. Each card is an
//! interface with the machine's name, so a reader sees who sent what. A frame that a fault took carries a comment that says so.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Port;

/// An open capture.
#[derive(Debug)]
pub(super) struct Capture<W = File> {
    writer: W,
    path: PathBuf,
    /// The wall clock at the time zero of the frames' times: read once, so that a jump of the host's clock does not tear the capture.
    epoch: Duration,
    interfaces: usize,
}

impl Capture {
    /// Starts a capture in a new file at `path`. Time zero of its frames was `elapsed` ago.
    pub(super) fn create(path: &Path, elapsed: Duration) -> io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Capture::begin(File::create(path)?, path, now.saturating_sub(elapsed))
    }
}

impl<W: Write> Capture<W> {
    fn begin(mut writer: W, path: &Path, epoch: Duration) -> io::Result<Self> {
        writer.write_all(&section_header())?;
        Ok(Self {
            writer,
            path: path.to_owned(),
            epoch,
            interfaces: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a frame that came in by `from` at `at`, with a comment if there is something to say. `names` are those of all ports.
    pub(super) fn frame(
        &mut self,
        names: &[String],
        from: Port,
        at: Duration,
        frame: &[u8],
        comment: &str,
    ) -> io::Result<()> {
        let mut blocks = Vec::with_capacity(frame.len() + 64);
        for name in &names[self.interfaces.min(names.len())..] {
            blocks.extend(interface(name));
        }
        self.interfaces = self.interfaces.max(names.len());
        blocks.extend(packet(from, self.epoch + at, frame, comment));
        // One write: a reader never sees half a frame of a test that was killed between two.
        self.writer.write_all(&blocks)
    }
}

const OPTION_COMMENT: u16 = 1;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_APPLICATION: u16 = 4;

fn section_header() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(0x1a2b_3c4d_u32.to_le_bytes());
    body.extend(1_u16.to_le_bytes());
    body.extend(0_u16.to_le_bytes());
    // Its length is not known.
    body.extend(u64::MAX.to_le_bytes());
    option(&mut body, OPTION_APPLICATION, b"provisor-harness");
    end_of_options(&mut body);
    block(0x0a0d_0d0a, &body)
}

fn interface(name: &str) -> Vec<u8> {
    const ETHERNET: u16 = 1;
    let mut body = Vec::new();
    body.extend(ETHERNET.to_le_bytes());
    body.extend(0_u16.to_le_bytes());
    // No limit of length.
    body.extend(0_u32.to_le_bytes());
    option(&mut body, OPTION_INTERFACE_NAME, name.as_bytes());
    // Nanoseconds: ten to the power of minus nine.
    option(&mut body, OPTION_RESOLUTION, &[9]);
    end_of_options(&mut body);
    block(1, &body)
}

fn packet(from: Port, at: Duration, frame: &[u8], comment: &str) -> Vec<u8> {
    let nanoseconds = at.as_nanos() as u64;
    let length = frame.len() as u32;
    let mut body = Vec::new();
    for number in [
        from.0 as u32,
        (nanoseconds >> 32) as u32,
        nanoseconds as u32,
        length,
        length,
    ] {
        body.extend(number.to_le_bytes());
    }
    body.extend(frame);
    pad(&mut body);
    if !comment.is_empty() {
        option(&mut body, OPTION_COMMENT, comment.as_bytes());
        end_of_options(&mut body);
    }
    block(6, &body)
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = ((body.len() + 12) as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

/// To a multiple of four. Every body's fixed part is one, so its own length tells.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a capture: kind and body. Panics on what a strict reader refuses.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let length = word(&bytes[4..]) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(&bytes[length - 4..]) as usize, length);
            blocks.push((word(bytes), &bytes[8..length - 4]));
            bytes = &bytes[length..];
        }
        blocks
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_card_is_an_interface_with_its_machine_s_name_before_its_first_frame() {
        let mut capture = Capture::begin(Vec::new(), Path::new("mesh.pcapng"), Duration::ZERO).unwrap();
        let (two, three) = (names(&["app", "database"]), names(&["app", "database", "late"]));
        capture
            .frame(&two, Port(1), Duration::ZERO, b"first", "")
            .unwrap();
        capture
            .frame(&two, Port(0), Duration::ZERO, b"second", "")
            .unwrap();
        capture
            .frame(&three, Port(2), Duration::ZERO, b"third", "")
            .unwrap();

        let written = blocks(&capture.writer);
        let kinds: Vec<_> = written.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6, 6, 1, 6]);
        let late = written[5].1;
        assert!(late.windows(4).any(|window| window == b"late"), "{late:?}");
        assert_eq!(written[6].1[..4], 2_u32.to_le_bytes());
    }

    #[test]
    fn a_frame_has_its_time_its_bytes_and_its_comment() {
        let epoch = Duration::from_secs(1_700_000_000);
        let mut capture = Capture::begin(Vec::new(), Path::new("mesh.pcapng"), epoch).unwrap();
        let at = Duration::from_nanos(1_500_000_007);
        capture
            .frame(&names(&["app"]), Port(0), at, b"seventeen bytes..", "cut")
            .unwrap();

        let written = blocks(&capture.writer);
        let (_, body) = written.last().unwrap();
        let word = |index: usize| u32::from_le_bytes(body[index * 4..][..4].try_into().unwrap());
        let nanoseconds = u64::from(word(1)) << 32 | u64::from(word(2));
        assert_eq!(Duration::from_nanos(nanoseconds), epoch + at);
        assert_eq!((word(3), word(4)), (17, 17));
        assert_eq!(&body[20..37], b"seventeen bytes..");
        // Code 1, three bytes, "cut", one of padding, and the end.
        assert_eq!(&body[40..], [&[1, 0, 3, 0][..], b"cut\0", &[0; 4]].concat());
    }
}
