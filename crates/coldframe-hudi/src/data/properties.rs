//! `hoodie.properties`: the properties of a table, in the form of Java's properties.
//!
//! ```text
//! # a comment, also with !       key=value | key:value | key value       escapes: \t \n \r \f \uXXXX, any other character itself
//! a line that ends with an odd number of \ goes on in the next one
//! ```
//!
//! A writer that dies while it replaces the file leaves `hoodie.properties.backup`, which then counts.

use std::collections::BTreeMap;

use coldframe_core::io::Folder;
use coldframe_core::{Error, Limits, Result};

/// The file with a table's properties.
const FILE: &str = ".hoodie/hoodie.properties";
/// Replaces the file if the file is missing or was not written to its end.
const BACKUP: &str = ".hoodie/hoodie.properties.backup";

/// A table's properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Properties {
    all: BTreeMap<String, String>,
    /// Whether the last line has no end.
    is_cut: bool,
}

impl Properties {
    /// Reads the properties of the table in `folder`; `None` if it has no properties.
    pub(crate) fn read(folder: &dyn Folder, limits: &Limits) -> Result<Option<Self>> {
        let own = match read_file(folder, FILE, limits)? {
            Some(own) if own.is_whole() => return Ok(Some(own)),
            own => read_file(folder, BACKUP, limits)?.filter(Self::is_whole).or(own),
        };
        match own {
            Some(own) if own.get("hoodie.table.name").is_none() => {
                Err(Error::corrupt("expected the property `hoodie.table.name`, found none").in_file(FILE))
            }
            own => Ok(own),
        }
    }

    /// Whether the file seems to be cut: Hudi ends each line.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether the file was written to its end: the name is always there, and a checksum agrees with it.
    fn is_whole(&self) -> bool {
        let Some(name) = self.get("hoodie.table.name") else { return false };
        let named = format!("{}.{name}", self.get("hoodie.database.name").unwrap_or_default());
        let actual = coldframe_encoding::checksum::crc32(named.as_bytes());
        let stated = self.get("hoodie.table.checksum").map(str::parse::<u32>);
        !self.is_cut && stated.is_none_or(|stated| stated == Ok(actual))
    }

    /// A property that is not empty.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.all.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first of several properties that is not empty.
    pub(crate) fn first(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// The entries of a list; empty if there is no such property.
    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        let parts = self.get(key).unwrap_or_default().split(',').map(str::trim);
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// Whether a property is `true`; `absent` if it is missing.
    pub(crate) fn is(&self, key: &str, absent: bool) -> bool {
        self.get(key).map_or(absent, |value| value.eq_ignore_ascii_case("true"))
    }

    /// A number.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        self.get(key)?.trim().parse().ok()
    }

    /// All properties, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

fn read_file(folder: &dyn Folder, path: &str, limits: &Limits) -> Result<Option<Properties>> {
    let file = match folder.open(path) {
        Ok(file) => file,
        Err(e) if e.is_not_found() => return Ok(None),
        Err(e) => return Err(e),
    };
    limits.metadata("hoodie.properties", file.len())?;
    let bytes = file.read(0..file.len())?;
    Ok(Some(parse(&String::from_utf8_lossy(&bytes))))
}

/// Parses the text of a properties file.
pub(super) fn parse(text: &str) -> Properties {
    let mut all = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.starts_with(['#', '!']) {
            continue;
        }
        while line.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1 {
            line.pop();
            let Some(next) = lines.next() else { break };
            line.push_str(next.trim_start());
        }
        let (key, value) = divide(&line);
        if !key.is_empty() {
            all.insert(unescaped(key), unescaped(value.trim_end()));
        }
    }
    Properties { all, is_cut: !text.is_empty() && !text.ends_with(['\n', '\r']) }
}

/// Divides a line at the first separator that is not escaped.
fn divide(line: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        if !escaped && matches!(c, '=' | ':' | ' ' | '\t') {
            let (key, rest) = line.split_at(at);
            let rest = rest.trim_start();
            return (key, rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start());
        }
        escaped = !escaped && c == '\\';
    }
    (line, "")
}

fn unescaped(text: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let unit = match (c, (c == '\\').then(|| chars.next()).flatten()) {
            ('\\', Some('t')) => '\t',
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            ('\\', Some('f')) => '\u{c}',
            ('\\', Some('u')) => {
                let digits: String = chars.by_ref().take(4).collect();
                units.push(u16::from_str_radix(&digits, 16).unwrap_or(0xfffd));
                continue;
            }
            ('\\', Some(other)) => other,
            (other, _) => other,
        };
        units.extend_from_slice(unit.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_as_java_parses_them() {
        let of = parse(
            "#Fri\n! no\n a\\:b = x\\=y \nk:v\nlong=one\\\n   two\nu=\\u00e9\\ud83d\\ude00\nempty=\nbare\n\\#h=\\\\n",
        );
        let get = |key| of.get(key);
        assert_eq!(get("a:b"), Some("x=y"));
        assert_eq!((get("k"), get("long")), (Some("v"), Some("onetwo")));
        assert_eq!((get("u"), get("empty"), get("bare")), (Some("é😀"), None, None));
        assert_eq!(get("#h"), Some("\\n"));
    }

    #[test]
    fn a_file_that_was_cut_gives_way_to_its_backup() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        std::fs::create_dir(dir.path().join(".hoodie")).unwrap();
        let folder = coldframe_store::LocalFolder::new(dir.path());
        let read = || Properties::read(&folder, &Limits::default()).unwrap();
        assert_eq!(read(), None);
        // The checksum of ".lab" is 4282281927.
        write(BACKUP, "hoodie.table.name=lab\nhoodie.table.checksum=4282281927\nfrom=backup\n");
        assert_eq!(read().unwrap().get("from"), Some("backup"));
        write(FILE, "hoodie.table.version=6\n");
        assert_eq!(read().unwrap().get("from"), Some("backup"));
        write(FILE, "hoodie.table.name=lab\nhoodie.table.checksum=1\n");
        assert_eq!(read().unwrap().get("from"), Some("backup"));
        write(FILE, "hoodie.table.name=lab\nhoodie.table.checksum=4282281927\nfrom=file\n");
        assert_eq!(read().unwrap().get("from"), Some("file"));
    }
}
