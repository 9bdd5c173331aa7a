//! A server in this process, and a client that sends exactly what it is told.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use argon2::password_hash::PasswordHasher as _;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provisor_backend::{BodyLimit, Config, Handle, Server};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The one user of a test server.
pub(crate) const USER: &str = "alice";
/// Her password; it looks like nothing else, so that it can be searched for.
pub(crate) const PASSWORD: &str = "canary-se:cret-7f3a";

/// A running server with an empty database of its own.
pub(crate) struct TestServer {
    runtime: Runtime,
    handle: Option<Handle>,
    _folder: TempDir,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        Self::start_with(BodyLimit::default())
    }

    pub(crate) fn start_with(body_limit: BodyLimit) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_users(&folder.path().join("users"), PASSWORD);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let config = Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            database: folder.path().join("state.db"),
            users: folder.path().join("users"),
            body_limit,
            keep_versions: Default::default(),
        };
        let (_, handle) = runtime.block_on(Server::bind(config)).unwrap();
        Self {
            runtime,
            handle: Some(handle),
            _folder: folder,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.handle.as_ref().unwrap().address()
    }

    /// Sends a request as the user.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> Reply {
        send(self.address(), method, path, &authorization(USER, PASSWORD), body)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.runtime.block_on(handle.stop()).unwrap();
        }
    }
}

/// Writes a users file with the one user. Its hash is cheap, since each test pays for it.
pub(crate) fn write_users(path: &Path, password: &str) {
    let argon2 = Argon2::new(
        Algorithm::Argon2id,
        Version::V0x13,
        Params::new(8, 1, 1, None).unwrap(),
    );
    let hash: PasswordHash = argon2.hash_password(password.as_bytes()).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .unwrap();
    writeln!(file, "{USER}:{hash}").unwrap();
}

/// A header line for these credentials.
pub(crate) fn authorization(user: &str, password: &str) -> String {
    format!(
        "Authorization: Basic {}\r\n",
        STANDARD.encode(format!("{user}:{password}"))
    )
}

/// Sends one request with these header lines (each with its line end), and reads the reply.
pub(crate) fn send(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
    )
    .unwrap();
    write!(stream, "{headers}Content-Length: {length}\r\n\r\n{body}").unwrap();
    match method {
        "HEAD" => Reply::read_head(&mut stream).0,
        _ => Reply::read(&mut stream),
    }
}

/// A reply, whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// By name in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Reply {
    /// Reads a reply and no further, so it comes even when the server keeps the connection open.
    pub(crate) fn read(stream: &mut TcpStream) -> Self {
        let (mut reply, mut body) = Self::read_head(stream);
        let length: usize = reply.header("content-length").parse().unwrap();
        let begun = body.len();
        body.resize(length, 0);
        stream.read_exact(&mut body[begun..]).unwrap();
        reply.body = String::from_utf8(body).unwrap();
        reply
    }

    /// Reads the head of a reply; also gives what of its body came along.
    fn read_head(stream: &mut TcpStream) -> (Self, Vec<u8>) {
        // A server that waits for what does not come would let a test wait for ever.
        stream.set_read_timeout(Some(Duration::from_secs(50))).unwrap();
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            let length = stream.read(&mut piece).unwrap();
            assert_ne!(length, 0, "the connection ended in the head of a reply");
            bytes.extend_from_slice(&piece[..length]);
        };
        let body = bytes.split_off(end + 4);
        let head = String::from_utf8(bytes).unwrap();
        let mut lines = head.trim_end().lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        (
            Self {
                status,
                headers,
                body: String::new(),
            },
            body,
        )
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// A state with one resource.
pub(crate) fn state(lineage: &str, serial: u64) -> String {
    format!("{{\"version\": 4, \"serial\": {serial}, \"lineage\": \"{lineage}\", \"resources\": [{{}}]}}\n")
}

/// A lock as OpenTofu describes it.
pub(crate) fn lock(id: &str) -> String {
    format!(
        "{{\"ID\":\"{id}\",\"Operation\":\"OperationTypeApply\",\"Info\":\"\",\"Who\":\"bob@desk\",\
         \"Version\":\"1.10.6\",\"Created\":\"2026-01-01T00:00:00.12Z\",\"Path\":\"\"}}"
    )
}
