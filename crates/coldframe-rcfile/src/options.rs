//! What a user says of an RCFile that the file does not: types, SerDe, delimiters, whose rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use chrono_tz::Tz;
use coldframe_core::options::text;
use coldframe_core::{Error, OpenOptions, OptionDoc, Result, SchemaSpec, Value};

use crate::hive_type::HiveType;
use crate::hive_type::ddl;
use crate::serde::{HiveVersion, Serde, SerdeOptions, TimestampUnit};

/// Options that reading and writing share.
pub(crate) const SERDE: OptionDoc = OptionDoc {
    name: "serde",
    help: "\"text\" (ColumnarSerDe) or \"binary\" (LazyBinaryColumnarSerDe, Hive's default since 0.12); the file does not say which",
};
pub(crate) const SERDE_PROPERTIES: OptionDoc = OptionDoc {
    name: "serde_properties",
    help: "table and SerDe properties under Hive's names: field.delim, collection.delim, mapkey.delim, escape.delim, serialization.null.format, timestamp.formats ...",
};
pub(crate) const HIVE_VERSION: OptionDoc = OptionDoc {
    name: "hive_version",
    help: "whose lenient parsing and calendar apply: \"4.1\" (default), \"3.1\", \"2.3\", \"0.8\"",
};
pub(crate) const TIMEZONE: OptionDoc = OptionDoc {
    name: "timezone",
    help: "zone of the session that wrote binary timestamps with Hive 2.x or older, such as \"America/Los_Angeles\"; default UTC",
};

/// Options of [`coldframe_core::Format::open`].
pub(crate) const OPEN_OPTIONS: &[OptionDoc] = &[
    SERDE,
    SERDE_PROPERTIES,
    HIVE_VERSION,
    TIMEZONE,
    OptionDoc {
        name: "timestamp_unit",
        help: "\"ns\" (default, years 1677..2262) or \"us\" for timestamps outside",
    },
];

/// The columns of a table as the user sees them.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Names and Arrow types.
    pub(crate) schema: SchemaRef,
    /// Hive types; `None` where the cells are handed out as they are.
    pub(crate) types: Option<Vec<HiveType>>,
    /// The SerDe.
    pub(crate) serde: Serde,
    /// What it needs to know.
    pub(crate) options: SerdeOptions,
}

impl Table {
    /// The table that `options` describe, or one of binary columns `_c0` .. for a file of `columns` columns.
    pub(crate) fn new(options: &OpenOptions, columns: usize) -> Result<Self> {
        let extra = &options.extra;
        let serde = text(extra, "serde")?.map(parse_serde).transpose()?;
        let mut serde_options = serde_options(extra)?;
        serde_options.limits = options.limits;
        let Some(spec) = &options.schema else {
            return Ok(Self {
                schema: raw_schema(columns),
                types: None,
                serde: serde.unwrap_or(Serde::Binary),
                options: serde_options,
            });
        };
        let (names, metadata, types) = columns_of(spec, options)?;
        let serde = serde.ok_or_else(|| {
            Error::invalid("an RCFile does not say which SerDe wrote it: pass serde=\"binary\" (Hive's default since 0.12) or serde=\"text\"")
        })?;
        let unit = serde_options.timestamp_unit;
        let fields: Vec<Field> =
            names.into_iter().zip(&types).map(|(name, t)| Field::new(name, t.to_arrow(unit), true)).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(Self { schema, types: Some(types), serde, options: serde_options })
    }
}

type Columns = (Vec<String>, arrow_schema::Metadata, Vec<HiveType>);

fn columns_of(spec: &SchemaSpec, options: &OpenOptions) -> Result<Columns> {
    match spec {
        SchemaSpec::Ddl(text) => {
            let (names, types) = ddl::parse_columns(text, &options.limits)?.into_iter().unzip();
            Ok((names, arrow_schema::Metadata::default(), types))
        }
        SchemaSpec::Arrow(schema) => {
            let types = schema
                .fields()
                .iter()
                .map(|f| {
                    HiveType::from_arrow(f.data_type())
                        .map_err(|e| e.within(format!("column `{}`", f.name())))
                })
                .collect::<Result<_>>()?;
            let names = schema.fields().iter().map(|f| f.name().clone()).collect();
            Ok((names, schema.metadata().clone(), types))
        }
    }
}

/// Columns `_c0` .. of cells as they are.
pub(crate) fn raw_schema(columns: usize) -> SchemaRef {
    let fields: Vec<Field> =
        (0..columns).map(|i| Field::new(format!("_c{i}"), DataType::Binary, true)).collect();
    Arc::new(Schema::new(fields))
}

pub(crate) fn parse_serde(name: &str) -> Result<Serde> {
    let class = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    match class.as_str() {
        "text" | "columnarserde" => Ok(Serde::Text),
        "binary" | "lazybinarycolumnarserde" => Ok(Serde::Binary),
        _ => Err(Error::invalid(format!("option `serde`: expected \"text\" or \"binary\", found {name:?}"))),
    }
}

/// What the SerDes need to know, from the options that reading and writing share.
pub(crate) fn serde_options(extra: &BTreeMap<String, Value>) -> Result<SerdeOptions> {
    let mut options = SerdeOptions::default();
    if let Some(version) = text(extra, "hive_version")? {
        options.hive_version = parse_version(version)?;
    }
    if let Some(zone) = text(extra, "timezone")? {
        let parsed: Tz = zone.parse().map_err(|_| {
            Error::invalid(format!("option `timezone`: {zone:?} is not the name of a time zone"))
        })?;
        options.timezone = Some(parsed);
    }
    options.timestamp_unit = match text(extra, "timestamp_unit")? {
        None | Some("ns") => TimestampUnit::Nanosecond,
        Some("us") => TimestampUnit::Microsecond,
        Some(other) => {
            return Err(Error::invalid(format!(
                "option `timestamp_unit`: expected \"ns\" or \"us\", found {other:?}"
            )));
        }
    };
    options.properties = properties(extra, "serde_properties")?;
    Ok(options)
}

fn parse_version(version: &str) -> Result<HiveVersion> {
    let mut parts = version.split('.').map(|p| p.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(0), _) => Ok(HiveVersion::V0_8),
        (Some(1 | 2), _) => Ok(HiveVersion::V2_3),
        (Some(3), _) => Ok(HiveVersion::V3_1),
        (Some(4), _) => Ok(HiveVersion::V4_1),
        _ => Err(Error::invalid(format!(
            "option `hive_version`: expected a version of Hive such as \"2.3\" or \"4.1\", found {version:?}"
        ))),
    }
}

/// The pairs of an option that is a map of texts.
pub(crate) fn properties(extra: &BTreeMap<String, Value>, name: &str) -> Result<BTreeMap<String, String>> {
    let pairs = match extra.get(name) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Map(pairs)) => pairs,
        Some(other) => {
            return Err(Error::invalid(format!("option `{name}`: expected a mapping, found {other:?}")));
        }
    };
    pairs
        .iter()
        .map(|(k, v)| match v {
            Value::Str(s) => Ok((k.clone(), s.clone())),
            Value::Bool(b) => Ok((k.clone(), b.to_string())),
            Value::Int(i) => Ok((k.clone(), i.to_string())),
            other => {
                Err(Error::invalid(format!("option `{name}`, `{k}`: expected a string, found {other:?}")))
            }
        })
        .collect()
}
