//! The harness's helper program, embedded in the library: the agent in a guest, and the guard on the host.
//!
//! Only the standard library, so that the harness's build script can compile it alone, static and small.

mod command;
mod guard;
mod keep;
mod netlink;
mod serve;
mod setup;
#[allow(
    unsafe_code,
    reason = "system calls that the standard library does not offer; nowhere else"
)]
mod sys;
mod tree;
#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "the other half is used by the host's side"
)]
mod wire;

use std::io::{self, Write};
use std::process::ExitCode;

use tree::Cgroups;

const USAGE: &str = "usage: provisor-agent serve PORT [--without-cgroups]
       provisor-agent guard -- PROGRAM [ARGUMENT...]
       provisor-agent keep MARKER
       provisor-agent hub MARKER SOCKET [CARD...]

serve: obeys a host on PORT, a virtio-serial port such as /dev/virtio-ports/provisor.agent,
       or unix:PATH, a socket to connect to
guard: runs PROGRAM until standard input, a socket, is closed
keep:  holds standard input, a guard's socket, until the file MARKER is gone
hub:   until then hands what comes to SOCKET from one CARD to all others, all of them unix datagram sockets";

fn main() -> ExitCode {
    sys::keep_inherited_descriptors();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["serve", port] => serve::serve(port, Cgroups::probe()).map(|()| ExitCode::SUCCESS),
        ["serve", port, "--without-cgroups"] => {
            serve::serve(port, Cgroups::Unavailable).map(|()| ExitCode::SUCCESS)
        }
        ["keep", marker] => keep::keep(marker).map(|()| ExitCode::SUCCESS),
        ["hub", marker, socket, ..] => keep::hub(marker, socket, &arguments[3..]).map(|()| ExitCode::SUCCESS),
        ["guard", "--", _, ..] => guard::guard(&arguments[2..]),
        _ => Err(USAGE.to_owned()),
    };
    done.unwrap_or_else(|message| {
        let _ = writeln!(io::stderr(), "provisor-agent: {message}");
        ExitCode::from(2)
    })
}
