//! The options of opening a CFile.

use arrow_schema::{DataType, TimeUnit};
use coldframe_core::options::Options as _;
use coldframe_core::{Error, Limits, Result};

coldframe_core::options! {
    /// The user's options of opening a CFile.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        /// true adds a column `ordinal`: the number of each value, from 0
        ordinal: bool;
        /// Arrow type of the values, if the file does not determine it: "decimal128(18,5)", "binary", "timestamp[us]"
        value_type: Option<String>;
        /// true returns string and binary columns as Arrow dictionaries
        dictionary: bool;
    }
}

/// The parsed options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to add a column of ordinals.
    pub ordinal: bool,
    /// The values' type.
    pub value_type: Option<DataType>,
    /// Whether to return text and bytes as dictionaries.
    pub dictionary: bool,
    /// Whether to verify checksums.
    pub verify: bool,
    /// The limits on memory.
    pub limits: Limits,
}

impl Options {
    /// Parses the user's options.
    pub fn new(options: &coldframe_core::OpenOptions) -> Result<Self> {
        if options.schema.is_some() {
            return Err(Error::unsupported(
                "a schema for a CFile; use the option `value_type` to refine its type",
            ));
        }
        let extra = OpenOptions::read("cfile", &options.extra)?;
        Ok(Self {
            ordinal: extra.ordinal,
            value_type: extra.value_type.as_deref().map(parse_type).transpose()?,
            dictionary: extra.dictionary,
            verify: !options.skip_checksums,
            limits: options.limits,
        })
    }
}

/// An Arrow type by its name in pyarrow.
pub fn parse_type(name: &str) -> Result<DataType> {
    let compact: String = name.chars().filter(|c| !c.is_whitespace()).collect();
    let simple = match compact.as_str() {
        "binary" => Some(DataType::Binary),
        "string" | "utf8" => Some(DataType::Utf8),
        "int8" => Some(DataType::Int8),
        "int16" => Some(DataType::Int16),
        "int32" => Some(DataType::Int32),
        "int64" => Some(DataType::Int64),
        "float" => Some(DataType::Float32),
        "double" => Some(DataType::Float64),
        "bool" => Some(DataType::Boolean),
        "date32" | "date32[day]" => Some(DataType::Date32),
        "timestamp[us]" => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
        _ => None,
    };
    if let Some(simple) = simple {
        return Ok(simple);
    }
    if let Some(zone) = compact.strip_prefix("timestamp[us,tz=").and_then(|z| z.strip_suffix(']')) {
        return Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into())));
    }
    let digits = compact.strip_prefix("decimal128(").or_else(|| compact.strip_prefix("decimal("));
    let digits = digits.and_then(|d| d.strip_suffix(')')).and_then(|d| d.split_once(','));
    let decimal = digits.and_then(|(p, s)| Some((p.parse::<u8>().ok()?, s.parse::<i8>().ok()?)));
    match decimal {
        Some((precision @ 1..=38, scale @ 0..)) if scale.unsigned_abs() <= precision => {
            Ok(DataType::Decimal128(precision, scale))
        }
        _ => Err(Error::invalid(format!(
            "option `value_type`: expected a type such as \"decimal128(18,5)\", found \"{name}\""
        ))),
    }
}
