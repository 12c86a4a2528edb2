//! The bytes sent to an executor: a share of a plan, and how to return its rows.
//!
//! ```text
//! "CFT1" | length, 4 bytes LE | JSON: schema, aggregates, damage, storage | bytes of coldframe::dataset::Plan
//! ```
//! The bytes contain the options of stores and keys, like the bytes of the plan, so they are secret.

use std::collections::BTreeMap;

use arrow_schema::SchemaRef;
use coldframe::dataset::Plan;
use coldframe::dataset::wire::Bound;
use coldframe::{Error, Result};
use serde_json::{Value as Json, json};

use crate::aggregate::Aggregate;
use crate::types;

const MAGIC: &[u8; 4] = b"CFT1";
/// Length of the magic bytes and the length field.
const HEADER: usize = 8;

/// One task of a query.
#[derive(Clone, Debug)]
pub struct Task {
    /// The splits to read.
    pub plan: Plan,
    /// The decoded columns, in Spark's types.
    pub schema: SchemaRef,
    /// The aggregates to return instead of rows, in one batch of one row; empty to return the rows.
    pub aggregates: Vec<Aggregate>,
    /// A folder for damage records.
    pub damage: Option<String>,
    /// The options of the folder's store.
    pub storage: BTreeMap<String, String>,
    /// Whether a file that is gone has no rows; otherwise it is an error.
    pub ignore_missing: bool,
}

impl Task {
    /// The result; `None` for a file that is gone, if such files have no rows.
    pub(crate) fn unless_gone<T>(&self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(e) if self.ignore_missing && e.is_not_found() => Ok(None),
            result => result.map(Some),
        }
    }

    /// The task as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let header = json!({
            "schema": types::to_spark(&self.schema)?,
            "aggregates": self.aggregates.iter().map(Aggregate::to_json).collect::<Vec<_>>(),
            "damage": self.damage,
            "storage": self.storage,
            "ignore_missing": self.ignore_missing,
        });
        let (header, plan) = (header.to_string(), self.plan.to_bytes()?);
        let len =
            u32::try_from(header.len()).map_err(|_| Error::invalid("a task's schema of more than 4 GiB"))?;
        let mut bytes = Vec::with_capacity(HEADER + header.len() + plan.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(&plan);
        Ok(bytes)
    }

    /// Parses [`Task::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong =
            |what: &str| Error::corrupt(format!("{what}; expected a task of this version")).within("task");
        let (magic, rest) = bytes.split_at_checked(MAGIC.len()).ok_or_else(|| wrong("too few bytes"))?;
        if magic != MAGIC {
            return Err(wrong("a different magic"));
        }
        let (len, rest) = rest.split_first_chunk().ok_or_else(|| wrong("too few bytes"))?;
        let len = usize::try_from(u32::from_le_bytes(*len)).map_err(|_| wrong("too long"))?;
        let (header, plan) = rest.split_at_checked(len).ok_or_else(|| wrong("too few bytes"))?;
        let header: Json = serde_json::from_slice(header).map_err(|_| wrong("a header that is not JSON"))?;
        let schema = header.get("schema").ok_or_else(|| wrong("no schema"))?;
        let storage = header.get("storage").and_then(Json::as_object);
        let storage = storage
            .into_iter()
            .flatten()
            .filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
        Ok(Self {
            plan: Plan::from_bytes(plan, &Bound::default())?,
            schema: types::from_spark(schema)?.into(),
            aggregates: header
                .get("aggregates")
                .and_then(Aggregate::parse)
                .ok_or_else(|| wrong("no aggregates"))?,
            damage: header.get("damage").and_then(Json::as_str).map(str::to_owned),
            storage: storage.collect(),
            ignore_missing: header.get("ignore_missing").and_then(Json::as_bool).unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use coldframe::Scan;

    use super::*;
    use crate::aggregate::Function;

    #[test]
    fn bytes_parse_to_the_task_or_an_error() {
        let schema: SchemaRef = Schema::new(vec![Field::new("a", DataType::Int64, true)]).into();
        let plan = Plan { schema: schema.clone(), scan: Scan::default(), splits: Vec::new() };
        let storage = BTreeMap::from([("region".to_owned(), "x".to_owned())]);
        let aggregates = vec![
            Aggregate { function: Function::Count, column: None },
            Aggregate { function: Function::Max, column: Some("a".to_owned()) },
        ];
        let task =
            Task { plan, schema, aggregates, damage: Some("/d".into()), storage, ignore_missing: true };
        let bytes = task.to_bytes().unwrap();
        let back = Task::from_bytes(&bytes).unwrap();
        assert_eq!(
            (back.schema, back.aggregates, back.damage, back.storage, back.ignore_missing),
            (task.schema, task.aggregates, task.damage, task.storage, true)
        );
        for len in 0..bytes.len() {
            assert!(Task::from_bytes(&bytes[..len]).is_err(), "{len}");
        }
        let mut other = bytes;
        other[0] ^= 1;
        assert!(Task::from_bytes(&other).is_err());
    }
}
