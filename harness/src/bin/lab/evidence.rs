//! What tests left behind.

use std::fs;
use std::path::Path;

use provisor_harness::report::{Ending, Report, Sidecars, add_properties, tests_under};

use crate::Done;

/// One line a test, with how it ended.
pub(crate) fn tests(base: &Path) -> Done {
    for folder in tests_under(base)? {
        let ending = Ending::of(&folder);
        println!("{:<8} {}", ending.word(), folder.display());
    }
    Ok(())
}

/// Writes the timeline of one test anew, as a killed one never did.
pub(crate) fn timeline(folder: &Path) -> Done {
    let report = Report::read(folder)?;
    report.write(folder)?;
    println!("{}", folder.join("timeline.html").display());
    Ok(())
}

/// Adds what the tests left to a report of nextest's.
pub(crate) fn junit(report: &Path, base: &Path) -> Done {
    let added = add_properties(&fs::read_to_string(report)?, &Sidecars::under(base))?;
    let beside = report.with_extension("xml.new");
    fs::write(&beside, added)?;
    fs::rename(beside, report)?;
    Ok(())
}
