//! How frames travel: preamble, envelope, and finding both again in a stream that may break off anywhere.

use super::codec::Wire;
use super::{Frame, Nonce, VERSION};

/// No frame is longer; a length above it means that the stream is out of step.
const MAX_FRAME: usize = 64 * 1024 * 1024;

const MAGIC: &[u8; 14] = b"PROVISOR-AGENT";
const PREAMBLE: usize = MAGIC.len() + 2 + 16 + 8;
const SEAL: usize = 8;

/// The bytes that open a session, on either side.
pub fn preamble(nonce: &Nonce) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    VERSION.put(&mut bytes);
    nonce.put(&mut bytes);
    checksum(&bytes).put(&mut bytes);
    bytes
}

/// Appends a frame in its envelope.
pub fn encode(frame: &Frame, nonce: &Nonce, out: &mut Vec<u8>) {
    let start = out.len();
    0_u32.put(out);
    frame.put(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&nonce[..SEAL]);
}

/// What a [`Decoder`] made of the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A session opens; frames follow under this nonce. All before it is void.
    Opened { version: u16, nonce: Nonce },
    /// A frame of the session.
    Frame(Frame),
    /// The stream is out of step. Nothing comes until the next preamble.
    OutOfStep,
}

/// Cuts a stream of bytes into [`Decoded`].
pub struct Decoder {
    opening: Opening,
    /// The nonce of the open session.
    session: Option<Nonce>,
    /// What was received and not yet made into frames.
    pending: Vec<u8>,
    /// The last bytes received, whatever they belong to, to recognise a preamble.
    tail: Vec<u8>,
}

enum Opening {
    ByAnyone,
    By(Nonce),
}

impl Decoder {
    /// The agent's side: whoever sends a preamble opens a session.
    pub fn for_any_session() -> Self {
        Self {
            opening: Opening::ByAnyone,
            session: None,
            pending: Vec::new(),
            tail: Vec::new(),
        }
    }

    /// The host's side: what the agent still had to say to an earlier host is passed over.
    pub fn for_session(nonce: Nonce) -> Self {
        Self {
            opening: Opening::By(nonce),
            ..Self::for_any_session()
        }
    }

    /// Takes bytes of the stream and appends what they complete.
    pub fn push(&mut self, mut bytes: &[u8], decoded: &mut Vec<Decoded>) {
        if self.session.is_none() {
            // Out of step: the preamble may stand anywhere, with frames behind it.
            while let Some((byte, rest)) = bytes.split_first() {
                bytes = rest;
                if self.opens(&[*byte], decoded) {
                    break;
                }
            }
        } else if self.opens(bytes, decoded) {
            return;
        }
        self.pending.extend_from_slice(bytes);
        self.frames(decoded);
    }

    /// Notes the bytes in the tail; opens a session if a preamble ends there.
    fn opens(&mut self, bytes: &[u8], decoded: &mut Vec<Decoded>) -> bool {
        self.tail
            .extend_from_slice(&bytes[bytes.len().saturating_sub(PREAMBLE)..]);
        self.tail.drain(..self.tail.len().saturating_sub(PREAMBLE));
        let Some((version, nonce)) = parse_preamble(&self.tail) else {
            return false;
        };
        if matches!(self.opening, Opening::By(expected) if expected != nonce) {
            return false;
        }
        self.tail.clear();
        self.pending.clear();
        self.session = Some(nonce);
        decoded.push(Decoded::Opened { version, nonce });
        true
    }

    fn frames(&mut self, decoded: &mut Vec<Decoded>) {
        let Some(nonce) = self.session else { return };
        let mut rest = self.pending.as_slice();
        let in_step = loop {
            match next_frame(&mut rest, &nonce) {
                Ok(Some(frame)) => decoded.push(Decoded::Frame(frame)),
                Ok(None) => break true,
                Err(OutOfStep) => break false,
            }
        };
        if in_step {
            let used = self.pending.len() - rest.len();
            self.pending.drain(..used);
        } else {
            self.session = None;
            self.pending.clear();
            decoded.push(Decoded::OutOfStep);
        }
    }
}

struct OutOfStep;

fn next_frame(rest: &mut &[u8], nonce: &Nonce) -> Result<Option<Frame>, OutOfStep> {
    let mut input = *rest;
    let Some(length) = u32::take(&mut input) else {
        return Ok(None);
    };
    if length as usize > MAX_FRAME {
        return Err(OutOfStep);
    }
    let Some((mut body, after)) = input.split_at_checked(length as usize) else {
        return Ok(None);
    };
    let Some((seal, after)) = after.split_at_checked(SEAL) else {
        return Ok(None);
    };
    let frame = Frame::take(&mut body);
    match frame {
        Some(frame) if body.is_empty() && *seal == nonce[..SEAL] => {
            *rest = after;
            Ok(Some(frame))
        }
        _ => Err(OutOfStep),
    }
}

fn parse_preamble(tail: &[u8]) -> Option<(u16, Nonce)> {
    let (mut fields, mut check) = tail.split_at_checked(PREAMBLE - 8)?;
    if checksum(fields) != u64::take(&mut check)? || <[u8; 14]>::take(&mut fields)? != *MAGIC {
        return None;
    }
    Some((u16::take(&mut fields)?, Wire::take(&mut fields)?))
}

/// FNV-1a: only so that the magic words within some payload are not taken for a preamble.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
