//! Patterns of paths: `dt=2014-*/part-?.orc`, `**/*.rc`, `[ab].red`.
//!
//! ```text
//! *        any text within a name        [ab] [a-z]   one of these
//! ?        one character                 [!ab] [^ab]  none of these
//! **       any number of folders, as a whole part
//! ```
//!
//! A bracket that is never closed matches itself. A hidden name (`.x`, `_x`, `x._COPYING_`) is never matched.

use coldframe_core::{Error, Result};

const MAGIC: [char; 3] = ['*', '?', '['];

/// Maximum number of patterns that one pattern with braces means.
const MAX_ALTERNATIVES: usize = 1000;

/// Whether a path has a wildcard in it.
pub(super) fn is_pattern(path: &str) -> bool {
    path.contains(MAGIC)
}

/// The end of a file's name while Hadoop's client copies it.
const COPYING: &str = "._COPYING_";

/// Whether a name is hidden: Hive and Spark ignore such files and folders. As in Spark, a partition's folder is not
/// hidden (`_dt=2014-01-01`), and a file that is being copied is.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('=')) || name.ends_with(COPYING)
}

/// Whether a path below a folder contains a hidden name.
pub(super) fn leads_through_hidden(path: &str) -> bool {
    path.split('/').any(|name| is_hidden(name) && name != "." && name != "..")
}

/// Whether the names of a path match the parts of a pattern.
pub(super) fn fits(names: &[&str], parts: &[&str]) -> bool {
    match parts.split_first() {
        None => names.is_empty(),
        Some((&"**", rest)) => (0..=names.len()).any(|at| fits(names.get(at..).unwrap_or_default(), rest)),
        Some((part, rest)) => match names.split_first() {
            Some((name, names)) => matches(part, name) && fits(names, rest),
            None => false,
        },
    }
}

/// The patterns without braces that together match what a pattern with braces matches (`*.{orc,rc}`), at most 1,000; `None` if
/// a brace is not closed.
pub(crate) fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let mut waiting = vec![pattern.to_owned()];
    let mut made = Vec::new();
    while let Some(pattern) = waiting.pop() {
        // The innermost braces come first.
        let Some(close) = pattern.find('}') else {
            made.push((!pattern.contains('{')).then_some(pattern)?);
            continue;
        };
        let Some(open) = pattern.get(..close).and_then(|before| before.rfind('{')) else {
            made.push(pattern);
            continue;
        };
        let (before, inside, behind) =
            (pattern.get(..open)?, pattern.get(open + 1..close)?, pattern.get(close + 1..)?);
        waiting.extend(inside.split(',').map(|part| format!("{before}{part}{behind}")));
        if made.len() + waiting.len() > MAX_ALTERNATIVES {
            return None;
        }
    }
    made.sort_unstable();
    made.dedup();
    Some(made)
}

/// Whether a name matches one part of a pattern.
pub(crate) fn matches(part: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let wanted = tokens(part);
    // The index of the last `*`, and the length of the part of the name that this `*` has matched so far.
    let (mut at, mut of, mut star) = (0, 0, None);
    while let Some(c) = name.get(at) {
        match wanted.get(of) {
            Some(Token::Any) => {
                star = Some((of, at));
                of += 1;
            }
            Some(token) if token.takes(*c) => {
                at += 1;
                of += 1;
            }
            _ => match star {
                Some((token, taken)) => {
                    star = Some((token, taken + 1));
                    at = taken + 1;
                    of = token + 1;
                }
                None => return false,
            },
        }
    }
    wanted.get(of..).unwrap_or_default().iter().all(|token| matches!(token, Token::Any))
}

#[derive(Debug)]
enum Token {
    Any,
    One,
    Plain(char),
    Set { ranges: Vec<(char, char)>, negated: bool },
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Plain(plain) => *plain == c,
            Self::Set { ranges, negated } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

fn tokens(part: &str) -> Vec<Token> {
    let chars: Vec<char> = part.chars().collect();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(c) = chars.get(at) {
        at += 1;
        tokens.push(match c {
            '*' => Token::Any,
            '?' => Token::One,
            '[' => match set(chars.get(at..).unwrap_or_default()) {
                Some((set, length)) => {
                    at += length;
                    set
                }
                None => Token::Plain('['),
            },
            c => Token::Plain(*c),
        });
    }
    tokens
}

/// The set after a `[`, and its length including the `]`; `None` if the `]` is missing.
fn set(behind: &[char]) -> Option<(Token, usize)> {
    let negated = matches!(behind.first(), Some('!' | '^'));
    let start = usize::from(negated);
    // A closing bracket in the first place belongs to the set.
    let end = behind.iter().skip(start + 1).position(|c| *c == ']')? + start + 1;
    let inside = behind.get(start..end)?;
    let (mut ranges, mut at) = (Vec::new(), 0);
    while let Some(low) = inside.get(at) {
        match (inside.get(at + 1), inside.get(at + 2)) {
            (Some('-'), Some(high)) => {
                ranges.push((*low, *high));
                at += 3;
            }
            _ => {
                ranges.push((*low, *low));
                at += 1;
            }
        }
    }
    Some((Token::Set { ranges, negated }, end + 1))
}

/// The folders of a pattern before its first wildcard, where listing starts. For a URL the folders include
/// the store's name.
pub(super) fn fixed_part(pattern: &str) -> Result<&str> {
    let folders = |path: &str| {
        let plain = path.get(..path.find(MAGIC).unwrap_or(path.len())).unwrap_or_default();
        plain.rfind('/').unwrap_or(0)
    };
    let Some(scheme) = pattern.find("://") else {
        let end = folders(pattern);
        // The root is the folder `/`.
        let end = if end == 0 && pattern.starts_with('/') { 1 } else { end };
        return Ok(pattern.get(..end).unwrap_or_default());
    };
    let authority = scheme + 3;
    let rest = pattern.get(authority..).unwrap_or_default();
    let store = rest.find('/').map_or(pattern.len(), |slash| authority + slash + 1);
    let name = pattern.get(..store).unwrap_or_default();
    if name.contains(['*', '?']) {
        return Err(Error::unsupported("a pattern in the store's name; patterns may be in the path only"));
    }
    let end = store + folders(pattern.get(store..).unwrap_or_default());
    Ok(pattern.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_patterns() {
        for (part, name, is) in [
            ("*", "", true),
            ("*.orc", "a.orc", true),
            ("*.orc", "a.orcx", false),
            ("a*b*c", "aXbbYc", true),
            ("a*b*c", "aXbbY", false),
            ("part-?", "part-1", true),
            ("part-?", "part-", false),
            ("?", "\u{e9}", true),
            ("[ab].rc", "b.rc", true),
            ("[!ab].rc", "b.rc", false),
            ("[a-c]1", "b1", true),
            ("[a-c]1", "d1", false),
            ("[]]", "]", true),
            ("[!]]", "x", true),
            ("[a-]", "-", true),
            ("a[b", "a[b", true),
            ("a[", "a[", true),
            ("dt=2014-01-*", "dt=2014-01-31", true),
        ] {
            assert_eq!(matches(part, name), is, "{part} {name}");
        }
    }

    #[test]
    fn braces_are_alternatives() {
        let of = |pattern: &str| alternatives(pattern).unwrap();
        assert_eq!(of("*.orc"), ["*.orc"]);
        assert_eq!(of("{a,b{1,2}}.x"), ["a.x", "b1.x", "b2.x"]);
        assert_eq!(of("a}"), ["a}"]);
        assert!(alternatives("{a").is_none());
        assert!(alternatives(&"{a,b}".repeat(20)).is_none());
    }

    #[test]
    fn partitions_are_not_hidden_and_unfinished_copies_are() {
        for hidden in [".x", "_x", "_SUCCESS", ".p=1", "x.orc._COPYING_", "p=1._COPYING_"] {
            assert!(is_hidden(hidden), "{hidden}");
        }
        for shown in ["x", "_p=1", "x._COPYING_.orc", "p=_1"] {
            assert!(!is_hidden(shown), "{shown}");
        }
    }

    #[test]
    fn paths_match_patterns() {
        for (path, pattern, is) in [
            ("a/b/c.rc", "**/*.rc", true),
            ("c.rc", "**/*.rc", true),
            ("a/b/c.rc", "a/**", true),
            ("a/b/c.rc", "*/*", false),
            ("a/b", "*/*", true),
            ("a/b/c", "**/b/**/c", true),
        ] {
            let (names, parts): (Vec<_>, Vec<_>) = (path.split('/').collect(), pattern.split('/').collect());
            assert_eq!(fits(&names, &parts), is, "{path} {pattern}");
        }
    }

    #[test]
    fn listing_starts_at_the_fixed_part() {
        for (pattern, fixed) in [
            ("a/b*/c", "a"),
            ("*.rc", ""),
            ("/x*", "/"),
            ("/a/b/*", "/a/b"),
            ("s3://bucket/a/b*", "s3://bucket/a"),
            ("s3://bucket/*", "s3://bucket/"),
            ("memory://x/dt=2014*/y", "memory://x/"),
            ("hdfs:///a/*", "hdfs:///a"),
        ] {
            assert_eq!(fixed_part(pattern).unwrap(), fixed, "{pattern}");
        }
        assert!(fixed_part("s3://b*/x").is_err());
    }
}
