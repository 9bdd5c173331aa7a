//! One request, from its head to its answer.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header, request};

use super::answer::Answer;
use super::body;
use super::gate::Gate;
use super::metrics::{Answered, Metrics};
use super::route::{Access, Operation, Route};
use crate::server::BodyLimit;
use crate::state::{Claim, Document, Lock, LockError, LockId, Release, StateKey};
use crate::store::{Store, StoreError, Write};
use crate::users::UserName;

/// Longest body of a LOCK or an UNLOCK. The programs send about 250 bytes.
const LOCK_BODY_LIMIT: u64 = 64 << 10;

/// Answers requests from one store.
pub(crate) struct Service {
    store: Arc<dyn Store>,
    gate: Arc<Gate>,
    metrics: Metrics,
    body_limit: BodyLimit,
}

/// A request under `/state/<key>` whose user is known.
struct StateRequest {
    operation: Operation,
    key: StateKey,
    claim: Claim,
    user: UserName,
}

/// What is told of a request in the log and in the metrics, as it becomes known.
#[derive(Default)]
struct Told {
    operation: Option<Operation>,
    user: Option<UserName>,
    received: u64,
}

impl Service {
    pub(crate) fn new(store: Arc<dyn Store>, gate: Arc<Gate>, body_limit: BodyLimit) -> Self {
        Self {
            store,
            gate,
            metrics: Metrics::default(),
            body_limit,
        }
    }

    /// Answers a request, counts it, and writes a line about it.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        let began = Instant::now();
        let (head, body) = request.into_parts();
        let route = Route::parse(head.uri.path());
        let mut told = Told::default();
        let answer = self
            .route(&route, &head, body, &mut told)
            .await
            .unwrap_or_else(|refused| refused);

        let answered = Answered {
            operation: told.operation,
            status: answer.status,
            received: told.received,
            sent: answer.body.len() as u64,
            took: began.elapsed(),
        };
        self.metrics.count(&answered);
        report(&head, &route, &told, &answered, answer.reason.as_deref());
        answer.into_response()
    }

    /// Whoever is not let in is answered before anything of the body is kept.
    async fn route(
        self: &Arc<Self>,
        route: &Route,
        head: &request::Parts,
        body: Body,
        told: &mut Told,
    ) -> Result<Answer, Answer> {
        let user = match route.access() {
            Access::Open => None,
            Access::Users => match self.gate.admit(head.headers.get(header::AUTHORIZATION)).await {
                Ok(user) => Some(user),
                Err(denied) => {
                    body::discard(body);
                    return Err(denied.into());
                }
            },
        };
        told.user.clone_from(&user);
        match (route, user) {
            (Route::State(key), Some(user)) => {
                let Some(operation) = Operation::parse(&head.method) else {
                    body::discard(body);
                    return Err(Answer::no_operation());
                };
                told.operation = Some(operation);
                let claim = claim(head.uri.query().unwrap_or_default())?;
                let request = StateRequest {
                    operation,
                    key: key.clone(),
                    claim,
                    user,
                };
                let bytes = self.body(&request, head, body).await?;
                told.received = bytes.len() as u64;
                self.on_store(move |store| request.perform(store, bytes)).await
            }
            (route, _) => {
                body::discard(body);
                self.page(route, head).await
            }
        }
    }

    /// What is no state.
    async fn page(self: &Arc<Self>, route: &Route, head: &request::Parts) -> Result<Answer, Answer> {
        match route {
            Route::NoKey(error) => return Err(error.clone().into()),
            Route::Normalise(path) => {
                let query = head
                    .uri
                    .query()
                    .map(|query| format!("?{query}"))
                    .unwrap_or_default();
                return Ok(Answer::moved(&format!("{path}{query}")));
            }
            Route::Unknown | Route::State(_) => return Err(Answer::unknown()),
            Route::Health | Route::Metrics => {}
        }
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return Err(Answer::not_allowed("GET, HEAD"));
        }
        let totals = self.on_store(|store| Ok(store.totals()?)).await?;
        Ok(match route {
            Route::Metrics => Answer::text(StatusCode::OK, self.metrics.render(&totals).trim_end())
                .content_type("text/plain; version=0.0.4; charset=utf-8"),
            _ => Answer::text(StatusCode::OK, "ok"),
        })
    }

    async fn body(
        &self,
        request: &StateRequest,
        head: &request::Parts,
        body: Body,
    ) -> Result<Vec<u8>, Answer> {
        let limit = match request.operation {
            Operation::Read | Operation::Delete => {
                body::discard(body);
                return Ok(Vec::new());
            }
            Operation::Write => self.body_limit.0,
            Operation::Lock | Operation::Unlock => LOCK_BODY_LIMIT,
        };
        Ok(body::read(&head.headers, body, limit).await?)
    }

    /// Runs `ask` where blocking is allowed. It runs to its end even when the client is gone by then.
    async fn on_store<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Store) -> Result<T, Answer> + Send + 'static,
    ) -> Result<T, Answer> {
        let store = Arc::clone(&self.store);
        match tokio::task::spawn_blocking(move || ask(&*store)).await {
            Ok(answer) => answer,
            Err(error) => Err(StoreError::Failed {
                reason: error.to_string(),
            }
            .into()),
        }
    }
}

impl StateRequest {
    fn perform(self, store: &dyn Store, bytes: Vec<u8>) -> Result<Answer, Answer> {
        let Self {
            operation,
            key,
            claim,
            user,
        } = self;
        Ok(match operation {
            Operation::Read => Answer::state(store.read(&key)?),
            Operation::Write => {
                let document = Document::parse(bytes)?;
                let write = Write {
                    document: &document,
                    claim: &claim,
                    author: user.as_str(),
                };
                store.write(&key, &write)?.into()
            }
            Operation::Delete => store.delete(&key, &claim)?.into(),
            Operation::Lock => store.lock(&key, &Lock::parse(bytes)?)?.into(),
            Operation::Unlock => store.unlock(&key, &Release::parse(&bytes)?)?.into(),
        })
    }
}

/// The lock that a query says its client holds: `ID=` among other parameters, as Go encodes them.
fn claim(query: &str) -> Result<Claim, LockError> {
    let Some(value) = query.split('&').find_map(|pair| pair.strip_prefix("ID=")) else {
        return Ok(Claim::None);
    };
    let spaced = value.replace('+', " ");
    let id = percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy();
    if id.is_empty() {
        Ok(Claim::None)
    } else {
        LockId::new(&id).map(Claim::Holder)
    }
}

/// One line a request, without its credentials, its query and its body.
fn report(head: &request::Parts, route: &Route, told: &Told, answered: &Answered, reason: Option<&str>) {
    let method = head.method.as_str();
    let path = match route {
        Route::State(key) => key.as_str(),
        _ => head.uri.path(),
    };
    let user = told.user.as_ref().map(UserName::as_str);
    let &Answered {
        status,
        received,
        sent,
        took,
        ..
    } = answered;
    let (status, took) = (status.as_u16(), took.as_millis() as u64);
    match (status, reason) {
        (500.., reason) => {
            tracing::error!(
                method,
                path,
                user,
                status,
                received,
                sent,
                milliseconds = took,
                reason
            );
        }
        (_, Some(reason)) => {
            tracing::warn!(
                method,
                path,
                user,
                status,
                received,
                sent,
                milliseconds = took,
                reason
            );
        }
        (_, None) => tracing::info!(method, path, user, status, received, sent, milliseconds = took),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none("", Claim::None)]
    #[case::another_parameter("id=x&VID=y", Claim::None)]
    #[case::empty("ID=", Claim::None)]
    #[case::alone("ID=a-b", Claim::Holder(LockId::new("a-b").unwrap()))]
    #[case::merged_into_a_query("team=x&ID=a-b", Claim::Holder(LockId::new("a-b").unwrap()))]
    #[case::encoded("ID=a%2Bb+c", Claim::Holder(LockId::new("a+b c").unwrap()))]
    fn a_query_may_claim_a_lock(#[case] query: &str, #[case] expected: Claim) {
        assert_eq!(claim(query), Ok(expected));
    }
}
