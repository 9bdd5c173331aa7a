//! A lenient view of a state file: its bytes are kept, and only what decisions need is read from them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// A state of format version 4, or an encrypted envelope around one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    bytes: Vec<u8>,
    view: View,
}

/// What decisions rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    /// UUID that all descendants of one first apply share; empty when an encrypted envelope does not tell it.
    pub lineage: String,
    /// Grows with every write.
    pub serial: u64,
    /// What it holds.
    pub contents: Contents,
}

/// What a state holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// No resource: a destroyed fleet, which is not a lost one.
    Nothing,
    /// Addresses of its resources, sorted.
    Resources(Vec<String>),
    /// OpenTofu encrypted it; nobody but OpenTofu can tell.
    Encrypted,
}

/// How one state stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Same lineage, higher serial.
    Newer,
    /// Same lineage, lower serial.
    Older,
    /// Same lineage, serial and content.
    Equal,
    /// Same lineage and serial, other content: two runs wrote at once, and neither follows from the other.
    Diverged,
    /// Another lineage.
    Unrelated,
}

/// Why bytes are no state. Never "no state": a login page answered with 200 must not start a second fleet.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StateError {
    /// HTML, half a file, or anything else that is not JSON.
    #[error("it is not JSON ({reason}); it begins with {head:?}")]
    NotJson {
        /// What the parser says.
        reason: String,
        /// The first bytes.
        head: String,
    },
    /// JSON, but no state: `{}`, `null`, an error object.
    #[error("it is JSON but no state: {reason}")]
    NotState {
        /// What is missing.
        reason: String,
    },
    /// A format of another age.
    #[error(
        "it has state format version {found}; only version 4 is supported, so use an OpenTofu of this age"
    )]
    Version {
        /// The version found.
        found: u64,
    },
}

impl State {
    /// Reads a state; its bytes are kept exactly.
    pub fn parse(bytes: Vec<u8>) -> Result<State, StateError> {
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| StateError::NotJson {
            reason: error.to_string(),
            head: head(&bytes),
        })?;
        let view = View::read(&value)?;
        Ok(State { bytes, view })
    }

    /// The bytes as they were read.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What decisions rest on.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Values of its outputs that are not sensitive.
    pub fn outputs(&self) -> BTreeMap<String, Value> {
        let value: Value = serde_json::from_slice(&self.bytes).unwrap_or_default();
        let outputs = value
            .get("outputs")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let public = |output: &Value| {
            !output
                .get("sensitive")
                .and_then(Value::as_bool)
                .unwrap_or_default()
        };
        outputs
            .into_iter()
            .filter(|(_, output)| public(output))
            .filter_map(|(name, mut output)| Some((name, output.get_mut("value")?.take())))
            .collect()
    }

    /// How this state stands to `other`.
    pub fn relation_to(&self, other: &State) -> Relation {
        if self.bytes == other.bytes {
            return Relation::Equal;
        }
        if self.view.lineage.is_empty() || self.view.lineage != other.view.lineage {
            return Relation::Unrelated;
        }
        match self.view.serial.cmp(&other.view.serial) {
            std::cmp::Ordering::Greater => Relation::Newer,
            std::cmp::Ordering::Less => Relation::Older,
            std::cmp::Ordering::Equal if self.same_content(other) => Relation::Equal,
            std::cmp::Ordering::Equal => Relation::Diverged,
        }
    }

    /// Whether both say the same; a server may store JSON in a form of its own.
    pub fn same_content(&self, other: &State) -> bool {
        let value = |state: &State| serde_json::from_slice::<Value>(&state.bytes).ok();
        self.bytes == other.bytes || value(self) == value(other)
    }
}

impl View {
    /// Whether it holds no resource.
    pub fn is_empty(&self) -> bool {
        self.contents == Contents::Nothing
    }

    /// How many resources it holds, in words.
    pub fn resources(&self) -> String {
        match &self.contents {
            Contents::Nothing => "no resource".to_owned(),
            Contents::Resources(addresses) if addresses.len() == 1 => "1 resource".to_owned(),
            Contents::Resources(addresses) => format!("{} resources", addresses.len()),
            Contents::Encrypted => "encrypted".to_owned(),
        }
    }

    /// Lineage and serial, for a person.
    pub fn name(&self) -> String {
        format!("lineage {}, serial {}", self.lineage, self.serial)
    }

    fn read(value: &Value) -> Result<View, StateError> {
        let missing = |name: &str| StateError::NotState {
            reason: format!("it has no {name:?}"),
        };
        let object = value.as_object().ok_or(StateError::NotState {
            reason: "it is not an object".into(),
        })?;
        let lineage = object
            .get("lineage")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let serial = object.get("serial").and_then(Value::as_u64);
        if object.contains_key("encrypted_data") {
            return Ok(View {
                lineage,
                serial: serial.unwrap_or_default(),
                contents: Contents::Encrypted,
            });
        }
        match object
            .get("version")
            .and_then(Value::as_u64)
            .ok_or_else(|| missing("version"))?
        {
            4 => {}
            found => return Err(StateError::Version { found }),
        }
        let serial = serial.ok_or_else(|| missing("serial"))?;
        if lineage.is_empty() {
            return Err(missing("lineage"));
        }
        let mut addresses: Vec<String> = object
            .get("resources")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(address)
            .collect();
        addresses.sort();
        let contents = if addresses.is_empty() {
            Contents::Nothing
        } else {
            Contents::Resources(addresses)
        };
        Ok(View {
            lineage,
            serial,
            contents,
        })
    }
}

fn address(resource: &Value) -> String {
    let field = |name: &str| resource.get(name).and_then(Value::as_str).unwrap_or("?");
    let module = resource
        .get("module")
        .and_then(Value::as_str)
        .map(|module| format!("{module}."))
        .unwrap_or_default();
    format!("{module}{}.{}", field("type"), field("name"))
}

fn head(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned()
}

#[cfg(test)]
pub(crate) mod samples {
    use super::State;

    /// A state with resources of these names.
    pub(crate) fn state(lineage: &str, serial: u64, names: &[&str]) -> State {
        let resources: Vec<_> = names
            .iter()
            .map(|name| serde_json::json!({"mode": "managed", "type": "terraform_data", "name": name, "instances": [{}]}))
            .collect();
        let value =
            serde_json::json!({"version": 4, "serial": serial, "lineage": lineage, "resources": resources});
        State::parse(value.to_string().into_bytes()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::samples::state;
    use super::*;
    use rstest::rstest;

    fn parse(text: &str) -> Result<State, StateError> {
        State::parse(text.as_bytes().to_vec())
    }

    #[test]
    fn bytes_and_unknown_fields_are_kept() {
        let text = "{\"version\": 4,  \"new\": [1], \"serial\": 3, \"lineage\": \"L\", \"resources\": []}\n";
        let state = parse(text).unwrap();
        assert_eq!(state.bytes(), text.as_bytes());
        assert_eq!(
            state.view(),
            &View {
                lineage: "L".into(),
                serial: 3,
                contents: Contents::Nothing
            }
        );
    }

    #[test]
    fn resources_are_listed_by_address() {
        assert_eq!(
            state("L", 1, &["b", "a"]).view().contents,
            Contents::Resources(vec!["terraform_data.a".into(), "terraform_data.b".into()])
        );
    }

    #[rstest]
    #[case::html("<html>sign in</html>")]
    #[case::half_a_file("{\"version\": 4, \"ser")]
    #[case::nothing("")]
    fn what_is_not_json_is_an_error(#[case] text: &str) {
        assert!(matches!(parse(text), Err(StateError::NotJson { .. })));
    }

    #[rstest]
    #[case::an_empty_object("{}")]
    #[case::null("null")]
    #[case::a_list("[]")]
    #[case::no_serial("{\"version\":4,\"lineage\":\"L\"}")]
    #[case::no_lineage("{\"version\":4,\"serial\":1}")]
    fn json_that_is_no_state_is_an_error(#[case] text: &str) {
        assert!(matches!(parse(text), Err(StateError::NotState { .. })));
    }

    #[test]
    fn outputs_are_read_and_sensitive_ones_are_not() {
        let state = parse(
            r#"{"version":4,"serial":1,"lineage":"L","resources":[],
            "outputs":{"a":{"value":{"b":1},"type":"x"},"secret":{"value":"canary","sensitive":true}}}"#,
        );
        assert_eq!(
            state.unwrap().outputs(),
            BTreeMap::from([("a".to_owned(), serde_json::json!({"b": 1}))])
        );
    }

    #[test]
    fn another_format_version_is_named() {
        assert_eq!(
            parse("{\"version\":3,\"serial\":1,\"lineage\":\"L\"}"),
            Err(StateError::Version { found: 3 })
        );
    }

    #[test]
    fn an_encrypted_envelope_is_never_empty() {
        let bare = parse("{\"encrypted_data\":\"AAAA\",\"encryption_version\":\"v0\"}").unwrap();
        assert_eq!(bare.view().contents, Contents::Encrypted);
        assert!(!bare.view().is_empty());
        let other = parse("{\"encrypted_data\":\"BBBB\"}").unwrap();
        assert_eq!(bare.relation_to(&other), Relation::Unrelated);
        assert_eq!(bare.relation_to(&bare.clone()), Relation::Equal);
    }

    #[rstest]
    #[case::higher_serial(state("L", 2, &["a"]), Relation::Newer)]
    #[case::lower_serial(state("L", 0, &["a"]), Relation::Older)]
    #[case::same(state("L", 1, &["a"]), Relation::Equal)]
    #[case::same_serial_other_content(state("L", 1, &["b"]), Relation::Diverged)]
    #[case::other_lineage(state("M", 1, &["a"]), Relation::Unrelated)]
    fn a_relation_follows_from_lineage_serial_and_content(#[case] one: State, #[case] relation: Relation) {
        assert_eq!(one.relation_to(&state("L", 1, &["a"])), relation);
    }

    #[test]
    fn the_form_of_the_json_does_not_matter() {
        let compact = state("L", 1, &["a"]);
        let value: Value = serde_json::from_slice(compact.bytes()).unwrap();
        let pretty = State::parse(serde_json::to_vec_pretty(&value).unwrap()).unwrap();
        assert_ne!(compact.bytes(), pretty.bytes());
        assert_eq!(compact.relation_to(&pretty), Relation::Equal);
    }
}
