//! Counters, in Prometheus' text format.
//!
//! All labels come from fixed sets. No state key is one: it would tell names to whoever may read metrics, and let a client
//! make as many series as it likes.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

use super::route::Operation;
use crate::store::Totals;

/// What is counted since the process began.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: [[AtomicU64; CLASSES.len()]; OPERATIONS.len()],
    microseconds: [AtomicU64; OPERATIONS.len()],
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    denied: AtomicU64,
    lock_conflicts: AtomicU64,
    state_conflicts: AtomicU64,
}

/// One request, answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// What it asked of a state; `None` for all other requests.
    pub(crate) operation: Option<Operation>,
    /// What it was answered.
    pub(crate) status: StatusCode,
    /// Length of its body, as far as it was read.
    pub(crate) received: u64,
    /// Length of the answer's body.
    pub(crate) sent: u64,
    /// From its head to the answer.
    pub(crate) took: Duration,
}

const OPERATIONS: [(Option<Operation>, &str); 6] = [
    (Some(Operation::Read), "read"),
    (Some(Operation::Write), "write"),
    (Some(Operation::Delete), "delete"),
    (Some(Operation::Lock), "lock"),
    (Some(Operation::Unlock), "unlock"),
    (None, "other"),
];

const CLASSES: [(u16, &str); 4] = [(2, "2xx"), (3, "3xx"), (4, "4xx"), (5, "5xx")];

impl Metrics {
    /// Counts a request.
    pub(crate) fn count(&self, answered: &Answered) {
        let add = |counter: &AtomicU64, number: u64| _ = counter.fetch_add(number, Ordering::Relaxed);
        let operation = OPERATIONS
            .iter()
            .position(|(operation, _)| *operation == answered.operation);
        let class = CLASSES
            .iter()
            .position(|(class, _)| *class == answered.status.as_u16() / 100);
        if let (Some(operation), Some(class)) = (operation, class) {
            add(&self.requests[operation][class], 1);
            add(&self.microseconds[operation], answered.took.as_micros() as u64);
        }
        add(&self.received_bytes, answered.received);
        add(&self.sent_bytes, answered.sent);
        match answered.status {
            StatusCode::UNAUTHORIZED => add(&self.denied, 1),
            StatusCode::LOCKED => add(&self.lock_conflicts, 1),
            StatusCode::CONFLICT => add(&self.state_conflicts, 1),
            _ => {}
        }
    }

    /// The page that `/metrics` answers.
    pub(crate) fn render(&self, totals: &Totals) -> String {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut page = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
            _ = writeln!(
                page,
                "# HELP provisor_backend_{name} {help}\n# TYPE provisor_backend_{name} {kind}"
            );
            for (labels, value) in samples {
                _ = writeln!(page, "provisor_backend_{name}{labels} {value}");
            }
        };
        let one = |value: u64| vec![(String::new(), value.to_string())];

        let mut requests = Vec::new();
        let mut seconds = Vec::new();
        for (index, (_, operation)) in OPERATIONS.iter().enumerate() {
            for (class, (_, label)) in CLASSES.iter().enumerate() {
                let labels = format!("{{operation=\"{operation}\",status=\"{label}\"}}");
                requests.push((labels, read(&self.requests[index][class]).to_string()));
            }
            let spent = Duration::from_micros(read(&self.microseconds[index])).as_secs_f64();
            seconds.push((format!("{{operation=\"{operation}\"}}"), spent.to_string()));
        }
        family("requests_total", "counter", "Requests answered.", &requests);
        family(
            "request_seconds_total",
            "counter",
            "Time spent on requests.",
            &seconds,
        );
        family(
            "received_bytes_total",
            "counter",
            "Bytes of request bodies.",
            &one(read(&self.received_bytes)),
        );
        family(
            "sent_bytes_total",
            "counter",
            "Bytes of answer bodies.",
            &one(read(&self.sent_bytes)),
        );
        family(
            "denied_total",
            "counter",
            "Requests without a user.",
            &one(read(&self.denied)),
        );
        let locked = one(read(&self.lock_conflicts));
        family(
            "lock_conflicts_total",
            "counter",
            "Requests that found the lock held.",
            &locked,
        );
        let refused = one(read(&self.state_conflicts));
        family(
            "state_conflicts_total",
            "counter",
            "Writes that must not replace what is stored.",
            &refused,
        );
        family("states", "gauge", "Keys with a state.", &one(totals.states));
        family(
            "versions",
            "gauge",
            "Versions kept, of all keys.",
            &one(totals.versions),
        );
        family("locks", "gauge", "Locks held.", &one(totals.locks));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(operation: Option<Operation>, status: StatusCode) -> Answered {
        Answered {
            operation,
            status,
            received: 10,
            sent: 1,
            took: Duration::from_millis(1500),
        }
    }

    #[test]
    fn requests_are_counted_by_what_they_ask_and_how_they_end() {
        let metrics = Metrics::default();
        metrics.count(&answered(Some(Operation::Lock), StatusCode::OK));
        metrics.count(&answered(Some(Operation::Lock), StatusCode::LOCKED));
        metrics.count(&answered(None, StatusCode::UNAUTHORIZED));
        let page = metrics.render(&Totals {
            states: 1,
            versions: 2,
            locks: 3,
        });
        for line in [
            "provisor_backend_requests_total{operation=\"lock\",status=\"2xx\"} 1",
            "provisor_backend_requests_total{operation=\"lock\",status=\"4xx\"} 1",
            "provisor_backend_requests_total{operation=\"other\",status=\"4xx\"} 1",
            "provisor_backend_requests_total{operation=\"write\",status=\"2xx\"} 0",
            "provisor_backend_request_seconds_total{operation=\"lock\"} 3",
            "provisor_backend_received_bytes_total 30",
            "provisor_backend_sent_bytes_total 3",
            "provisor_backend_denied_total 1",
            "provisor_backend_lock_conflicts_total 1",
            "provisor_backend_state_conflicts_total 0",
            "provisor_backend_states 1",
            "provisor_backend_versions 2",
            "provisor_backend_locks 3",
        ] {
            assert!(page.lines().any(|is| is == line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn each_family_says_what_it_is_once() {
        let page = Metrics::default().render(&Totals {
            states: 0,
            versions: 0,
            locks: 0,
        });
        let types = page.lines().filter(|line| line.starts_with("# TYPE ")).count();
        let helps = page.lines().filter(|line| line.starts_with("# HELP ")).count();
        assert_eq!((types, helps), (10, 10));
    }
}
