//! The timeline as a page that needs nothing beside it.

use serde::Serialize;

use super::Report;

/// Style, script and an empty body; the data takes the place of `DATA`.
const TEMPLATE: &str = include_str!("page.html");

#[derive(Serialize)]
struct Data<'a> {
    test: &'a str,
    ending: &'static str,
    note: &'a str,
    machines: &'a [String],
    peak_mib: Option<u64>,
    entries: Vec<(f64, &'a str, &'static str, &'a str)>,
    spans: Vec<(f64, f64, &'a str, &'static str, &'a str)>,
}

pub(super) fn page(report: &Report) -> String {
    let data = Data {
        test: &report.test,
        ending: report.ending.word(),
        note: &report.note,
        machines: &report.machines,
        peak_mib: report.peak_mib,
        entries: report
            .entries
            .iter()
            .map(|entry| {
                (
                    entry.at,
                    entry.machine.as_str(),
                    entry.source.word(),
                    entry.text.as_str(),
                )
            })
            .collect(),
        spans: report
            .spans
            .iter()
            .map(|span| {
                (
                    span.from,
                    span.to,
                    span.machine.as_str(),
                    span.kind.word(),
                    span.what.as_str(),
                )
            })
            .collect(),
    };
    // No text of a guest may end the element that it stands in.
    let json = serde_json::to_string(&data)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    let (head, tail) = TEMPLATE.split_once("DATA").unwrap_or((TEMPLATE, ""));
    format!("{head}{json}{tail}")
}
