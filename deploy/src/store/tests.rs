use std::time::Duration;

use rstest::rstest;

use super::fake_backend::{FakeBackend, Fault};
use super::*;
use crate::address::StateAddress;
use crate::lock::LockInfo;
use crate::state::StateError;
use crate::state::samples::state;

fn patience() -> Patience {
    Patience {
        pauses: vec![Duration::ZERO],
        ..Patience::of_a_poll()
    }
}

fn client(backend: &FakeBackend) -> Client {
    client_as(backend, &Credentials::default())
}

fn client_as(backend: &FakeBackend, credentials: &Credentials) -> Client {
    Client::new(
        StateAddress::parse(&backend.url()).unwrap(),
        credentials,
        patience(),
    )
    .unwrap()
}

fn lock() -> LockInfo {
    LockInfo::new("a test", jiff::Timestamp::UNIX_EPOCH)
}

#[rstest]
#[case::not_found(404, "nothing")]
#[case::no_content(204, "")]
#[case::an_empty_body(200, "")]
fn no_state_has_three_forms(#[case] status: u16, #[case] body: &'static str) {
    let backend = FakeBackend::start();
    backend.script("GET", 1, Fault::Answer(status, "", body));
    assert_eq!(client(&backend).read(), Ok(Read::Absent));
}

#[rstest]
#[case::a_login_page("<html>sign in</html>")]
#[case::an_empty_object("{}")]
#[case::null("null")]
fn a_200_without_a_state_is_corrupt_and_not_absent(#[case] body: &'static str) {
    let backend = FakeBackend::start();
    backend.script("GET", 1, Fault::Answer(200, "", body));
    assert!(matches!(
        client(&backend).read(),
        Ok(Read::Corrupt(
            StateError::NotJson { .. } | StateError::NotState { .. }
        ))
    ));
}

#[test]
fn a_written_state_is_read_back_to_the_byte() {
    let backend = FakeBackend::start();
    let (client, lock, state) = (client(&backend), lock(), state("L", 7, &["a"]));
    assert_eq!(client.lock(&lock), Ok(LockAnswer::Taken));
    client.write(&state, &lock).unwrap();
    let Ok(Read::Held(back)) = client.read() else {
        panic!("no state")
    };
    assert_eq!(back.bytes(), state.bytes());
    client.unlock(&lock.body()).unwrap();
    assert_eq!(backend.held(|held| held.lock.clone()), None);
}

#[test]
fn every_request_carries_the_credentials_and_debug_shows_none() {
    let backend = FakeBackend::start();
    let credentials = Credentials {
        username: Some("alice".into()),
        password: Some(Secret::new("canary")),
        ..Credentials::default()
    };
    let (client, lock) = (client_as(&backend, &credentials), lock());
    client.lock(&lock).unwrap();
    client.write(&state("L", 1, &[]), &lock).unwrap();
    client.read().unwrap();
    client.unlock(&lock.body()).unwrap();
    assert_eq!(backend.methods(), ["LOCK", "POST", "GET", "UNLOCK"]);
    backend.held(|held| {
        for seen in &held.seen {
            assert_eq!(
                seen.headers["authorization"], "Basic YWxpY2U6Y2FuYXJ5",
                "{}",
                seen.method
            );
        }
    });
    assert!(!format!("{client:?}").contains("canary"));
}

#[rstest]
#[case::permanent(301)]
#[case::found(302)]
#[case::see_other(303)]
#[case::temporary(307)]
#[case::permanent_same_method(308)]
fn no_redirect_is_followed(#[case] status: u16) {
    let backend = FakeBackend::start();
    for method in ["GET", "LOCK", "POST", "UNLOCK"] {
        backend.script(
            method,
            1,
            Fault::Answer(status, "Location: http://u:canary@elsewhere/state/\r\n", ""),
        );
    }
    let (client, lock) = (client(&backend), lock());
    let errors = [
        client.read().unwrap_err(),
        client.lock(&lock).unwrap_err(),
        client.write(&state("L", 1, &[]), &lock).unwrap_err(),
        client.unlock(&lock.body()).unwrap_err(),
    ];
    for error in errors {
        let StoreError::Redirected {
            status: told,
            location,
            ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((told, location.as_str()), (status, "http://elsewhere/state"));
    }
    assert_eq!(backend.methods(), ["GET", "LOCK", "POST", "UNLOCK"]);
}

#[rstest]
#[case::unauthorized(401)]
#[case::forbidden(403)]
fn refused_credentials_are_told_as_such(#[case] status: u16) {
    let backend = FakeBackend::start();
    backend.script("GET", 1, Fault::Answer(status, "", "no"));
    let error = client(&backend).read().unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }));
    assert!(error.to_string().contains("TF_HTTP_PASSWORD"));
}

#[rstest]
#[case::too_many(429)]
#[case::internal(500)]
#[case::bad_gateway(502)]
fn a_sick_server_is_not_an_absent_one(#[case] status: u16) {
    let backend = FakeBackend::start();
    backend.script("GET", 1, Fault::Answer(status, "", "database is down"));
    assert!(matches!(client(&backend).read(), Err(StoreError::Failing { .. })));
    assert_eq!(backend.methods(), ["GET"]);
}

#[test]
fn nobody_listening_is_unreachable() {
    let address = StateAddress::parse(&FakeBackend::start().url()).unwrap();
    let client = Client::new(address, &Credentials::default(), patience()).unwrap();
    assert!(matches!(client.read(), Err(StoreError::Unreachable { .. })));
    assert!(matches!(
        client.lock(&lock()),
        Err(StoreError::Unreachable { .. })
    ));
}

#[test]
fn a_get_that_is_cut_off_is_repeated_and_a_post_is_not() {
    let backend = FakeBackend::start();
    let (client, lock) = (client(&backend), lock());
    backend.held(|held| held.state = Some(state("L", 1, &["a"]).bytes().to_vec()));
    backend.script("GET", 1, Fault::DieAnswering);
    assert_eq!(client.read(), Ok(Read::Held(state("L", 1, &["a"]))));
    client.lock(&lock).unwrap();
    backend.script("POST", 1, Fault::DieAfter);
    assert!(matches!(
        client.write(&state("L", 2, &["a"]), &lock),
        Err(StoreError::CutOff { .. })
    ));
    assert_eq!(backend.methods(), ["GET", "GET", "LOCK", "POST"]);
}

#[test]
fn a_post_that_dies_in_the_middle_is_cut_off() {
    let backend = FakeBackend::start();
    let (client, lock) = (client(&backend), lock());
    client.lock(&lock).unwrap();
    backend.script("POST", 1, Fault::DieReading);
    assert!(matches!(
        client.write(&state("L", 1, &["a"]), &lock),
        Err(StoreError::CutOff { .. })
    ));
    assert_eq!(backend.held(|held| held.state.clone()), None);
}

#[rstest]
#[case::created(201)]
#[case::no_content(204)]
fn only_200_is_a_lock(#[case] status: u16) {
    let backend = FakeBackend::start();
    backend.script("LOCK", 1, Fault::Answer(status, "", ""));
    assert!(matches!(
        client(&backend).lock(&lock()),
        Err(StoreError::Unexpected { method: "LOCK", .. })
    ));
}

#[rstest]
#[case::conflict(409)]
#[case::locked(423)]
fn a_clash_without_json_is_an_unknown_holder(#[case] status: u16) {
    let backend = FakeBackend::start();
    backend.script("LOCK", 1, Fault::Answer(status, "", "taken"));
    let Ok(LockAnswer::Held(holder)) = client(&backend).lock(&lock()) else {
        panic!("taken")
    };
    assert_eq!((holder.body.as_slice(), holder.info), (b"taken".as_slice(), None));
}

#[test]
fn a_holder_can_be_unlocked_by_its_own_bytes() {
    let backend = FakeBackend::start();
    let body = br#"{"ID":"7", "Who":"bob@laptop","Created":"2026-01-02T03:04:05.120Z"}"#.to_vec();
    backend.held(|held| held.lock = Some(body.clone()));
    let client = client(&backend);
    let Ok(LockAnswer::Held(holder)) = client.lock(&lock()) else {
        panic!("taken")
    };
    client.unlock(&holder.body).unwrap();
    assert_eq!(backend.held(|held| held.lock.clone()), None);
}

#[test]
fn ca_certificates_that_are_none_are_refused() {
    let address = StateAddress::parse("https://host/s").unwrap();
    let credentials = Credentials {
        ca_certificates: Some("not a certificate".into()),
        ..Credentials::default()
    };
    let error = Client::new(address, &credentials, patience()).unwrap_err();
    assert!(error.to_string().contains("TF_HTTP_CLIENT_CA_CERTIFICATE_PEM"));
}
