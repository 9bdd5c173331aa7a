//! Who is let in.

use rstest::rstest;

use crate::support::{PASSWORD, TestServer, USER, authorization, lock, send, state};

#[rstest]
#[case::none(String::new())]
#[case::wrong_password(authorization(USER, "wrong"))]
#[case::wrong_user(authorization("mallory", PASSWORD))]
#[case::another_scheme("Authorization: Bearer abc\r\n".to_owned())]
fn no_method_does_anything_for_whom_nobody_knows(#[case] headers: String) {
    let server = TestServer::start();
    server.send("POST", "/state/web", &state("A", 1));
    for (method, body) in [
        ("GET", String::new()),
        ("HEAD", String::new()),
        ("POST", state("A", 2)),
        ("PUT", state("A", 2)),
        ("DELETE", String::new()),
        ("LOCK", lock("x")),
        ("UNLOCK", String::new()),
        ("PATCH", String::new()),
    ] {
        let reply = send(server.address(), method, "/state/web", &headers, &body);
        assert_eq!(reply.status, 401, "{method}");
        assert_eq!(
            reply.header("www-authenticate"),
            "Basic realm=\"state\", charset=\"UTF-8\"",
            "{method}"
        );
        assert!(!reply.body.contains("lineage"), "{method}");
    }
    assert_eq!(server.send("GET", "/state/web", "").body, state("A", 1));
    assert_eq!(server.send("LOCK", "/state/web", &lock("y")).status, 200);
}

#[rstest]
#[case::no_key("/state/")]
#[case::extra_slash("/state/web/")]
#[case::not_there("/state/other")]
fn nothing_under_state_can_be_told_apart_without_a_user(#[case] path: &str) {
    let server = TestServer::start();
    assert_eq!(send(server.address(), "GET", path, "", "").status, 401);
}

#[rstest]
#[case::health("/health", 200)]
#[case::metrics("/metrics", 200)]
#[case::elsewhere("/", 404)]
fn what_holds_no_state_needs_no_user(#[case] path: &str, #[case] status: u16) {
    let server = TestServer::start();
    assert_eq!(send(server.address(), "GET", path, "", "").status, status);
}

#[test]
fn metrics_count_and_name_no_key() {
    let server = TestServer::start();
    server.send("POST", "/state/canary-key", &state("A", 1));
    server.send("LOCK", "/state/canary-key", &lock("x"));
    let page = send(server.address(), "GET", "/metrics", "", "");
    assert_eq!(
        page.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    for line in [
        "provisor_backend_requests_total{operation=\"write\",status=\"2xx\"} 1",
        "provisor_backend_states 1",
        "provisor_backend_locks 1",
    ] {
        assert!(
            page.body.lines().any(|is| is == line),
            "{line} is not in\n{}",
            page.body
        );
    }
    assert!(
        !page.body.contains("canary") && !page.body.contains(USER),
        "{}",
        page.body
    );
}
