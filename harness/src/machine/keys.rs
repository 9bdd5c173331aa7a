//! Characters as keys of a US keyboard, by QEMU's names.

/// The keys that type `character`; nothing if there are none.
pub(super) fn key(character: char) -> Option<String> {
    let name = match character {
        'a'..='z' | '0'..='9' => return Some(character.to_string()),
        'A'..='Z' => return Some(format!("shift-{}", character.to_ascii_lowercase())),
        '\n' => "ret",
        '\t' => "tab",
        ' ' => "spc",
        '-' => "minus",
        '_' => "shift-minus",
        '=' => "equal",
        '+' => "shift-equal",
        '[' => "bracket_left",
        '{' => "shift-bracket_left",
        ']' => "bracket_right",
        '}' => "shift-bracket_right",
        ';' => "semicolon",
        ':' => "shift-semicolon",
        '\'' => "apostrophe",
        '"' => "shift-apostrophe",
        '`' => "grave_accent",
        '~' => "shift-grave_accent",
        '\\' => "backslash",
        '|' => "shift-backslash",
        ',' => "comma",
        '<' => "shift-comma",
        '.' => "dot",
        '>' => "shift-dot",
        '/' => "slash",
        '?' => "shift-slash",
        '!' => "shift-1",
        '@' => "shift-2",
        '#' => "shift-3",
        '$' => "shift-4",
        '%' => "shift-5",
        '^' => "shift-6",
        '&' => "shift-7",
        '*' => "shift-8",
        '(' => "shift-9",
        ')' => "shift-0",
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_printable_character_of_ascii_has_keys_of_its_own_and_no_other_has() {
        let printable: Vec<char> = (' '..='~').collect();
        let keys: BTreeSet<_> = printable
            .iter()
            .map(|character| key(*character).unwrap())
            .collect();
        assert_eq!(keys.len(), printable.len());
        for none in ['é', '\u{7f}', '\0', '\r'] {
            assert_eq!(key(none), None, "{none:?}");
        }
    }
}
