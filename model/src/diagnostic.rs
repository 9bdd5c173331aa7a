//! What is wrong with a fleet, as data. The program renders it; this crate never prints.

use std::ops::Range;

/// One mistake, or one thing to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable name, one of [`code`], such as `model::unknown-component`.
    pub code: &'static str,
    /// Whether work goes on.
    pub severity: Severity,
    /// What is wrong, on one line.
    pub message: String,
    /// Where, the main place first.
    pub labels: Vec<Label>,
    /// What to do.
    pub help: String,
}

/// Whether work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The stage fails.
    Error,
    /// The stage goes on.
    Warning,
}

/// A place in a fleet file, with what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Path of the file, as it was given to [`crate::load`].
    pub file: String,
    /// Bytes of the file's text.
    pub span: Range<usize>,
    /// What is to be said about the place.
    pub text: String,
}

/// A place in a fleet file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Path of the file, as it was given to [`crate::load`].
    pub file: String,
    /// Bytes of the file's text.
    pub span: Range<usize>,
}

impl Diagnostic {
    /// An error. `message` says what is wrong and `help` what to do.
    pub(crate) fn error(
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: Vec::new(),
            help: help.into(),
        }
    }

    /// A warning. `message` says what is odd and `help` what to do.
    pub(crate) fn warning(
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, message, help)
        }
    }

    /// Adds a place.
    pub(crate) fn at(mut self, place: &Place, text: impl Into<String>) -> Diagnostic {
        let Place { file, span } = place.clone();
        self.labels.push(Label {
            file,
            span,
            text: text.into(),
        });
        self
    }
}

/// The mistakes of one stage while it works.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<Diagnostic>);

impl Report {
    /// Adds one.
    pub(crate) fn add(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Errors and warnings apart, each sorted by file and place.
    pub(crate) fn sorted(mut self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        self.0.sort_by(|a, b| order(a).cmp(&order(b)));
        self.0
            .into_iter()
            .partition(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// By file, then place; the rest only makes the order total.
fn order(diagnostic: &Diagnostic) -> (&str, usize, usize, &str, &str) {
    let (file, start, end) = match diagnostic.labels.first() {
        Some(label) => (label.file.as_str(), label.span.start, label.span.end),
        None => ("", 0, 0),
    };
    (file, start, end, diagnostic.code, &diagnostic.message)
}

/// Every code there is.
pub mod code {
    /// A file is not TOML.
    pub const SYNTAX: &str = "model::syntax";
    /// A file that a fleet does not have.
    pub const UNKNOWN_FILE: &str = "model::unknown-file";
    /// There is no `fleet.toml`.
    pub const NO_FLEET_FILE: &str = "model::no-fleet-file";
    /// A key that its table does not have.
    pub const UNKNOWN_FIELD: &str = "model::unknown-field";
    /// A key that its table must have.
    pub const MISSING_FIELD: &str = "model::missing-field";
    /// A value of another type than its key takes.
    pub const WRONG_TYPE: &str = "model::wrong-type";
    /// A value of the right type that its key does not take.
    pub const INVALID_VALUE: &str = "model::invalid-value";
    /// A name with a character or a length that its kind does not allow.
    pub const INVALID_NAME: &str = "model::invalid-name";
    /// A provision that does not say which database engine it is (PR-15).
    pub const GENERIC_ENGINE: &str = "model::generic-engine";
    /// The same thing in a list twice.
    pub const LISTED_TWICE: &str = "model::listed-twice";
    /// A component that has no file.
    pub const UNKNOWN_COMPONENT: &str = "model::unknown-component";
    /// An environment that is not declared.
    pub const UNKNOWN_ENVIRONMENT: &str = "model::unknown-environment";
    /// A network that is not declared.
    pub const UNKNOWN_NETWORK: &str = "model::unknown-network";
    /// A node that its group does not list.
    pub const UNKNOWN_NODE: &str = "model::unknown-node";
    /// A resource that the registry does not hold.
    pub const UNKNOWN_RESOURCE: &str = "model::unknown-resource";
    /// A resource that has no policy yet, so that it can be provided and required, and not asked for.
    pub const NOT_AVAILABLE: &str = "model::not-available";
    /// A required provision that no component provides.
    pub const UNKNOWN_PROVISION: &str = "model::unknown-provision";
    /// One node name in two groups.
    pub const NODE_NAMED_TWICE: &str = "model::node-named-twice";
    /// One address for two nodes.
    pub const ADDRESS_TAKEN: &str = "model::address-taken";
    /// A node's address that its network does not hold.
    pub const OUTSIDE_NETWORK: &str = "model::outside-network";
    /// One provision in both scopes.
    pub const SCOPE_CONFLICT: &str = "model::scope-conflict";
    /// Two policies of one environment for one resource.
    pub const TWO_POLICIES: &str = "model::two-policies";
    /// A group's backend node provides no state backend.
    pub const NOT_A_BACKEND: &str = "model::not-a-backend";
    /// A second group with a backend of its own.
    pub const SECOND_BACKEND: &str = "model::second-backend";
    /// Warning: a component that no node has.
    pub const UNUSED_COMPONENT: &str = "model::unused-component";
    /// A request for a resource that the environment has no policy for.
    pub const NO_POLICY: &str = "model::no-policy";
    /// A policy was called with an argument of another shape than it takes.
    pub const WRONG_SHAPE: &str = "model::wrong-shape";
    /// A row that the provider table does not have.
    pub const NO_ROW: &str = "model::no-row";
    /// Two overrides of one row.
    pub const TWO_ROWS: &str = "model::two-rows";
    /// A routing row and a pin that contradict each other.
    pub const ROW_AGAINST_PIN: &str = "model::row-against-pin";
    /// A group that is not declared, or that hosts itself.
    pub const UNKNOWN_GROUP: &str = "model::unknown-group";
    /// A contract resource that a node consumes and its deployment does not provide (RF FR-009).
    pub const UNPROVIDED: &str = "model::unprovided";
    /// A component binds, contributes to or receives what it does not require or provide.
    pub const NOT_ITS_OWN: &str = "model::not-its-own";
    /// Two provisions of one component that grant credentials: both would name one role after one consumer.
    pub const GRANTS_TWICE: &str = "model::grants-twice";
    /// A pin that names what the fleet does not have.
    pub const DANGLING_PIN: &str = "model::dangling-pin";
    /// Warning: a pin that decides nothing.
    pub const UNUSED_PIN: &str = "model::unused-pin";
    /// Warning: a pin without its component, where one component can be meant.
    pub const INCOMPLETE_PIN: &str = "model::incomplete-pin";
    /// A pin at what does not provide (PR-24).
    pub const PIN_NOT_A_PROVIDER: &str = "model::pin-not-a-provider";
    /// A contribution that its provider does not receive.
    pub const NOBODY_RECEIVES: &str = "model::nobody-receives";
    /// A name over the limit of the engine that is to take it (PR-13).
    pub const NAME_TOO_LONG: &str = "model::name-too-long";
    /// A requirement that nothing answers.
    pub const NO_PROVIDER: &str = "model::no-provider";
    /// A requirement with more than one answer (PR-03).
    pub const AMBIGUOUS_PROVIDER: &str = "model::ambiguous-provider";
    /// A provider on a node that shares no network with the consumer's (PR-20).
    pub const NO_SHARED_NETWORK: &str = "model::no-shared-network";
    /// One domain's certificate twice on one node.
    pub const CERTIFICATE_TWICE: &str = "model::certificate-twice";
    /// Two writers of one path on one node.
    pub const TWO_WRITERS: &str = "model::two-writers";
}
