//! What an address and a method ask for. Pure.

use axum::http::Method;

use crate::state::{KeyError, StateKey};

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/health`
    Health,
    /// `/metrics`
    Metrics,
    /// `/state/<key>`
    State(StateKey),
    /// Under `/state`, but with a doubled or a trailing slash: the path without them.
    Normalise(String),
    /// Under `/state`, but no key.
    NoKey(KeyError),
    /// Nothing that is here.
    Unknown,
}

/// Who may see what a route answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody.
    Open,
    /// Users.
    Users,
}

impl Route {
    /// Reads the path of an address, still percent-encoded.
    pub(crate) fn parse(path: &str) -> Self {
        match path {
            "/health" => return Self::Health,
            "/metrics" => return Self::Metrics,
            _ => {}
        }
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let Some(("state", names)) = segments.split_first().map(|(first, names)| (*first, names)) else {
            return Self::Unknown;
        };
        match StateKey::from_url_segments(names.iter().copied()) {
            Err(error) => Self::NoKey(error),
            Ok(key) => {
                let normal = format!("/{}", segments.join("/"));
                if normal == path {
                    Self::State(key)
                } else {
                    Self::Normalise(normal)
                }
            }
        }
    }

    /// Health and metrics hold no state, no key and no name; all else needs a user.
    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Health | Self::Metrics | Self::Unknown => Access::Open,
            Self::State(_) | Self::Normalise(_) | Self::NoKey(_) => Access::Users,
        }
    }
}

/// What a method asks of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// GET and HEAD.
    Read,
    /// POST and PUT.
    Write,
    /// DELETE.
    Delete,
    /// LOCK.
    Lock,
    /// UNLOCK.
    Unlock,
}

impl Operation {
    /// The methods there are, as the header `Allow` lists them.
    pub(crate) const ALLOW: &str = "GET, HEAD, POST, PUT, DELETE, LOCK, UNLOCK";

    /// Reads a method; case counts, as in HTTP.
    pub(crate) fn parse(method: &Method) -> Option<Self> {
        match method.as_str() {
            "GET" | "HEAD" => Some(Self::Read),
            "POST" | "PUT" => Some(Self::Write),
            "DELETE" => Some(Self::Delete),
            "LOCK" => Some(Self::Lock),
            "UNLOCK" => Some(Self::Unlock),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn state(key: &str) -> Route {
        Route::State(key.parse().unwrap())
    }

    fn normalise(path: &str) -> Route {
        Route::Normalise(path.to_owned())
    }

    #[rstest]
    #[case::health("/health", Route::Health)]
    #[case::metrics("/metrics", Route::Metrics)]
    #[case::one_segment("/state/web", state("web"))]
    #[case::segments("/state/a/b/c", state("a/b/c"))]
    #[case::encoded("/state/a%20b", state("a b"))]
    #[case::a_key_like_a_route("/state/health", state("health"))]
    #[case::trailing_slash("/state/a/", normalise("/state/a"))]
    #[case::doubled_slash("/state/a//b", normalise("/state/a/b"))]
    #[case::doubled_first("//state/a", normalise("/state/a"))]
    #[case::escapes_are_kept("/state/a%20b//", normalise("/state/a%20b"))]
    #[case::no_key("/state", Route::NoKey(KeyError::Empty))]
    #[case::no_key_but_a_slash("/state/", Route::NoKey(KeyError::Empty))]
    #[case::root("/", Route::Unknown)]
    #[case::stranger("/states/a", Route::Unknown)]
    #[case::another_host("//example.org/state/a", Route::Unknown)]
    #[case::case_counts("/State/a", Route::Unknown)]
    #[case::options_asterisk("*", Route::Unknown)]
    #[case::health_is_no_folder("/health/", Route::Unknown)]
    fn a_path_names_a_route(#[case] path: &str, #[case] route: Route) {
        assert_eq!(Route::parse(path), route);
    }

    #[rstest]
    #[case::encoded_slash("/state/a%2fb")]
    #[case::parent("/state/a/..")]
    #[case::encoded_parent("/state/%2e%2e/health")]
    fn a_path_that_could_be_read_in_two_ways_names_no_key(#[case] path: &str) {
        let route = Route::parse(path);
        assert!(
            matches!(route, Route::NoKey(KeyError::Segment { .. })),
            "{route:?}"
        );
        assert_eq!(route.access(), Access::Users);
    }
}
