//! `provisor diff OLD NEW`: what changes between two fleets.

use std::path::Path;

use provisor_model::difference::{Change, Difference, GrantChange, difference};
use provisor_model::node_plan::End;

use super::{Exit, Format, diagnostics, fleet, output};

pub(super) fn run(format: Format, old: &Path, new: &Path) -> Exit {
    let open = |folder| fleet::open(folder).map_err(|error| diagnostics::refuse(&error, folder, format));
    let (old, new) = match (open(old), open(new)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(exit), _) | (_, Err(exit)) => return exit,
    };
    let difference = difference(&old.resolution, &new.resolution);
    match format {
        Format::Json => output::json(&difference),
        Format::Text => output::data(&text(&difference)),
    }
    Exit::Done
}

fn text(difference: &Difference) -> String {
    if *difference == Difference::default() {
        return "nothing changes".to_owned();
    }
    let mut lines = Vec::new();
    lines.extend(difference.nodes_added.iter().map(|node| format!("+ node {node}")));
    lines.extend(
        difference
            .nodes_removed
            .iter()
            .map(|node| format!("- node {node}")),
    );
    lines.extend(difference.moves.iter().map(|it| {
        let (from, to) = (names(&it.from), names(&it.to));
        format!("~ {} takes {} from {from} -> {to}", it.consumer, it.provision)
    }));
    lines.extend(difference.grants.iter().map(|grant| match grant {
        GrantChange::Made { grant } => format!("+ grant {grant}"),
        GrantChange::Discarded { grant } => format!("- grant {grant}"),
        GrantChange::Rotated { from, to } => format!("~ grant {from} -> {to}"),
    }));
    lines.extend(difference.files.iter().map(|file| {
        let sign = match file.change {
            Change::Added => '+',
            Change::Removed => '-',
            Change::Changed => '~',
        };
        format!("{sign} file {} on {}", file.path, file.node)
    }));
    lines.extend(
        difference
            .plans
            .iter()
            .map(|node| format!("! {node} is deployed again")),
    );
    lines.join("\n")
}

fn names(ends: &[End]) -> String {
    match ends {
        [] => "nobody".to_owned(),
        ends => ends.iter().map(End::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_providers;
    use super::*;

    #[test]
    fn a_changed_pin_is_told_with_its_credential_and_its_file() {
        let (old, new) = (two_providers(), two_providers());
        let pins = new.pins().replace(
            "node = \"db-b\", component = \"garage-b\"",
            "node = \"db-a\", component = \"garage-a\"",
        );
        new.write("pins.toml", &pins);
        let open = |folder: &Path| fleet::open(folder).unwrap().resolution;
        let difference = difference(&open(&old.setup().fleet), &open(&new.setup().fleet));
        insta::assert_snapshot!(text(&difference), @"
        ~ desk/gitea takes garage from db-b/garage-b -> db-a/garage-a
        ~ grant desk/gitea/garage/db-b/garage-b -> desk/gitea/garage/db-a/garage-a
        ~ file /etc/gitea/store.json on desk
        ! db-a is deployed again
        ! db-b is deployed again
        ! desk is deployed again
        ");
        assert_eq!(text(&Difference::default()), "nothing changes");
    }
}
