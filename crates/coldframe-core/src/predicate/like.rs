//! SQL's patterns: `%` matches any text, `_` any character, and `\` makes the next character literal.

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `%`
    AnyText,
    /// `_`
    AnyChar,
    /// Literal text.
    Plain(String),
}

impl Pattern {
    /// A pattern from its text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let plain = match c {
                '%' if parts.last() == Some(&Part::AnyText) => continue,
                '%' => {
                    parts.push(Part::AnyText);
                    continue;
                }
                '_' => {
                    parts.push(Part::AnyChar);
                    continue;
                }
                '\\' => chars.next().unwrap_or(c),
                c => c,
            };
            match parts.last_mut() {
                Some(Part::Plain(before)) => before.push(plain),
                _ => parts.push(Part::Plain(plain.to_string())),
            }
        }
        Self { text: text.to_owned(), parts }
    }

    /// The text from which the pattern was made.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The literal text with which the pattern starts.
    pub(super) fn prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Plain(text)) => text,
            _ => "",
        }
    }

    /// Whether the pattern is literal text without placeholders.
    pub(super) fn is_plain(&self) -> bool {
        self.parts.iter().all(|p| matches!(p, Part::Plain(_)))
    }

    /// Whether the pattern is literal text followed by anything.
    pub(super) fn is_prefix(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::AnyText] | [Part::Plain(_), Part::AnyText])
    }

    /// Whether the whole text matches the pattern. If a part does not match, only the last `%` before it is
    /// tried with more text: more text for an earlier `%` would only leave less text for the rest.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let (mut at, mut part) = (0, 0);
        let mut any: Option<(usize, usize)> = None;
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let taken = match self.parts.get(part) {
                Some(Part::AnyText) => {
                    any = Some((part + 1, at));
                    Some(0)
                }
                Some(Part::AnyChar) => rest.chars().next().map(char::len_utf8),
                Some(Part::Plain(plain)) => rest.starts_with(plain.as_str()).then_some(plain.len()),
                None if rest.is_empty() => return true,
                None => None,
            };
            if let Some(taken) = taken {
                (at, part) = (at + taken, part + 1);
                continue;
            }
            let Some((behind, from)) = any else { return false };
            let Some(next) = self.next_start(behind, text, from) else { return false };
            any = Some((behind, next));
            (at, part) = (next, behind);
        }
    }

    /// The next place after `from` at which the part that follows a `%` can begin, after it failed to match
    /// at `from`.
    fn next_start(&self, behind: usize, text: &str, from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let from = from + rest.chars().next()?.len_utf8();
        match self.parts.get(behind) {
            Some(Part::Plain(plain)) => Some(from + text.get(from..)?.find(plain.as_str())?),
            _ => Some(from),
        }
    }
}

/// The smallest text greater than all texts with this prefix, in code point order; `None` if there is none.
#[must_use]
pub(super) fn behind_prefix(prefix: &str) -> Option<String> {
    let head = prefix.trim_end_matches(char::MAX);
    let last = head.chars().next_back()?;
    // No text holds a surrogate: the next code point after U+D7FF is U+E000.
    let next = if last == '\u{d7ff}' { '\u{e000}' } else { char::from_u32(u32::from(last) + 1)? };
    let kept = head.get(..head.len() - last.len_utf8())?;
    Some(format!("{kept}{next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_patterns() {
        let like = |pattern: &str, text: &str| Pattern::new(pattern).matches(text);
        for (pattern, text) in [
            ("a%", "abc"),
            ("a%", "a"),
            ("%", ""),
            ("%b%", "abc"),
            ("%b%b", "abcb"),
            ("_", "Ü"),
            ("a_c", "abc"),
            ("%%_", "xyz"),
            (r"a\%", "a%"),
            (r"a\_%", "a_b"),
            ("", ""),
            ("%ab%ab", "ababab"),
            ("a\\", "a\\"),
            ("%\n%", "a\nb"),
            ("_%_", "ab"),
        ] {
            assert!(like(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("a%", "ba"),
            ("_", ""),
            ("_", "ab"),
            ("abc", "abcd"),
            (r"a\%", "abc"),
            ("", "a"),
            ("%b", "abc"),
            ("%ab%ab", "ab"),
            ("_%_", "a"),
        ] {
            assert!(!like(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_have_prefixes() {
        let parts = |pattern: &str| {
            let p = Pattern::new(pattern);
            (p.prefix().to_owned(), p.is_plain(), p.is_prefix())
        };
        assert_eq!(parts("ab%"), ("ab".into(), false, true));
        assert_eq!(parts(r"a\%%%"), ("a%".into(), false, true));
        assert_eq!(parts("ab"), ("ab".into(), true, false));
        assert_eq!(parts("%"), (String::new(), false, true));
        assert_eq!(parts("a%b"), ("a".into(), false, false));
        assert_eq!(parts("_a"), (String::new(), false, false));
        assert_eq!(parts(""), (String::new(), true, false));
    }

    #[test]
    fn prefixes_become_ranges() {
        assert_eq!(behind_prefix("ab").as_deref(), Some("ac"));
        assert_eq!(behind_prefix("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(behind_prefix("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(behind_prefix("\u{10ffff}"), None);
        assert_eq!(behind_prefix(""), None);
    }
}
