//! Request bodies: never more in memory than allowed.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

/// How long a client may send nothing in the middle of a body.
const STALL: Duration = Duration::from_secs(60);

/// What is read of a body that nobody wants, so that a client that sends before it listens still hears the answer: a
/// connection closed with unread data is reset, and takes the answer with it.
const DISCARDED_BYTES: u64 = 4 << 20;

/// Why a body was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// Longer than allowed.
    #[error("the body is longer than {limit} bytes; raise --body-limit, or split the state")]
    TooLong {
        /// Bytes allowed.
        limit: u64,
    },
    /// The client stopped sending.
    #[error("the body stopped coming for {} seconds; send it again", STALL.as_secs())]
    Stalled,
    /// The connection broke, or the framing is wrong.
    #[error("the body broke off; send it again")]
    Broken,
    /// `Content-MD5` is not that of the body.
    #[error("the body is not the one that Content-MD5 was computed of; send it again")]
    Digest,
}

/// Reads a whole body of at most `limit` bytes, and compares it with the `Content-MD5` header where there is one.
pub(crate) async fn read(headers: &HeaderMap, mut body: Body, limit: u64) -> Result<Vec<u8>, BodyError> {
    if body.size_hint().lower() > limit {
        discard(body);
        return Err(BodyError::TooLong { limit });
    }
    let mut bytes = Vec::new();
    while let Some(data) = next(&mut body).await? {
        if (bytes.len() + data.len()) as u64 > limit {
            discard(body);
            return Err(BodyError::TooLong { limit });
        }
        bytes.extend_from_slice(&data);
    }
    match headers.get("content-md5") {
        Some(sent) if !is_digest(sent, &bytes) => Err(BodyError::Digest),
        _ => Ok(bytes),
    }
}

/// Reads a body away in the background, up to a bound, while the answer is on its way.
pub(crate) fn discard(mut body: Body) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(async move {
        let mut left = DISCARDED_BYTES;
        while let Ok(Some(data)) = next(&mut body).await {
            match left.checked_sub(data.len() as u64) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    });
}

/// The next piece of data.
async fn next(body: &mut Body) -> Result<Option<Bytes>, BodyError> {
    loop {
        let frame = std::future::poll_fn(|context| std::pin::Pin::new(&mut *body).poll_frame(context));
        match tokio::time::timeout(STALL, frame).await {
            Err(_) => return Err(BodyError::Stalled),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(Some(Ok(frame))) => {
                // What is no data is trailers, which say nothing here.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn is_digest(sent: &HeaderValue, bytes: &[u8]) -> bool {
    sent.as_bytes().trim_ascii() == STANDARD.encode(Md5::digest(bytes)).as_bytes()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::at_the_limit(5, Ok(b"hello".to_vec()))]
    #[case::one_less(4, Err(BodyError::TooLong { limit: 4 }))]
    #[tokio::test]
    async fn a_body_is_taken_up_to_the_limit(
        #[case] limit: u64,
        #[case] expected: Result<Vec<u8>, BodyError>,
    ) {
        assert_eq!(
            read(&HeaderMap::new(), Body::from("hello"), limit).await,
            expected
        );
    }

    #[rstest]
    #[case::right("XUFAKrxLKna5cZ2REBfFkg==", true)]
    #[case::of_other_bytes("CY9rzUYh03PK3k6DJie09g==", false)]
    #[case::not_base64("?", false)]
    #[tokio::test]
    async fn content_md5_is_compared(#[case] digest: &'static str, #[case] accepted: bool) {
        let headers = HeaderMap::from_iter([(
            axum::http::HeaderName::from_static("content-md5"),
            HeaderValue::from_static(digest),
        )]);
        let read = read(&headers, Body::from("hello"), 5).await;
        assert_eq!(read.is_ok(), accepted, "{read:?}");
    }
}
