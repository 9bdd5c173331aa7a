//! What the host and the guest agent say to each other. Both sides compile this one file.
//!
//! A session starts with a preamble of 40 bytes: `PROVISOR-AGENT`, a version, a nonce that the host draws, a
//! checksum. The agent answers with the same nonce and then with [`Frame::Welcome`]. After that both sides send
//! frames: length (`u32`), the frame, a seal of 8 bytes made of the nonce.
//!
//! A byte stream through a virtual serial port has no borders: a host may vanish within a frame and the next one
//! continue the stream. So a host sends nothing after its preamble until it is answered, and the agent looks for
//! a preamble at the end of all it has received, whatever it is in the middle of. A frame that was completed by
//! the bytes of somebody else carries the wrong seal and is dropped.

#[path = "codec.rs"]
mod codec;
#[path = "framing.rs"]
mod framing;

use std::net::IpAddr;

pub use codec::Bytes;
use codec::{Wire, wire_struct};
pub use framing::{Decoded, Decoder, encode, preamble};

/// The protocol's version; the two sides must be equal.
pub const VERSION: u16 = 2;

/// How many bytes of one direction of one command may be under way before they are taken and credited.
pub const WINDOW: usize = 256 * 1024;

/// The most bytes of a stream that one frame carries.
pub const CHUNK: usize = 32 * 1024;

/// Drawn at random by the host for each session.
pub type Nonce = [u8; 16];

wire_struct! {
    /// A network interface of the guest, found by its MAC.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Interface {
        /// The MAC that the interface has now.
        pub mac: [u8; 6],
        /// The MAC it gets, if another: a restored guest wakes up with the MAC of the one that was saved.
        pub new_mac: Option<[u8; 6]>,
        /// Its addresses with their prefix lengths; addresses it had before are removed.
        pub addresses: Vec<(IpAddr, u8)>,
        /// Where the default route of this interface leads.
        pub gateway: Option<IpAddr>,
        /// Whether it is brought up.
        pub up: bool,
    }
}

wire_struct! {
    /// A file that the agent writes; missing folders above it are made with mode 0755.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SetupFile {
        /// An absolute path.
        pub path: String,
        /// The whole content.
        pub content: Bytes,
        /// Permission bits, such as `0o600`.
        pub mode: u32,
        /// The owner's user number.
        pub uid: u32,
        /// The owner's group number.
        pub gid: u32,
    }
}

wire_struct! {
    /// A disk to mount.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Mount {
        /// The `serial=` of the virtio-blk device, at most 20 bytes.
        pub serial: String,
        /// Where it is mounted; the folder is made if it is missing.
        pub target: String,
        /// The file system, such as `ext4` or `squashfs`.
        pub fstype: String,
        /// Whether it is mounted read-only.
        pub read_only: bool,
    }
}

wire_struct! {
    /// Everything that makes a booted or restored guest the machine it is to be. The agent applies the fields in the
    /// order in which they stand here and stops at the first failure. What is empty or `None` is left as it is.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Setup {
        /// Random bytes for the kernel's generator. Restored clones have the same state: give each its own.
        pub entropy: Bytes,
        /// Nanoseconds since 1970.
        pub clock: Option<u64>,
        /// The machine id, 32 hexadecimal digits: a restored guest wakes up with the id of the one that was saved.
        pub machine_id: Option<String>,
        /// The host name.
        pub hostname: Option<String>,
        /// What `/etc/hosts` says besides the loopback lines and the host name.
        pub hosts: Vec<(IpAddr, Vec<String>)>,
        /// The interfaces; the loopback interface is always brought up.
        pub interfaces: Vec<Interface>,
        /// The disks.
        pub mounts: Vec<Mount>,
        /// The files.
        pub files: Vec<SetupFile>,
        /// Programs with their arguments, run one after another at the end; each must exit with 0.
        pub commands: Vec<Vec<String>>,
    }
}

wire_struct! {
    /// A command to run.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Exec {
        /// The program and its arguments; never empty.
        pub argv: Vec<String>,
        /// Set on top of the agent's own environment.
        pub env: Vec<(String, String)>,
        /// The working directory; empty means the agent's.
        pub cwd: String,
        /// Whether [`Frame::Stdin`] follows; else the command reads `/dev/null`.
        pub stdin: bool,
        /// Milliseconds until the command and all its descendants are killed.
        pub deadline: u64,
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Code(u8),
    /// It was killed by this signal.
    Signal(i32),
    /// Its deadline passed: it and its descendants were killed.
    Deadline,
}

/// A message. `id` names a command; the host chooses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Guest: the session is open. The boot id changes with every boot.
    Welcome { boot_id: String },
    /// Host: apply this, then answer with `Ready` or `SetupFailed`.
    Setup(Box<Setup>),
    /// Guest: the setup was applied.
    Ready,
    /// Guest: this step of the setup failed, for this reason.
    SetupFailed { step: String, error: String },
    /// Host: run this.
    Exec { id: u32, exec: Exec },
    /// Host: bytes for its standard input.
    Stdin { id: u32, bytes: Bytes },
    /// Host: its standard input ends here.
    StdinEnd { id: u32 },
    /// Host: kill it and its descendants.
    Kill { id: u32 },
    /// Guest: bytes of its standard output.
    Stdout { id: u32, bytes: Bytes },
    /// Guest: bytes of its standard error.
    Stderr { id: u32, bytes: Bytes },
    /// Both: so many bytes were taken. The host speaks of stdout and stderr together, the guest of stdin.
    Credit { id: u32, bytes: u32 },
    /// Guest: it ended; no other frame about it follows.
    Exit { id: u32, ending: Ending },
}

impl Wire for Ending {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Ending::Code(code) => (0_u8, i32::from(code)).put(out),
            Ending::Signal(signal) => (1_u8, signal).put(out),
            Ending::Deadline => (2_u8, 0_i32).put(out),
        }
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        match <(u8, i32)>::take(input)? {
            (0, code) => Some(Ending::Code(code.try_into().ok()?)),
            (1, signal) => Some(Ending::Signal(signal)),
            (2, 0) => Some(Ending::Deadline),
            _ => None,
        }
    }
}

impl Wire for Frame {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Welcome { boot_id } => tagged(0, boot_id, out),
            Frame::Setup(setup) => tagged(1, &**setup, out),
            Frame::Ready => out.push(2),
            Frame::SetupFailed { step, error } => {
                tagged(3, step, out);
                error.put(out);
            }
            Frame::Exec { id, exec } => {
                tagged(4, id, out);
                exec.put(out);
            }
            Frame::Stdin { id, bytes } => {
                tagged(5, id, out);
                bytes.put(out);
            }
            Frame::StdinEnd { id } => tagged(6, id, out),
            Frame::Kill { id } => tagged(7, id, out),
            Frame::Stdout { id, bytes } => {
                tagged(8, id, out);
                bytes.put(out);
            }
            Frame::Stderr { id, bytes } => {
                tagged(9, id, out);
                bytes.put(out);
            }
            Frame::Credit { id, bytes } => tagged(10, &(*id, *bytes), out),
            Frame::Exit { id, ending } => tagged(11, &(*id, *ending), out),
        }
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(input)? {
            0 => Frame::Welcome {
                boot_id: Wire::take(input)?,
            },
            1 => Frame::Setup(Box::new(Wire::take(input)?)),
            2 => Frame::Ready,
            3 => Frame::SetupFailed {
                step: Wire::take(input)?,
                error: Wire::take(input)?,
            },
            4 => Frame::Exec {
                id: Wire::take(input)?,
                exec: Wire::take(input)?,
            },
            5 => Frame::Stdin {
                id: Wire::take(input)?,
                bytes: Wire::take(input)?,
            },
            6 => Frame::StdinEnd {
                id: Wire::take(input)?,
            },
            7 => Frame::Kill {
                id: Wire::take(input)?,
            },
            8 => Frame::Stdout {
                id: Wire::take(input)?,
                bytes: Wire::take(input)?,
            },
            9 => Frame::Stderr {
                id: Wire::take(input)?,
                bytes: Wire::take(input)?,
            },
            10 => Frame::Credit {
                id: Wire::take(input)?,
                bytes: Wire::take(input)?,
            },
            11 => Frame::Exit {
                id: Wire::take(input)?,
                ending: Wire::take(input)?,
            },
            _ => return None,
        })
    }
}

fn tagged(tag: u8, value: &impl Wire, out: &mut Vec<u8>) {
    out.push(tag);
    value.put(out);
}
