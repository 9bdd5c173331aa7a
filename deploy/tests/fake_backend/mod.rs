//! `fake_backend`: a small state backend that misbehaves on demand, so that failures happen when a test wants them.
//!
//! Without a script it behaves: it keeps one state and one lock in memory. A [`Fault`] replaces the answer to the n-th
//! request of a method.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "several test binaries include it, and each uses its own part"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A misbehaviour.
#[derive(Clone)]
pub enum Fault {
    /// This status, headers and body; nothing else happens.
    Answer(u16, &'static str, &'static str),
    /// The connection is closed when half of the request's body was read.
    DieReading,
    /// The request takes effect and the connection is closed without an answer.
    DieAfter,
    /// Half of the answer is sent.
    DieAnswering,
    /// The lock is forgotten before the request is looked at, as by a restart of a server that keeps locks in memory.
    ForgetLock,
}

/// One request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Header names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// What the backend holds.
#[derive(Default)]
pub struct Held {
    /// The state's bytes.
    pub state: Option<Vec<u8>>,
    /// The holder's body.
    pub lock: Option<Vec<u8>>,
    /// All requests so far.
    pub seen: Vec<Seen>,
    faults: BTreeMap<(String, usize), Fault>,
}

/// The running backend; it stops when dropped.
pub struct FakeBackend {
    address: SocketAddr,
    held: Arc<Mutex<Held>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeBackend {
    /// Starts on a free port.
    pub fn start() -> FakeBackend {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let held = Arc::new(Mutex::new(Held::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (in_thread, stopped) = (Arc::clone(&held), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                // A client that goes away is no failure of the fake.
                let _ = serve(stream, &in_thread);
            }
        });
        FakeBackend {
            address,
            held,
            stop,
            thread: Some(thread),
        }
    }

    /// The address of its one state.
    pub fn url(&self) -> String {
        format!("http://{}/state/fleet", self.address)
    }

    /// Makes the `nth` request (from 1) of `method` misbehave.
    pub fn script(&self, method: &str, nth: usize, fault: Fault) {
        self.held
            .lock()
            .unwrap()
            .faults
            .insert((method.to_owned(), nth), fault);
    }

    /// Looks at, or changes, what it holds.
    pub fn held<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.held.lock().unwrap())
    }

    /// Methods of the requests so far.
    pub fn methods(&self) -> Vec<String> {
        self.held(|held| held.seen.iter().map(|seen| seen.method.clone()).collect())
    }
}

impl Drop for FakeBackend {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut stream: TcpStream, held: &Mutex<Held>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Ok(());
    };
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim().split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => break,
        };
    }
    let length: usize = headers
        .get("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    let mut held = held.lock().unwrap();
    let nth = held.seen.iter().filter(|seen| seen.method == method).count() + 1;
    let fault = held.faults.get(&(method.to_owned(), nth)).cloned();
    if matches!(fault, Some(Fault::DieReading)) {
        reader.read_exact(&mut vec![0; length / 2])?;
        held.seen.push(Seen {
            method: method.to_owned(),
            target: target.to_owned(),
            headers,
            body: Vec::new(),
        });
        return Ok(());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    held.seen.push(Seen {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: body.clone(),
    });
    if matches!(fault, Some(Fault::ForgetLock)) {
        held.lock = None;
    }
    if let Some(Fault::Answer(status, headers, body)) = fault {
        return answer(&mut stream, status, headers, body.as_bytes());
    }
    let (status, bytes) = behave(&mut held, method, target, body);
    match fault {
        Some(Fault::DieAfter) => Ok(()),
        Some(Fault::DieAnswering) => {
            write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n",
                bytes.len() + 1
            )?;
            stream.write_all(&bytes[..bytes.len() / 2])
        }
        _ => answer(&mut stream, status, "", &bytes),
    }
}

fn behave(held: &mut Held, method: &str, target: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
    let id = |body: &[u8]| {
        let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        value["ID"].as_str().unwrap_or_default().to_owned()
    };
    match (method, &held.state, &held.lock) {
        ("GET", None, _) => (404, b"no state".to_vec()),
        ("GET", Some(state), _) => (200, state.clone()),
        ("LOCK", _, Some(lock)) if *lock != body => (423, lock.clone()),
        ("LOCK", _, _) => {
            held.lock = Some(body);
            (200, Vec::new())
        }
        ("UNLOCK", _, Some(lock)) if *lock == body => {
            held.lock = None;
            (200, Vec::new())
        }
        ("UNLOCK", _, _) => (409, b"not your lock".to_vec()),
        ("POST", _, lock) => {
            let given = target.split_once("ID=").map(|(_, id)| id).unwrap_or_default();
            if lock.as_deref().map(id).as_deref() != Some(given) {
                return (409, b"the lock is not yours".to_vec());
            }
            held.state = Some(body);
            (200, Vec::new())
        }
        _ => (501, Vec::new()),
    }
}

fn answer(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8]) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}
