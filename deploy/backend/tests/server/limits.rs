//! How much a client may send, and when it is told.

use std::io::Write as _;
use std::net::TcpStream;

use provisor_backend::BodyLimit;
use rstest::rstest;

use crate::support::{PASSWORD, Reply, TestServer, USER, authorization, state};

/// Sends the head of a request and none of its body.
fn send_head(server: &TestServer, method: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(
        stream,
        "{method} /state/web HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}\r\n"
    )
    .unwrap();
    stream
}

#[rstest]
#[case::announced("Content-Length: 10000000000\r\n")]
#[case::chunked("Transfer-Encoding: chunked\r\n")]
fn whom_nobody_knows_is_told_before_a_body_comes(#[case] framing: &str) {
    let server = TestServer::start();
    for method in ["POST", "PUT", "LOCK", "UNLOCK"] {
        let mut stream = send_head(&server, method, framing);
        assert_eq!(Reply::read(&mut stream).status, 401, "{method}");
    }
}

#[test]
fn a_body_that_nobody_wants_is_read_away_so_that_its_answer_arrives() {
    let server = TestServer::start();
    let body = vec![b' '; 3 << 20];
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(
        stream,
        "POST /state/web HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(&body).unwrap();
    assert_eq!(Reply::read(&mut stream).status, 401);
    write!(stream, "GET /health HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    assert_eq!(
        Reply::read(&mut stream).body,
        "ok\n",
        "the connection was not cut off"
    );
}

#[test]
fn a_body_announced_too_long_is_refused_before_it_comes() {
    let server = TestServer::start();
    let headers = format!("{}Content-Length: 10000000000\r\n", authorization(USER, PASSWORD));
    let mut stream = send_head(&server, "POST", &headers);
    assert_eq!(Reply::read(&mut stream).status, 413);
}

#[test]
fn a_state_may_be_as_long_as_the_limit() {
    let server = TestServer::start_with(BodyLimit(state("A", 1).len() as u64));
    assert_eq!(server.send("POST", "/state/web", &state("A", 1)).status, 200);
    let longer = format!("{}\n", state("A", 2));
    assert_eq!(server.send("POST", "/state/web", &longer).status, 413);
    assert_eq!(server.send("GET", "/state/web", "").body, state("A", 1));
}

#[test]
fn chunks_are_counted_too() {
    let server = TestServer::start_with(BodyLimit(10));
    let headers = format!("{}Transfer-Encoding: chunked\r\n", authorization(USER, PASSWORD));
    let mut stream = send_head(&server, "POST", &headers);
    write!(stream, "6\r\nabcdef\r\n6\r\nghijkl\r\n0\r\n\r\n").unwrap();
    assert_eq!(Reply::read(&mut stream).status, 413);
}

#[test]
fn a_lock_may_not_be_as_long_as_a_state() {
    let server = TestServer::start();
    let body = format!("{{\"ID\":\"x\",\"Info\":\"{}\"}}", "a".repeat(64 << 10));
    assert_eq!(server.send("LOCK", "/state/web", &body).status, 413);
}

#[test]
fn a_body_that_breaks_off_changes_nothing() {
    let server = TestServer::start();
    let body = state("A", 1);
    let headers = format!(
        "{}Content-Length: {}\r\n",
        authorization(USER, PASSWORD),
        body.len() + 1
    );
    let mut stream = send_head(&server, "POST", &headers);
    stream.write_all(body.as_bytes()).unwrap();
    drop(stream);
    assert_eq!(server.send("GET", "/state/web", "").status, 404);
}
