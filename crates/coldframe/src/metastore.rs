//! Tables as a Hive metastore defines them, and how their files are read.
//!
//! ```text
//! thrift://, a dump, statements (Python), Spark's catalog (Java)
//!   └─▶ Definition, Partition: what the metastore says, unchanged
//!         │ properties: format, SerDe properties, location, whether partitions are registered
//!         │ values:     the texts of partition values as values of the keys' types
//!         └─▶ TableDef: groups of partitions that are read in the same way, with their files
//! ```
//!
//! Each partition has its own format, SerDe, columns and location: Hive copies these from the table when it
//! creates the partition, and a later `ALTER TABLE` changes only the table.

pub mod properties;
mod table;
pub mod values;

pub use table::{Access, columns_of, keys_of, table_def};

use std::collections::BTreeMap;

/// Properties by name.
pub type Properties = BTreeMap<String, String>;

/// A column, or a partition key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The type as Hive writes it: `array<string>`.
    pub kind: String,
}

/// The location and format of the files of a table or of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// The columns of the files.
    pub columns: Vec<Column>,
    /// The name of a Java class.
    pub input_format: Option<String>,
    /// The name of a Java class.
    pub serde: Option<String>,
    /// The properties of the SerDe.
    pub serde_properties: Properties,
}

/// A partition of a table, or the whole table if it has no partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// The values as texts, one for each key of the table; null is the text that Hive uses for it.
    pub values: Vec<String>,
    /// How the partition's files are stored.
    pub storage: Storage,
    /// Its properties.
    pub parameters: Properties,
    /// Where the partition's files are now, as a path or URL in text form (see [`crate::dataset::storage`]).
    pub location: String,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// `database.table`.
    pub name: String,
    /// How the table's files are stored; new partitions are stored in the same way.
    pub storage: Storage,
    /// The partition keys.
    pub keys: Vec<Column>,
    /// Its properties.
    pub parameters: Properties,
    /// Whether the table's partitions are the `key=value` folders at its location, because no partitions are
    /// registered.
    pub by_folders: bool,
}

impl Definition {
    /// Whether the table's rows are in partitions that the metastore knows.
    pub fn has_partitions(&self) -> bool {
        !self.keys.is_empty() && !self.by_folders && properties::are_registered(&self.parameters)
    }

    /// The name of a partition for people, as values are not escaped: `dt=2014-01-01/region=asia/pacific`.
    fn name_of(&self, partition: &Partition) -> String {
        let pairs = self.keys.iter().zip(&partition.values);
        let pairs: Vec<String> = pairs.map(|(key, value)| format!("{}={value}", key.name)).collect();
        pairs.join("/")
    }

    /// The properties that a SerDe gets: the properties of the table's SerDe, of the table, of the
    /// partition's SerDe and of the partition. Later properties override earlier properties.
    pub fn serde_properties(&self, partition: &Partition) -> Properties {
        let mut all = self.storage.serde_properties.clone();
        all.extend(properties::of_serde(&self.parameters));
        if self.has_partitions() {
            all.extend(partition.storage.serde_properties.clone());
            all.extend(properties::of_serde(&partition.parameters));
        }
        all
    }
}

#[cfg(test)]
mod tests;
