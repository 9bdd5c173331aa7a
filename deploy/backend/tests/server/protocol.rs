//! What each method answers.

use std::sync::Barrier;
use std::thread;

use rstest::rstest;

use crate::support::{PASSWORD, USER};
use crate::support::{TestServer, authorization, lock, send, state};

#[test]
fn a_state_that_was_never_written_is_not_found() {
    let server = TestServer::start();
    let reply = server.send("GET", "/state/web", "");
    assert_eq!(
        (reply.status, reply.body.as_str()),
        (404, "there is no state here\n")
    );
    assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
}

#[rstest]
#[case::post("POST")]
#[case::put("PUT")]
fn a_state_comes_back_as_it_was_written(#[case] method: &str) {
    let server = TestServer::start();
    let written = server.send(method, "/state/group/web", &state("A", 1));
    assert_eq!((written.status, written.body.as_str()), (200, ""));
    let read = server.send("GET", "/state/group/web", "");
    assert_eq!((read.status, read.body), (200, state("A", 1)));
    assert_eq!(read.headers["content-type"], "application/json");
    assert_eq!(read.headers["cache-control"], "no-store");
}

#[test]
fn head_answers_as_get_without_the_body() {
    let server = TestServer::start();
    server.send("POST", "/state/web", &state("A", 1));
    let reply = server.send("HEAD", "/state/web", "");
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    assert_eq!(reply.header("content-length"), state("A", 1).len().to_string());
    assert_eq!(server.send("HEAD", "/state/other", "").status, 404);
}

#[rstest]
#[case::html("<html>login</html>")]
#[case::null("null")]
#[case::no_version("{}")]
#[case::nothing("")]
fn what_is_no_state_is_refused_and_leaves_nothing(#[case] body: &str) {
    let server = TestServer::start();
    let reply = server.send("POST", "/state/web", body);
    assert_eq!(reply.status, 400);
    assert!(reply.body.starts_with("the "), "{}", reply.body);
    assert_eq!(server.send("GET", "/state/web", "").status, 404);
}

#[rstest]
#[case::older(state("A", 4))]
#[case::other_content_under_the_same_serial(state("A", 5).replace("{}", "{\"changed\": 1}"))]
#[case::another_lineage(state("B", 9))]
fn a_state_that_must_not_replace_the_stored_one_is_a_conflict(#[case] incoming: String) {
    let server = TestServer::start();
    server.send("POST", "/state/web", &state("A", 5));
    assert_eq!(server.send("POST", "/state/web", &incoming).status, 409);
    assert_eq!(server.send("GET", "/state/web", "").body, state("A", 5));
}

#[test]
fn a_write_that_is_repeated_succeeds() {
    let server = TestServer::start();
    assert_eq!(server.send("POST", "/state/web", &state("A", 5)).status, 200);
    assert_eq!(server.send("POST", "/state/web", &state("A", 5)).status, 200);
}

#[test]
fn content_md5_is_compared() {
    let server = TestServer::start();
    let headers = format!(
        "{}Content-MD5: CY9rzUYh03PK3k6DJie09g==\r\n",
        authorization(USER, PASSWORD)
    );
    let reply = send(server.address(), "POST", "/state/web", &headers, &state("A", 1));
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("Content-MD5"), "{}", reply.body);
    assert_eq!(server.send("GET", "/state/web", "").status, 404);
}

#[test]
fn a_held_lock_answers_with_the_holders_own_bytes() {
    let server = TestServer::start();
    let odd = lock("x").replace("\"Who\"", " \"Who\" ");
    assert_eq!(server.send("LOCK", "/state/web", &odd).status, 200);
    for (method, path, body) in [
        ("LOCK", "/state/web", lock("y")),
        ("UNLOCK", "/state/web", lock("y")),
        ("POST", "/state/web", state("A", 1)),
        ("POST", "/state/web?ID=y", state("A", 1)),
        ("PUT", "/state/web?ID=y", state("A", 1)),
        ("DELETE", "/state/web", String::new()),
        ("DELETE", "/state/web?ID=y", String::new()),
    ] {
        let reply = server.send(method, path, &body);
        assert_eq!((reply.status, &reply.body), (423, &odd), "{method} {path}");
        assert_eq!(
            reply.header("content-type"),
            "application/json",
            "{method} {path}"
        );
    }
}

#[test]
fn a_holder_does_all_that_a_run_does() {
    let server = TestServer::start();
    for (method, path, body) in [
        ("LOCK", "/state/web", lock("x")),
        ("LOCK", "/state/web", lock("x")),
        ("GET", "/state/web?ID=x", String::new()),
        ("POST", "/state/web?ID=x", state("A", 1)),
        ("POST", "/state/web?team=blue&ID=x", state("A", 2)),
        ("DELETE", "/state/web?ID=x", String::new()),
        ("UNLOCK", "/state/web", lock("x")),
        ("UNLOCK", "/state/web", lock("x")),
        ("LOCK", "/state/web", lock("y")),
    ] {
        let expected = if method == "GET" { 404 } else { 200 };
        assert_eq!(
            server.send(method, path, &body).status,
            expected,
            "{method} {path}"
        );
    }
}

#[rstest]
#[case::terraform("")]
#[case::tofu(
    r#"{"ID":"x","Operation":"","Info":"","Who":"","Version":"","Created":"0001-01-01T00:00:00Z","Path":""}"#
)]
fn force_unlock_works_as_each_program_sends_it(#[case] body: &str) {
    let server = TestServer::start();
    server.send("LOCK", "/state/web", &lock("x"));
    assert_eq!(server.send("UNLOCK", "/state/web", body).status, 200);
    assert_eq!(server.send("LOCK", "/state/web", &lock("y")).status, 200);
}

#[rstest]
#[case::lock_without_an_id("LOCK", "{}")]
#[case::lock_without_a_body("LOCK", "")]
#[case::unlock_without_an_id("UNLOCK", "{}")]
#[case::unlock_of_html("UNLOCK", "<html>")]
fn what_is_no_lock_is_refused(#[case] method: &str, #[case] body: &str) {
    let server = TestServer::start();
    assert_eq!(server.send(method, "/state/web", body).status, 400);
    assert_eq!(server.send("LOCK", "/state/web", &lock("y")).status, 200);
}

#[test]
fn a_deleted_state_is_gone() {
    let server = TestServer::start();
    server.send("POST", "/state/web", &state("A", 1));
    assert_eq!(server.send("DELETE", "/state/web", "").status, 200);
    assert_eq!(server.send("GET", "/state/web", "").status, 404);
    assert_eq!(server.send("POST", "/state/web", &state("B", 1)).status, 200);
}

#[rstest]
#[case::trailing("/state/web/", "/state/web")]
#[case::doubled("/state//web?ID=x&a=%20", "/state/web?ID=x&a=%20")]
#[case::leading("//state/web", "/state/web")]
fn extra_slashes_are_redirected_with_method_and_body(#[case] path: &str, #[case] normal: &str) {
    let server = TestServer::start();
    for method in ["GET", "POST", "PUT", "DELETE", "LOCK", "UNLOCK"] {
        let reply = server.send(method, path, &lock("x"));
        assert_eq!(
            (reply.status, reply.header("location")),
            (308, normal),
            "{method}"
        );
    }
    assert_eq!(server.send("LOCK", "/state/web", &lock("y")).status, 200);
}

#[rstest]
#[case::no_key("/state")]
#[case::no_key_but_a_slash("/state/")]
#[case::encoded_slash("/state/a%2Fb")]
#[case::parent("/state/a/..")]
fn an_address_without_a_key_is_refused(#[case] path: &str) {
    let server = TestServer::start();
    assert_eq!(server.send("LOCK", path, &lock("x")).status, 400);
}

#[test]
fn a_method_that_there_is_not_is_refused_with_those_there_are() {
    let server = TestServer::start();
    let state = server.send("PATCH", "/state/web", "");
    assert_eq!(
        (state.status, state.header("allow")),
        (405, "GET, HEAD, POST, PUT, DELETE, LOCK, UNLOCK")
    );
    let health = server.send("POST", "/health", "");
    assert_eq!((health.status, health.header("allow")), (405, "GET, HEAD"));
}

#[test]
fn one_of_many_clients_takes_the_lock() {
    const CLIENTS: usize = 8;
    let server = TestServer::start();
    let start = Barrier::new(CLIENTS);
    let replies: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (server, start) = (&server, &start);
                scope.spawn(move || {
                    start.wait();
                    server.send("LOCK", "/state/web", &lock(&number.to_string()))
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let winner = replies.iter().position(|reply| reply.status == 200).unwrap();
    let losers = replies
        .iter()
        .filter(|reply| reply.status == 423 && reply.body == lock(&winner.to_string()))
        .count();
    assert_eq!(losers, CLIENTS - 1);
}
