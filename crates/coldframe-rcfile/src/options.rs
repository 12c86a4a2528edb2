//! What a user states about an RCFile because the file does not: types, SerDe, delimiters, Hive version.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use chrono_tz::Tz;
use coldframe_core::options::Options as _;
use coldframe_core::{Error, Result, SchemaSpec};

use crate::hive_type::HiveType;
use crate::hive_type::ddl;
use crate::serde::{HiveVersion, Serde, SerdeOptions, TimestampUnit};

coldframe_core::options! {
    /// Properties of the Hive table that its files do not state.
    pub struct TableOptions for coldframe_core::OpenOptions {
        /// "text" (ColumnarSerDe) or "binary" (LazyBinaryColumnarSerDe, Hive's default since 0.12); the file does not
        /// state it
        serde: Option<Serde>;
        /// table and SerDe properties by Hive's names: field.delim, collection.delim, mapkey.delim, escape.delim,
        /// serialization.null.format, timestamp.formats ...
        serde_properties: Vec<(String, String)>;
        /// version of Hive whose lenient parsing, calendar and conversions apply
        hive_version: HiveVersion;
        /// time zone of the session in which Hive 2.x or older wrote binary timestamps, such as "America/Los_Angeles";
        /// default: UTC
        timezone: Option<String>;
    }
}

coldframe_core::options! {
    /// How an RCFile is opened.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        flatten table: TableOptions;
        /// unit of timestamps; us holds years outside 1677..2262
        timestamp_unit: TimestampUnit;
    }
}

/// The property of ours that returns the bytes of `string` values as they are, if it is `bytes`: Spark's readers keep texts
/// that are not UTF-8.
const TEXTS: &str = "coldframe.text";

/// The columns of a table as the user sees them.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Names and Arrow types.
    pub(crate) schema: SchemaRef,
    /// Hive types; `None` if the cells are returned raw.
    pub(crate) types: Option<Vec<HiveType>>,
    /// The SerDe.
    pub(crate) serde: Serde,
    /// The SerDe's settings.
    pub(crate) options: SerdeOptions,
}

impl Table {
    /// The table that `options` describe. Without a schema: `columns` binary columns `_c0`, `_c1` ...
    pub(crate) fn new(options: &coldframe_core::OpenOptions, columns: usize) -> Result<Self> {
        let OpenOptions { table, timestamp_unit } = OpenOptions::read("rcfile", &options.extra)?;
        let mut serde_options = table.serde_options()?;
        serde_options.timestamp_unit = timestamp_unit;
        serde_options.limits = options.limits;
        let serde = table.serde;
        let Some(spec) = &options.schema else {
            return Ok(Self {
                schema: raw_schema(columns),
                types: None,
                serde: serde.unwrap_or(Serde::Binary),
                options: serde_options,
            });
        };
        let (names, metadata, mut types) = columns_of(spec, options)?;
        if serde_options.properties.get(TEXTS).is_some_and(|text| text == "bytes") {
            types = types.into_iter().map(HiveType::with_bytes).collect();
        }
        let serde = serde.ok_or_else(|| {
            Error::invalid(
                "an RCFile does not state which SerDe wrote it: pass serde=\"binary\" (Hive's default since 0.12) or \
                 serde=\"text\"",
            )
        })?;
        let unit = serde_options.timestamp_unit;
        let fields: Vec<Field> = names.iter().zip(&types).map(|(name, t)| t.to_field(name, unit)).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(Self { schema, types: Some(types), serde, options: serde_options })
    }
}

type Columns = (Vec<String>, arrow_schema::Metadata, Vec<HiveType>);

fn columns_of(spec: &SchemaSpec, options: &coldframe_core::OpenOptions) -> Result<Columns> {
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

/// Columns `_c0` .. of raw cells.
pub(crate) fn raw_schema(columns: usize) -> SchemaRef {
    let fields: Vec<Field> =
        (0..columns).map(|i| Field::new(format!("_c{i}"), DataType::Binary, true)).collect();
    Arc::new(Schema::new(fields))
}

impl TableOptions {
    /// The options of the SerDes.
    pub(crate) fn serde_options(&self) -> Result<SerdeOptions> {
        let zone = |zone: &String| {
            zone.parse::<Tz>().map_err(|_| {
                Error::invalid(format!("option `timezone`: {zone:?} is not the name of a time zone"))
            })
        };
        Ok(SerdeOptions {
            properties: self.serde_properties.iter().cloned().collect(),
            hive_version: self.hive_version,
            timezone: self.timezone.as_ref().map(zone).transpose()?,
            ..SerdeOptions::default()
        })
    }
}
