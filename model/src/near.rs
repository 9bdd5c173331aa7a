//! Names that were probably meant.

/// The known name that `written` most probably means, if one is near enough.
///
/// Near is a third of the length in edits (a swap of neighbours is one edit). Of equally near names the first in
/// the order of `known` is taken.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (written.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// What to do about an unknown name: the near one, else all there are, else `none`.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
    none: &str,
) -> String {
    if let Some(near) = nearest(written, known.clone()) {
        return format!("write `{near}`, if that is what you mean");
    }
    match enumerate(known) {
        names if names.is_empty() => none.to_owned(),
        names => format!("write one of those there are: {names}"),
    }
}

/// `` `a`, `b`, `c` ``
pub(crate) fn enumerate<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names
        .into_iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_within_a_third_of_its_length() {
        let known = ["website", "webmail", "gitea"];
        for (written, expected) in [
            ("webiste", Some("website")),
            ("websit", Some("website")),
            ("webmial", Some("webmail")),
            ("gite", Some("gitea")),
            ("gt", None),
            ("postgresql", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), expected, "{written}");
        }
    }

    #[test]
    fn of_equally_near_names_the_first_is_taken() {
        assert_eq!(nearest("web-x", ["web-a", "web-b"]), Some("web-a"));
    }

    #[test]
    fn with_nothing_near_all_are_listed_and_with_none_the_caller_says_what_to_do() {
        assert_eq!(
            did_you_mean("zzz", ["a-name", "b-name"], ""),
            "write one of those there are: `a-name`, `b-name`"
        );
        assert_eq!(did_you_mean("zzz", [], "declare one"), "declare one");
    }
}
