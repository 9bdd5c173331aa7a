//! Tells systemd that the server is ready (`Type=notify`), so that whatever is ordered after it finds it serving.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says that the server is ready; nothing happens where nobody asked to be told.
pub(super) fn ready() -> io::Result<()> {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(());
    };
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(&socket)?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(b"READY=1", &address)
        .map(drop)
}
