//! Names of tables and of the files in a family's folder.
//!
//! ```text
//! HFILE                      32 hex digits; HFILE_SeqId_14_ if it was bulk loaded; a MOB file: digits, "_", region
//! HFILE.PARENT               half of HFILE in the region PARENT of the same table
//! [NS=]TABLE=REGION-HFILE            a link to a file, without bytes of its own
//! [NS=]TABLE=REGION-HFILE.PARENT     half of the target of the link with this name in PARENT
//! ```
//!
//! HBase: `StoreFileInfo`, `HFileLink`.

use std::fmt;

use coldframe_core::{Error, Result};

use super::proto;

/// The folder of a region with logs of its edits, which HBase split off the logs of servers.
pub(crate) const RECOVERED_EDITS: &str = "recovered.edits";

/// The namespace of tables without an explicit namespace.
const DEFAULT: &str = "default";

/// The name of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableName {
    /// The namespace of the table.
    pub(crate) namespace: String,
    /// The table's name in the namespace.
    pub(crate) name: String,
}

impl TableName {
    /// Parses `namespace:name`, or a name in the namespace `default`.
    pub(crate) fn parse(text: &str) -> Self {
        let (namespace, name) = text.split_once(':').unwrap_or((DEFAULT, text));
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Converts a name from its protobuf message.
    pub(crate) fn of(message: &proto::TableName) -> Result<Self> {
        let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            // A name with several path components could lead out of the root directory, so it is an error.
            Ok(text) if is_path_component(text) => Ok(text.to_owned()),
            _ => Err(Error::corrupt(format!("expected a table's name, found \"{}\"", bytes.escape_ascii()))),
        };
        Ok(Self { namespace: text(&message.namespace)?, name: text(&message.qualifier)? })
    }

    /// Whether this is hbase:meta, the list of all regions.
    pub(crate) fn is_meta(&self) -> bool {
        self.namespace == "hbase" && self.name == "meta"
    }

    /// Whether the table is one of HBase's own tables.
    pub(crate) fn is_system(&self) -> bool {
        self.namespace == "hbase"
    }

    /// The name as HBase prints it: without the namespace if that is `default`.
    pub(crate) fn plain(&self) -> String {
        if self.namespace == DEFAULT { self.name.clone() } else { self.to_string() }
    }

    /// The name as users see it.
    pub(crate) fn shown(&self) -> String {
        match self.namespace.as_str() {
            DEFAULT => self.name.clone(),
            namespace => format!("{namespace}.{}", self.name),
        }
    }

    /// The folder of the table's regions, below `data`.
    pub(crate) fn folder(&self) -> String {
        format!("data/{}/{}", self.namespace, self.name)
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.namespace, self.name)
    }
}

/// Whether a text is a single path component.
pub(crate) fn is_path_component(text: &str) -> bool {
    !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '\0'])
}

/// Whether a folder's name is the name of a region.
pub(crate) fn is_region(name: &str) -> bool {
    (name.len() == 32 && is_hex(name)) || name == META_REGION
}

/// The only region of hbase:meta.
pub(crate) const META_REGION: &str = "1588230740";

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The location of a store file of any table: table, region, family and file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileAt {
    pub(crate) table: TableName,
    pub(crate) region: String,
    pub(crate) family: String,
    pub(crate) file: String,
}

/// The meaning of a name in a family's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreName {
    /// The file is in this folder.
    Own,
    /// A link to a file that is elsewhere.
    Link(FileAt),
    /// A reference to half of a file that is elsewhere. The content of the reference states which half.
    Half(FileAt),
}

impl StoreName {
    /// Parses `name` in a family of a table; `None` if it is not the name of a store file.
    pub(crate) fn parse(name: &str, table: &TableName, family: &str) -> Option<Self> {
        if let Some((of, parent)) = name.rsplit_once('.').filter(|(_, parent)| is_region(parent)) {
            let place = match link(of, family) {
                Some(link) => link,
                None if is_file(of) => FileAt {
                    table: table.clone(),
                    region: parent.to_owned(),
                    family: family.to_owned(),
                    file: of.to_owned(),
                },
                None => return None,
            };
            return Some(Self::Half(place));
        }
        if let Some(link) = link(name, family) {
            return Some(Self::Link(link));
        }
        is_file(name).then_some(Self::Own)
    }
}

/// The target of `[NS=]TABLE=REGION-HFILE`.
fn link(name: &str, family: &str) -> Option<FileAt> {
    let (table, rest) = name.rsplit_once('=')?;
    let (region, file) = rest.split_once('-')?;
    if !is_region(region) || !is_file(file) || !is_path_component(table) {
        return None;
    }
    let (namespace, name) = table.split_once('=').unwrap_or((DEFAULT, table));
    let table = TableName { namespace: namespace.to_owned(), name: name.to_owned() };
    (is_path_component(namespace) && is_path_component(name)).then(|| FileAt {
        table,
        region: region.to_owned(),
        family: family.to_owned(),
        file: file.to_owned(),
    })
}

/// Whether a name begins with hexadecimal digits and continues like the names of store files.
pub(crate) fn is_file(name: &str) -> bool {
    let digits = name.bytes().take_while(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)).count();
    let rest = name.get(digits..).unwrap_or_default();
    let has_suffix =
        rest.strip_prefix('_').is_some_and(|r| r.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
    digits > 0 && (rest.is_empty() || has_suffix)
}

/// The sequence id in the name of a bulk-loaded file.
pub(crate) fn bulk_sequence_id(name: &str) -> Option<i64> {
    // If a file is loaded again, a second sequence id is appended; the last id is valid.
    let (_, rest) = name.rsplit_once("_SeqId_")?;
    rest.split('_').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fedc0ec7901043b498591ff38ef42be3";
    const REGION: &str = "103bf72953198c23387b5ebfeace50f7";

    fn parse(name: &str) -> Option<StoreName> {
        StoreName::parse(name, &TableName::parse("t"), "f")
    }

    fn at(table: &str, region: &str) -> FileAt {
        FileAt {
            table: TableName::parse(table),
            region: region.to_owned(),
            family: "f".to_owned(),
            file: FILE.to_owned(),
        }
    }

    #[test]
    fn names_of_store_files_are_parsed() {
        assert_eq!(parse(FILE), Some(StoreName::Own));
        assert_eq!(parse(&format!("{FILE}_SeqId_14_")), Some(StoreName::Own));
        assert_eq!(bulk_sequence_id(&format!("{FILE}_SeqId_14_")), Some(14));
        assert_eq!(bulk_sequence_id(FILE), None);
        let again = format!("{FILE}_SeqId_14__SeqId_29_");
        assert_eq!((parse(&again), bulk_sequence_id(&again)), (Some(StoreName::Own), Some(29)));
        assert_eq!(parse(&format!("{FILE}.{REGION}")), Some(StoreName::Half(at("t", REGION))));
        assert_eq!(parse(&format!("src={REGION}-{FILE}")), Some(StoreName::Link(at("src", REGION))));
        let odd = at("n_s:odd.table-name_1", REGION);
        assert_eq!(
            parse(&format!("n_s=odd.table-name_1={REGION}-{FILE}")),
            Some(StoreName::Link(odd.clone()))
        );
        assert_eq!(
            parse(&format!("n_s=odd.table-name_1={REGION}-{FILE}.{REGION}")),
            Some(StoreName::Half(odd))
        );
        for none in ["", "x", "_tmp", "a.b", "=a-b", "t=a-b", "../t=103bf72953198c23387b5ebfeace50f7-ab"] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    #[test]
    fn a_table_without_a_namespace_is_in_the_default_namespace() {
        assert_eq!(TableName::parse("t").to_string(), "default:t");
        assert_eq!(TableName::parse("a:t").folder(), "data/a/t");
        let outside = proto::TableName { namespace: b"..".to_vec(), qualifier: b"t".to_vec() };
        assert!(TableName::of(&outside).is_err());
    }
}
