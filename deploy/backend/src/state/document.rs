//! A state file, as far as a backend looks into it.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A state file: its bytes, which are never changed, and what decides about replacing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    bytes: Vec<u8>,
    summary: Summary,
}

/// What decides whether one state file may replace another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Lineage and serial; an encrypted state may hide them.
    pub identity: Option<Identity>,
    /// What it holds.
    pub resources: Resources,
}

/// Where a state file stands in the life of one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Made once when a state begins.
    pub lineage: String,
    /// Grows with each write; at most `i64::MAX`, the largest integer SQLite and PostgreSQL keep.
    pub serial: u64,
}

/// What a state file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resources {
    /// So many resources. None at all is what a destroyed fleet leaves.
    Count(u64),
    /// It is encrypted.
    Sealed,
}

impl Document {
    /// Reads the body of a write: a state of version 4, or OpenTofu's envelope around an encrypted one. All other
    /// fields may be anything.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, DocumentError> {
        let summary = summarise(&bytes)?;
        Ok(Self { bytes, summary })
    }

    /// The bytes as they were sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What decides about it.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

/// Why a body is not a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Not one JSON object.
    #[error("the body is not a state ({reason}); send the JSON that `tofu state pull` prints")]
    NotJson {
        /// What the parser says; it quotes no value.
        reason: String,
    },
    /// Another version than 4, or none.
    #[error(
        "the state's version is {found}, and this backend keeps version 4; use Terraform 0.12 or newer, or OpenTofu"
    )]
    Version {
        /// The version, or "missing".
        found: String,
    },
    /// Version 4, but a field every such state has is not there.
    #[error("the state has no {field}; send the JSON that `tofu state pull` prints")]
    Missing {
        /// Name of the field.
        field: &'static str,
    },
    /// A serial that no database can keep.
    #[error("the state's serial is {serial}, above {}; set a smaller one", i64::MAX)]
    Serial {
        /// The serial.
        serial: u64,
    },
}

/// Only these fields are looked at. A field given twice is an error of the parser, so that no two readers of one
/// state can disagree.
#[derive(Deserialize)]
struct View {
    version: Option<u64>,
    serial: Option<u64>,
    lineage: Option<String>,
    resources: Option<Vec<IgnoredAny>>,
    encrypted_data: Option<IgnoredAny>,
}

fn summarise(bytes: &[u8]) -> Result<Summary, DocumentError> {
    let refused = |reason: &dyn ToString| DocumentError::NotJson {
        reason: reason.to_string(),
    };
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(refused(&"no JSON object"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| refused(&error))?;
    let view: View = serde_json::from_str(text).map_err(|error| refused(&error))?;
    if let Some(serial) = view.serial.filter(|serial| i64::try_from(*serial).is_err()) {
        return Err(DocumentError::Serial { serial });
    }
    let lineage = view.lineage.filter(|lineage| !lineage.is_empty());

    if view.encrypted_data.is_some() {
        // OpenTofu 1.7 hid both; later releases show them beside the envelope.
        let identity = lineage
            .zip(view.serial)
            .map(|(lineage, serial)| Identity { lineage, serial });
        return Ok(Summary {
            identity,
            resources: Resources::Sealed,
        });
    }
    if view.version != Some(4) {
        let found = view
            .version
            .map_or("missing".to_owned(), |version| version.to_string());
        return Err(DocumentError::Version { found });
    }
    let identity = Identity {
        lineage: lineage.ok_or(DocumentError::Missing { field: "lineage" })?,
        serial: view.serial.ok_or(DocumentError::Missing { field: "serial" })?,
    };
    let resources = view.resources.map_or(0, |resources| resources.len() as u64);
    Ok(Summary {
        identity: Some(identity),
        resources: Resources::Count(resources),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::empty(
        r#"{"version":4,"serial":3,"lineage":"L","resources":[],"outputs":{}}"#,
        Resources::Count(0)
    )]
    #[case::no_resources_field(r#"{"version":4,"serial":3,"lineage":"L"}"#, Resources::Count(0))]
    #[case::two(
        r#"{"version":4,"serial":3,"lineage":"L","resources":[{},{"a":[1]}]}"#,
        Resources::Count(2)
    )]
    #[case::unknown_fields(
        r#" {"version":4,"serial":3,"lineage":"L","future":{"deep":[[]]}}"#,
        Resources::Count(0)
    )]
    #[case::envelope(r#"{"serial":3,"lineage":"L","encrypted_data":"AA=="}"#, Resources::Sealed)]
    fn a_state_tells_where_it_stands(#[case] body: &str, #[case] resources: Resources) {
        let document = Document::parse(body.into()).unwrap();
        let identity = Some(Identity {
            lineage: "L".into(),
            serial: 3,
        });
        assert_eq!(*document.summary(), Summary { identity, resources });
        assert_eq!(document.bytes(), body.as_bytes());
    }

    #[test]
    fn an_envelope_may_hide_where_it_stands() {
        let document = Document::parse(r#"{"meta":{},"encrypted_data":"AA=="}"#.into()).unwrap();
        assert_eq!(
            *document.summary(),
            Summary {
                identity: None,
                resources: Resources::Sealed
            }
        );
    }

    #[rstest]
    #[case::nothing("")]
    #[case::null("null")]
    #[case::a_list(r#"[4,3,"L",[]]"#)]
    #[case::html("<html>login</html>")]
    #[case::cut_off(r#"{"version":4,"serial":3,"lineage":"L","resources":[{}"#)]
    #[case::two_in_one(r#"{"version":4,"serial":3,"lineage":"L"}{}"#)]
    #[case::serial_given_twice(r#"{"version":4,"serial":3,"serial":9,"lineage":"L"}"#)]
    #[case::negative_serial(r#"{"version":4,"serial":-1,"lineage":"L"}"#)]
    fn what_is_no_json_state_is_refused(#[case] body: &str) {
        assert!(matches!(
            Document::parse(body.into()),
            Err(DocumentError::NotJson { .. })
        ));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused_where_nobody_looks_at_them_too() {
        let body = b"{\"version\":4,\"serial\":3,\"lineage\":\"L\",\"other\":\"\xff\"}".to_vec();
        assert!(matches!(
            Document::parse(body),
            Err(DocumentError::NotJson { .. })
        ));
    }

    #[rstest]
    #[case::empty_object("{}", DocumentError::Version { found: "missing".into() })]
    #[case::old(r#"{"version":3,"serial":3,"lineage":"L"}"#, DocumentError::Version { found: "3".into() })]
    #[case::no_lineage(r#"{"version":4,"serial":3}"#, DocumentError::Missing { field: "lineage" })]
    #[case::empty_lineage(r#"{"version":4,"serial":3,"lineage":""}"#, DocumentError::Missing { field: "lineage" })]
    #[case::no_serial(r#"{"version":4,"lineage":"L"}"#, DocumentError::Missing { field: "serial" })]
    #[case::huge_serial(
        r#"{"version":4,"serial":9223372036854775808,"lineage":"L"}"#,
        DocumentError::Serial { serial: 1 << 63 }
    )]
    fn a_state_without_what_identifies_it_is_refused(#[case] body: &str, #[case] error: DocumentError) {
        assert_eq!(Document::parse(body.into()), Err(error));
    }
}
