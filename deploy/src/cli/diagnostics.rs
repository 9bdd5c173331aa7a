//! Diagnostics as people read them: message, place with its line, what to do; and as JSON.

use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use provisor_model::{Diagnostic, FleetFiles, Label, Severity};
use serde::Serialize;

use super::fleet::FleetError;
use super::{Exit, Format, output};

/// Shows why there is no fleet.
pub(super) fn refuse(error: &FleetError, folder: &Path, format: Format) -> Exit {
    match error {
        FleetError::Unreadable { .. } => output::error(error),
        FleetError::Mistakes { diagnostics, files } => {
            show(diagnostics, files, folder, format);
            output::note(&format!(
                "{}; correct them, then run this again",
                count(diagnostics.len(), "error")
            ));
        }
    }
    Exit::Refused
}

/// Shows diagnostics: JSON on stdout, text on stderr.
pub(super) fn show(diagnostics: &[Diagnostic], files: &FleetFiles, folder: &Path, format: Format) {
    match format {
        Format::Json => {
            let items: Vec<Item<'_>> = diagnostics.iter().map(|item| Item::new(item, files)).collect();
            output::json(&items);
        }
        Format::Text => {
            for diagnostic in diagnostics {
                output::note(&format!("{}\n", render(diagnostic, files, folder)));
            }
        }
    }
}

/// `1 error`, `2 errors`.
pub(super) fn count(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// One diagnostic, with colours; whoever prints it drops those that are not wanted.
fn render(diagnostic: &Diagnostic, files: &FleetFiles, folder: &Path) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code);
    let snippets = diagnostic
        .labels
        .iter()
        .enumerate()
        .filter_map(|(position, label)| {
            let kind = if position == 0 {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            snippet(label, kind, files, folder)
        });
    let group = Group::with_title(title).elements(snippets);
    let help = Group::with_title(Level::HELP.secondary_title(&diagnostic.help));
    Renderer::styled().render(&[group, help])
}

fn snippet<'a>(
    label: &'a Label,
    kind: AnnotationKind,
    files: &'a FleetFiles,
    folder: &Path,
) -> Option<Snippet<'a, annotate_snippets::Annotation<'a>>> {
    let text = files.0.get(&label.file)?;
    let path = folder.join(&label.file).display().to_string();
    Some(
        Snippet::source(text)
            .path(path)
            .annotation(kind.span(label.span.clone()).label(&label.text)),
    )
}

/// A diagnostic for programs.
#[derive(Serialize)]
struct Item<'a> {
    code: &'a str,
    severity: &'a str,
    message: &'a str,
    help: &'a str,
    places: Vec<ItemPlace<'a>>,
}

#[derive(Serialize)]
struct ItemPlace<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    text: &'a str,
}

impl<'a> Item<'a> {
    fn new(diagnostic: &'a Diagnostic, files: &FleetFiles) -> Item<'a> {
        let place = |label: &'a Label| {
            let (line, column) = line_and_column(
                files.0.get(&label.file).map_or("", String::as_str),
                label.span.start,
            );
            ItemPlace {
                file: &label.file,
                line,
                column,
                text: &label.text,
            }
        };
        Item {
            code: diagnostic.code,
            severity: match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            message: &diagnostic.message,
            help: &diagnostic.help,
            places: diagnostic.labels.iter().map(place).collect(),
        }
    }
}

/// Both count from 1; a column is a character.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLEET: &str = "name = \"demo\"\ngroups = 3\n";

    fn files() -> FleetFiles {
        FleetFiles([("fleet.toml".to_owned(), FLEET.to_owned())].into())
    }

    fn mistake() -> Diagnostic {
        provisor_model::load(&files()).unwrap_err().remove(0)
    }

    #[test]
    fn a_mistake_is_shown_with_its_place_and_ends_in_what_to_do() {
        let text = anstream::adapter::strip_str(&render(&mistake(), &files(), Path::new("demo"))).to_string();
        assert!(text.contains("demo/fleet.toml:2:"), "{text}");
        assert!(text.contains("groups = 3"), "{text}");
        assert!(text.lines().last().unwrap().starts_with("help: "), "{text}");
    }

    #[test]
    fn programs_get_the_line_and_the_column() {
        let (mistake, files) = (mistake(), files());
        let item = serde_json::to_value(Item::new(&mistake, &files)).unwrap();
        assert_eq!(item["severity"], "error");
        assert_eq!(item["places"][0]["line"], 2);
        assert_eq!(item["code"], mistake.code);
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        assert_eq!(line_and_column("", 0), (1, 1));
        assert_eq!(line_and_column("é\nab", 4), (2, 2));
        assert_eq!(line_and_column("a", 9), (1, 2));
    }
}
