//! Peak memory and evidence as properties of a JUnit report.
//!
//! A test cannot give its own properties to cargo-nextest, which writes the report when all tests have ended. So each test leaves
//! files in its folder, and they are brought together afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quick_xml::events::{BytesEnd, BytesStart, Event};
use quick_xml::{Reader, Writer};

use crate::artifacts::file_safe;

/// What the tests left beside the report: one folder a test, under one that all share.
#[derive(Clone, Debug)]
pub struct Sidecars {
    base: PathBuf,
}

/// Why a report did not get its properties.
#[derive(Debug, thiserror::Error)]
pub enum JunitError {
    /// It is not what a JUnit report is.
    #[error("this is no JUnit report: {source}; give the file that cargo nextest wrote")]
    Syntax {
        /// What is wrong with it.
        #[from]
        source: quick_xml::Error,
    },
    /// Something cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// One test's share of memory over time: seconds since 1970, MiB.
type Samples = Vec<(f64, u64)>;

impl Sidecars {
    /// The folders under `base`, such as `target/debug/vm-artifacts`.
    pub fn under(base: &Path) -> Self {
        Self {
            base: base.to_owned(),
        }
    }

    /// The folder of a test by the names that the report has for it; `None` for a test that has no lab.
    fn folder(&self, classname: &str, name: &str) -> Option<PathBuf> {
        let folder = self.base.join(binary_of(classname)).join(file_safe(name));
        folder.join("started").exists().then_some(folder)
    }
}

/// Adds the properties to `report`:
///
/// - for each test with a lab, `peak-memory-mib` and `evidence`, the path of its folder;
/// - for each suite with such tests, `peak-memory-mib`: the most that all its tests took at one time.
///
/// # Errors
/// [`JunitError`].
pub fn add_properties(report: &str, sidecars: &Sidecars) -> Result<String, JunitError> {
    let peaks = suite_peaks(report, sidecars)?;
    let mut reader = Reader::from_str(report);
    let mut writer = Writer::new(Vec::new());
    let mut suites = peaks.into_iter();
    loop {
        match reader.read_event()? {
            Event::Eof => break,
            Event::Start(tag) if tag.name().as_ref() == "testsuite" => {
                writer.write_event(Event::Start(tag.borrow()))?;
                if let Some(peak) = suites.next().flatten() {
                    properties(&mut writer, &[("peak-memory-mib", &peak.to_string())])?;
                }
            }
            Event::Start(tag) if tag.name().as_ref() == "testcase" => {
                writer.write_event(Event::Start(tag.borrow()))?;
                of_test(&mut writer, &tag, sidecars)?;
            }
            Event::Empty(tag) if tag.name().as_ref() == "testcase" => {
                writer.write_event(Event::Start(tag.borrow()))?;
                of_test(&mut writer, &tag, sidecars)?;
                writer.write_event(Event::End(BytesEnd::new("testcase")))?;
            }
            other => writer.write_event(other)?,
        }
    }
    String::from_utf8(writer.into_inner()).map_err(|error| io::Error::other(error).into())
}

fn of_test(
    writer: &mut Writer<Vec<u8>>,
    tag: &BytesStart<'_>,
    sidecars: &Sidecars,
) -> Result<(), JunitError> {
    let Some(folder) = folder_of(tag, sidecars) else {
        return Ok(());
    };
    let peak = fs::read_to_string(folder.join("peak-memory-mib")).unwrap_or_default();
    let evidence = folder.display().to_string();
    let both = [("peak-memory-mib", peak.trim()), ("evidence", evidence.as_str())];
    let known: Vec<_> = both.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    properties(writer, &known)
}

fn folder_of(tag: &BytesStart<'_>, sidecars: &Sidecars) -> Option<PathBuf> {
    let attribute = |name: &str| {
        let attribute = tag.try_get_attribute(name).ok()??;
        Some(attribute.value.into_owned())
    };
    sidecars.folder(&attribute("classname")?, &attribute("name")?)
}

fn properties(writer: &mut Writer<Vec<u8>>, properties: &[(&str, &str)]) -> Result<(), JunitError> {
    writer.write_event(Event::Start(BytesStart::new("properties")))?;
    for (name, value) in properties {
        let mut property = BytesStart::new("property");
        property.push_attribute(("name", *name));
        property.push_attribute(("value", *value));
        writer.write_event(Event::Empty(property))?;
    }
    writer.write_event(Event::End(BytesEnd::new("properties")))?;
    Ok(())
}

/// The peak of each suite, in the order of the report.
fn suite_peaks(report: &str, sidecars: &Sidecars) -> Result<Vec<Option<u64>>, JunitError> {
    let mut reader = Reader::from_str(report);
    let mut suites: Vec<Vec<Samples>> = Vec::new();
    loop {
        match reader.read_event()? {
            Event::Eof => break,
            Event::Start(tag) if tag.name().as_ref() == "testsuite" => suites.push(Vec::new()),
            Event::Start(tag) | Event::Empty(tag) if tag.name().as_ref() == "testcase" => {
                let folder = folder_of(&tag, sidecars);
                if let (Some(suite), Some(folder)) = (suites.last_mut(), folder) {
                    let memory = fs::read_to_string(folder.join("memory")).unwrap_or_default();
                    suite.push(samples(&memory));
                }
            }
            _ => {}
        }
    }
    Ok(suites.iter().map(|tests| peak(tests)).collect())
}

fn samples(memory: &str) -> Samples {
    let sample = |line: &str| {
        let (at, mib) = line.split_once(' ')?;
        Some((at.parse().ok()?, mib.parse().ok()?))
    };
    memory.lines().filter_map(sample).collect()
}

/// The most that several tests took at one time: each takes what its last sample says, until its last one.
fn peak(tests: &[Samples]) -> Option<u64> {
    let mut changes: Vec<(f64, usize, u64)> = Vec::new();
    for (test, samples) in tests.iter().enumerate() {
        changes.extend(samples.iter().map(|(at, mib)| (*at, test, *mib)));
        changes.extend(samples.last().map(|(at, _)| (*at + f64::EPSILON, test, 0)));
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.2.cmp(&a.2)));
    let mut now = BTreeMap::new();
    changes
        .into_iter()
        .map(|(_, test, mib)| {
            now.insert(test, mib);
            now.values().sum()
        })
        .max()
}

/// The name of the test binary in nextest's `package`, `package::test` or `package::bin/name`.
fn binary_of(classname: &str) -> String {
    match classname.split_once("::") {
        Some((_, binary)) => binary.rsplit('/').next().unwrap_or(binary).to_owned(),
        None => classname.replace('-', "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_s_names_lead_to_the_test_s_folder() {
        let cases = [
            ("provisor-harness::guests", "guests"),
            ("provisor-harness", "provisor_harness"),
            ("provisor-harness::bin/lab", "lab"),
        ];
        for (classname, binary) in cases {
            assert_eq!(binary_of(classname), binary);
        }
    }

    #[test]
    fn what_tests_took_at_one_time_is_added_up_and_what_they_took_in_turn_is_not() {
        let beside = [
            vec![(1.0, 100), (5.0, 120)],
            vec![(2.0, 300), (3.0, 50), (6.0, 60)],
        ];
        assert_eq!(peak(&beside), Some(400));
        let in_turn = [vec![(1.0, 100), (2.0, 90)], vec![(3.0, 110), (4.0, 1)]];
        assert_eq!(peak(&in_turn), Some(110));
        assert_eq!(peak(&[]), None);
    }

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="2">
    <testsuite name="provisor-harness::guests" tests="2">
        <testcase name="mesh::a_link_heals" classname="provisor-harness::guests" time="3.1">
        </testcase>
        <testcase name="no_lab &amp; no folder" classname="provisor-harness::guests" time="0.1"/>
    </testsuite>
</testsuites>
"#;

    #[test]
    fn tests_and_suites_get_their_properties_and_all_else_stays() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("guests/mesh.a_link_heals");
        fs::create_dir_all(&folder).unwrap();
        for (file, content) in [
            ("started", ""),
            ("peak-memory-mib", "412\n"),
            ("memory", "10.0 200\n11.0 412\n"),
        ] {
            fs::write(folder.join(file), content).unwrap();
        }
        let added = add_properties(REPORT, &Sidecars::under(base.path())).unwrap();
        let suite = r#"<properties><property name="peak-memory-mib" value="412"/></properties>"#;
        let test = format!(
            r#"time="3.1"><properties><property name="peak-memory-mib" value="412"/><property name="evidence" value="{}"/></properties>"#,
            folder.display()
        );
        assert!(added.contains(&test), "{added}");
        let without = added
            .replace(suite, "")
            .replace(&test, r#"time="3.1">"#)
            .replace(r#"time="0.1"></testcase>"#, r#"time="0.1"/>"#);
        assert_eq!(without, REPORT);
    }

    #[test]
    fn what_is_no_report_is_refused_with_a_hint() {
        let error = add_properties("<testsuite></wrong>", &Sidecars::under(Path::new("/none"))).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("give the file that cargo nextest wrote"),
            "{error}"
        );
    }
}
