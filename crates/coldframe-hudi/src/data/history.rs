//! The names of columns in older files, by the history of the schema (`hoodie.schema.on.read`).
//!
//! Each version of the schema is named by the instant that made it and gives each column an id. A column of a file has
//! the name that its id had when the file was written. Without a history, columns match by name.

use std::collections::BTreeMap;

use arrow_schema::Schema as ArrowSchema;
use coldframe_core::{Error, Limits, Result};
use serde_json::Value as Json;

use crate::data::commit;

/// The versions of a schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// For each version, the names of the columns by id.
    versions: BTreeMap<u64, BTreeMap<i64, String>>,
    /// The ids of the columns in the version that is shown.
    ids: BTreeMap<String, i64>,
}

impl History {
    /// The history in the text of a `.schemacommit`; the columns are the columns of `shown`.
    pub(crate) fn new(text: &[u8], shown: Option<&str>, limits: &Limits) -> Result<Self> {
        let json = commit::parse(text, limits).map_err(|e| e.within("history of the schema"))?;
        let mut history = Self::default();
        for schema in json.get("schemas").and_then(Json::as_array).into_iter().flatten() {
            let (version, names) = version(schema)?;
            history.versions.insert(version, names);
        }
        if let Some(shown) = shown {
            let json = commit::parse(shown.as_bytes(), limits).map_err(|e| e.within("schema of a commit"))?;
            let (_, names) = version(&json)?;
            history.ids = names.into_iter().map(|(id, name)| (name, id)).collect();
        }
        Ok(history)
    }

    /// The name of a column in a file written at `instant`; `None` if the file lacks the column.
    pub(crate) fn name_in(&self, name: &str, instant: &str) -> Option<String> {
        let Some(id) = self.ids.get(name) else { return Some(name.to_owned()) };
        let at = instant.parse::<u64>().unwrap_or(u64::MAX);
        let version = self.versions.range(..=at).next_back().or(self.versions.iter().next());
        let Some((_, names)) = version else { return Some(name.to_owned()) };
        names.get(id).cloned()
    }

    /// Whether a file's column may be one of the columns of `schema`, under whatever name.
    pub(crate) fn may_be(&self, name: &str, schema: &ArrowSchema) -> bool {
        let ids = self.versions.values().flatten().filter(|(_, own)| *own == name).map(|(id, _)| id);
        let mut ids = ids.collect::<Vec<_>>().into_iter();
        schema.column_with_name(name).is_some()
            || ids.any(|id| schema.fields().iter().any(|f| self.ids.get(f.name()) == Some(id)))
    }
}

/// A version's number, and the names of its columns.
fn version(schema: &Json) -> Result<(u64, BTreeMap<i64, String>)> {
    let number = schema.get("version_id").and_then(Json::as_u64);
    let number = number.ok_or_else(|| Error::corrupt("expected a `version_id` of a schema, found none"))?;
    let mut names = BTreeMap::new();
    for field in schema.get("fields").and_then(Json::as_array).into_iter().flatten() {
        let (id, name) = (field.get("id").and_then(Json::as_i64), field.get("name").and_then(Json::as_str));
        if let (Some(id), Some(name)) = (id, name) {
            names.insert(id, name.to_owned());
        }
    }
    Ok((number, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_columns_have_the_names_of_their_time() {
        let text = br#"{"schemas":[{"version_id":20,"fields":[{"id":1,"name":"b"},{"id":3,"name":"c"}]},
            {"version_id":10,"fields":[{"id":1,"name":"a"},{"id":2,"name":"c"}]}]}"#;
        let shown = r#"{"version_id":20,"fields":[{"id":1,"name":"b"},{"id":3,"name":"c"}]}"#;
        let history = History::new(text, Some(shown), &Limits::default()).unwrap();
        assert_eq!(history.name_in("b", "15").as_deref(), Some("a"));
        assert_eq!(history.name_in("b", "20").as_deref(), Some("b"));
        // At that time another column had this name.
        assert_eq!(history.name_in("c", "15"), None);
        assert_eq!(history.name_in("c", "25").as_deref(), Some("c"));
        assert_eq!(history.name_in("other", "5").as_deref(), Some("other"));
        assert_eq!(History::default().name_in("x", "1").as_deref(), Some("x"));
    }
}
