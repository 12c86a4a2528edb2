//! The options of Spark's `load()` and `save()`: their values are text, and their names ignore upper and
//! lower case. Both Spark data sources, Python's and the JVM's, parse them here.
//!
//! ```
//! use std::collections::BTreeMap;
//! use coldframe::load::LoadOptions;
//!
//! let given = [("path", "/data/sales"), ("serde_properties.field.delim", "|"), ("split_bytes", "64m")];
//! let given: BTreeMap<_, _> = given.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
//! let options = LoadOptions::parse(&given, Some("rcfile"))?;
//! assert_eq!(options.split_bytes, 64 << 20);
//! assert!(options.open.extra.contains_key("serde_properties"));
//! # Ok::<(), coldframe::Error>(())
//! ```

pub mod selection;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coldframe_core::options::{self, Kind};
use coldframe_core::{CommonOptions, Error, OnError, OpenOptions, Options as _, Result, SchemaSpec, Value};
use serde_json::Value as Json;

pub use self::selection::Selection;
use crate::{Side, formats, parse_option};

/// Default for the maximum rows of a batch.
const BATCH_ROWS: u64 = 16 * 1024;
/// Default for the approximate bytes of a file that a task reads.
const SPLIT_BYTES: u64 = 128 << 20;
/// The prefix of a schema given as an Arrow schema in Base64.
const ARROW: &str = "arrow:";

/// Options of a `load()` that do not belong to a format.
const OF_LOAD: &[&str] = &[
    "path",
    "paths",
    "columns",
    "filter",
    "mode",
    "damage",
    "split_bytes",
    "batch_rows",
    "format",
    "verify_checksums",
    "unify",
    "mergeschema",
    "maxfilespertrigger",
    "maxbytespertrigger",
    "pathglobfilter",
    "recursivefilelookup",
    "modifiedafter",
    "modifiedbefore",
    "ignoremissingfiles",
    "ignorecorruptfiles",
];
/// Options of a `save()` that do not belong to a format.
const OF_SAVE: &[&str] = &["path", "as", "mode"];
/// The prefix of the properties of a table in Spark's catalog that are options.
const OPTION: &str = "option.";
/// Properties of a table in Spark's catalog that are not options.
const OF_CATALOG: &[&str] = &[
    "location",
    "provider",
    "owner",
    "comment",
    "external",
    "is_managed_location",
    "collation",
    "table_type",
];
/// Options of all formats that are mappings. They are given as JSON, or key by key as
/// `storage_options.region`. Further mappings are declared by each format.
const NESTED: &[&str] = &["storage_options", "keys"];

/// The texts of options, by the option's name in lower case.
type Given<'a> = BTreeMap<String, &'a str>;

/// The request of a `load()`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Files, folders, patterns, URLs.
    pub paths: Vec<String>,
    /// The format's name; `None` means that it is detected from the bytes.
    pub format: Option<String>,
    /// The columns; `None` for all columns.
    pub columns: Option<Vec<String>>,
    /// A condition in SQL.
    pub filter: Option<String>,
    /// Which of the listed files are read.
    pub selection: Selection,
    /// Whether files that were listed and are gone when they are read have no rows; otherwise they are an error.
    pub ignore_missing: bool,
    /// What to do about damage.
    pub on_error: OnError,
    /// A folder to write damage records to.
    pub damage: Option<String>,
    /// Approximate bytes of a file that a task reads.
    pub split_bytes: u64,
    /// Maximum rows of a batch.
    pub batch_rows: usize,
    /// Whether the columns are the columns of all files, in which case planning opens every file. Otherwise
    /// the columns are the columns of the first file.
    pub unify: bool,
    /// Maximum files per batch of a stream.
    pub max_files_per_trigger: Option<u64>,
    /// Maximum file bytes per batch of a stream.
    pub max_bytes_per_trigger: Option<u64>,
    /// The options of the stores.
    pub storage: BTreeMap<String, String>,
    /// How files are opened.
    pub open: OpenOptions,
}

impl LoadOptions {
    /// Parses the options of a reader. `format`: the format in the source's name (`coldframe_orc`), if any.
    pub fn parse(given: &BTreeMap<String, String>, format: Option<&str>) -> Result<Self> {
        let mut given = of_table(given);
        // A table of Spark's catalog has one list of options, for reading and for writing.
        let written = given.remove("as");
        if let Some(format) = written {
            given.retain(|name, _| !is_of_writer(format, name));
        }
        check_names(&given)?;
        let get = |name: &str| given.get(name).copied();
        let flag = |name: &str| truth(name, get(&name.to_lowercase()).unwrap_or("false"));
        let on_error = match (get("mode"), flag("ignoreCorruptFiles")?) {
            (None, true) => OnError::Skip,
            (mode, ignore) => {
                let on_error = on_error(mode.unwrap_or("FAILFAST"))?;
                if ignore && on_error == OnError::Raise {
                    return Err(Error::schema(
                        "option ignoreCorruptFiles contradicts mode FAILFAST: give one of them",
                    ));
                }
                on_error
            }
        };
        if get("damage").is_some() && on_error == OnError::Raise {
            let what = "option damage needs mode DROPMALFORMED: FAILFAST stops at the first damage";
            return Err(Error::unsupported(what));
        }
        let format = format.or(get("format")).or(written);
        let batch_rows = size("batch_rows", get("batch_rows"), BATCH_ROWS)?;
        let limit = |name: &str| match get(&name.to_lowercase()) {
            Some(text) => size(name, Some(text), 0).map(Some),
            None => Ok(None),
        };
        let unify = get("unify").or(get("mergeschema")).unwrap_or("false");
        Ok(Self {
            paths: paths(&given)?,
            format: format.map(str::to_owned),
            columns: get("columns").map(names).transpose()?,
            filter: get("filter").map(str::to_owned),
            selection: Selection::of(&given)?,
            ignore_missing: flag("ignoreMissingFiles")?,
            on_error,
            damage: get("damage").map(str::to_owned),
            split_bytes: size("split_bytes", get("split_bytes"), SPLIT_BYTES)?,
            max_files_per_trigger: limit("maxFilesPerTrigger")?,
            max_bytes_per_trigger: limit("maxBytesPerTrigger")?,
            batch_rows: usize::try_from(batch_rows).unwrap_or(usize::MAX),
            unify: truth("unify", unify)?,
            storage: nested(&given, "storage_options")?,
            open: open_options(&given, format)?,
        })
    }
}

fn on_error(mode: &str) -> Result<OnError> {
    match mode.to_lowercase().as_str() {
        "failfast" => Ok(OnError::Raise),
        "dropmalformed" => Ok(OnError::Skip),
        _ => Err(Error::unsupported(format!("mode '{mode}': expected FAILFAST or DROPMALFORMED"))),
    }
}

/// Options whose names are mistyped most easily, as Spark writes them.
const LIKE_SPARKS: &[&str] = &[
    "pathGlobFilter",
    "recursiveFileLookup",
    "modifiedAfter",
    "modifiedBefore",
    "ignoreMissingFiles",
    "ignoreCorruptFiles",
    "mergeSchema",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "columns",
    "filter",
    "damage",
    "split_bytes",
    "batch_rows",
    "verify_checksums",
];

/// Refuses names that no format knows and that are nearly an option of `load()`. Others are left to the format, which lists its
/// options.
fn check_names(given: &Given<'_>) -> Result<()> {
    let known = formats();
    let is_of_format = |name: &str| {
        let common = CommonOptions::specs().iter();
        let mut specs = known.iter().flat_map(|format| format.open_options().iter()).chain(common);
        specs.any(|spec| spec.has_name(name))
    };
    for name in given.keys().filter(|name| !OF_LOAD.contains(&name.as_str()) && !is_of_format(name)) {
        let near = |option: &&&str| is_near(name, &option.to_lowercase());
        if let Some(meant) = LIKE_SPARKS.iter().find(near) {
            return Err(Error::schema(format!("no option `{name}`: did you mean {meant}?")));
        }
    }
    Ok(())
}

/// Whether two names differ in at most two characters that are missing, added or replaced.
fn is_near(a: &str, b: &str) -> bool {
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (at, letter) in a.bytes().enumerate() {
        let mut row = vec![at + 1];
        for (pair, other) in above.windows(2).zip(b.bytes()) {
            let [diagonal, up] = pair else { continue };
            let left = row.last().map_or(0, |left| left + 1);
            row.push((diagonal + usize::from(letter != other)).min(up + 1).min(left));
        }
        above = row;
    }
    above.last().is_some_and(|distance| *distance <= 2)
}

/// Selects the options from `given`, which for a table of Spark's catalog also contains the table's
/// properties.
fn of_table(given: &BTreeMap<String, String>) -> Given<'_> {
    let mut texts: Given<'_> =
        given.iter().map(|(name, text)| (name.to_lowercase(), text.as_str())).collect();
    let prefixed =
        texts.iter().filter_map(|(name, text)| Some((name.strip_prefix(OPTION)?.to_owned(), *text)));
    for (name, text) in prefixed.collect::<Vec<_>>() {
        texts.entry(name).or_insert(text);
    }
    if let Some(location) = texts.get("location").copied().filter(|_| !texts.contains_key("paths")) {
        texts.entry("path".to_owned()).or_insert(location);
    }
    texts.retain(|name, _| !name.starts_with(OPTION) && !OF_CATALOG.contains(&name.as_str()));
    texts
}

/// The request of a `save()`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SaveOptions {
    /// The folder to write to.
    pub path: String,
    /// The format's name.
    pub format: String,
    /// The options of the store.
    pub storage: BTreeMap<String, String>,
    /// The options of the format.
    pub extra: BTreeMap<String, Value>,
    /// The columns and types of the file, if they were given.
    pub schema: Option<SchemaSpec>,
}

impl SaveOptions {
    /// Parses the options of a writer. `format`: the format in the source's name (`coldframe_orc`), if any.
    pub fn parse(given: &BTreeMap<String, String>, format: Option<&str>) -> Result<Self> {
        let given = of_table(given);
        let get = |name: &str| given.get(name).copied();
        let no_format = || {
            Error::schema("option as is missing: give the format to write, as in .option(\"as\", \"rcfile\")")
        };
        let format = format.or(get("as")).ok_or_else(no_format)?;
        let given_path = get("path").ok_or_else(|| Error::schema("no path: give one to save()"))?;
        Ok(Self {
            path: path(given_path),
            format: format.to_owned(),
            storage: nested(&given, "storage_options")?,
            extra: format_options(&given, OF_SAVE, Some(format), Side::Write)?,
            schema: get("schema").map(schema).transpose()?,
        })
    }
}

/// Whether an option only concerns how a format is written.
fn is_of_writer(format: &str, name: &str) -> bool {
    let whole = name.split_once('.').map_or(name, |(whole, _)| whole);
    let own = formats().into_iter().find(|own| own.name() == format);
    let is_of =
        |side: Side| own.iter().any(|own| side.specs(own.as_ref()).iter().any(|spec| spec.has_name(whole)));
    is_of(Side::Write) && !is_of(Side::Open)
}

/// The format's own options. A mapping is given as JSON, or key by key as `serde_properties.field.delim`.
fn format_options(
    given: &Given<'_>,
    ours: &[&str],
    format: Option<&str>,
    side: Side,
) -> Result<BTreeMap<String, Value>> {
    let (mut extra, maps) = (BTreeMap::new(), mappings(side));
    for (name, text) in given {
        let (whole, key) =
            name.split_once('.').map_or((name.as_str(), None), |(whole, key)| (whole, Some(key)));
        if ours.contains(&name.as_str()) || NESTED.contains(&whole) || name == "schema" {
            continue;
        }
        // Options are in the order of their names, so a whole mapping (`a`) comes before its single keys
        // (`a.b`), which override it.
        match key.filter(|_| maps.contains(whole)) {
            Some(key) => put(&mut extra, whole, key, text),
            None => drop(extra.insert(name.clone(), parse_option(format, side, name, text)?)),
        }
    }
    Ok(extra)
}

/// Sets one key of a mapping.
fn put(extra: &mut BTreeMap<String, Value>, name: &str, key: &str, text: &str) {
    let whole = extra.entry(name.to_owned()).or_insert_with(|| Value::Map(Vec::new()));
    if let Value::Map(pairs) = whole {
        pairs.retain(|(known, _)| known != key);
        pairs.push((key.to_owned(), Value::from(text)));
    }
}

/// The names of the options that formats declare to be mappings.
fn mappings(side: Side) -> BTreeSet<&'static str> {
    let formats = formats();
    let specs = formats.iter().flat_map(|format| side.specs(format.as_ref()));
    let maps = specs.filter(|spec| matches!(spec.kind, Kind::Map { .. }));
    maps.flat_map(|spec| std::iter::once(spec.name).chain(spec.aliases.iter().copied())).collect()
}

fn open_options(given: &Given<'_>, format: Option<&str>) -> Result<OpenOptions> {
    let verify = truth("verify_checksums", given.get("verify_checksums").copied().unwrap_or("true"))?;
    let keys = nested(given, "keys")?.into_iter().map(|(name, hex)| Ok((name.clone(), key(&name, &hex)?)));
    Ok(OpenOptions {
        schema: given.get("schema").map(|text| schema(text)).transpose()?,
        skip_checksums: !verify,
        keys: keys.collect::<Result<_>>()?,
        // Spark's timestamps are microseconds, and nanoseconds cannot represent years such as 1 and 9999,
        // which many tables contain.
        microseconds: true,
        extra: format_options(given, OF_LOAD, format, Side::Open)?,
        ..OpenOptions::default()
    })
}

fn paths(given: &Given<'_>) -> Result<Vec<String>> {
    if let Some(text) = given.get("paths") {
        let expected =
            || Error::schema(format!("option paths: expected a JSON list of texts, found '{text}'"));
        let Json::Array(all) = json("paths", text)? else { return Err(expected()) };
        return all.iter().map(|item| item.as_str().map(path).ok_or_else(expected)).collect();
    }
    let path = given.get("path").map(|text| vec![path(text)]);
    path.ok_or_else(|| Error::schema("no path: give one to load(), or the option path or paths"))
}

/// A path as a user would write it: Spark's catalog writes local paths as `file:/x`.
pub fn path(text: &str) -> String {
    let local = text.strip_prefix("file:").filter(|rest| rest.starts_with('/') && !rest.starts_with("//"));
    local.unwrap_or(text).to_owned()
}

fn names(text: &str) -> Result<Vec<String>> {
    if !text.trim_start().starts_with('[') {
        return Ok(text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect());
    }
    match json("columns", text)? {
        Json::Array(all) => Ok(all.iter().map(plain).collect()),
        _ => Err(Error::schema(format!("option columns: expected a list of names, found '{text}'"))),
    }
}

fn nested(given: &Given<'_>, name: &str) -> Result<BTreeMap<String, String>> {
    let mut entries = BTreeMap::new();
    if let Some(text) = given.get(name) {
        let Json::Object(whole) = json(name, text)? else {
            return Err(Error::schema(format!(
                "option {name}: expected a JSON object, found {}",
                shown(name, text)
            )));
        };
        entries.extend(whole.iter().map(|(key, value)| (key.clone(), plain(value))));
    }
    let prefix = format!("{name}.");
    for (key, text) in given {
        if let Some(key) = key.strip_prefix(&prefix) {
            entries.insert(key.to_owned(), (*text).to_owned());
        }
    }
    Ok(entries)
}

fn json(name: &str, text: &str) -> Result<Json> {
    let parsed = serde_json::from_str(text);
    parsed.map_err(|why| Error::schema(format!("option {name}: {why} in {}", shown(name, text))))
}

/// An option's text for an error, without secrets.
fn shown(name: &str, text: &str) -> String {
    match name {
        "storage_options" | "keys" => format!("{} characters", text.chars().count()),
        _ => format!("'{text}'"),
    }
}

/// The text of a JSON string; any other JSON value as written.
fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn truth(name: &str, text: &str) -> Result<bool> {
    match text.to_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::schema(format!("option {name}: expected true or false, found '{text}'"))),
    }
}

fn size(name: &str, text: Option<&str>, default: u64) -> Result<u64> {
    let Some(text) = text else { return Ok(default) };
    options::size(text).filter(|size| *size > 0).ok_or_else(|| {
        Error::schema(format!("option {name}: expected a positive number, like 1000 or 64m, found '{text}'"))
    })
}

fn schema(text: &str) -> Result<SchemaSpec> {
    let Some(encoded) = text.strip_prefix(ARROW) else { return Ok(SchemaSpec::Ddl(text.to_owned())) };
    let wrong = |why: String| Error::schema(format!("option schema: not an Arrow schema: {why}"));
    let bytes = STANDARD.decode(encoded).map_err(|why| wrong(why.to_string()))?;
    let reader = arrow_ipc::reader::StreamReader::try_new(Cursor::new(bytes), None);
    Ok(SchemaSpec::Arrow(reader.map_err(|why| wrong(why.to_string()))?.schema()))
}

/// A key in hex digits, with optional white space.
fn key(name: &str, hex: &str) -> Result<Vec<u8>> {
    let wrong = || Error::invalid(format!("key {name}: expected hex digits"));
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let of = |pair: &[u8]| match pair {
        [high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            u8::from_str_radix(std::str::from_utf8(pair).unwrap_or_default(), 16).map_err(|_| wrong())
        }
        _ => Err(wrong()),
    };
    digits.chunks(2).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(given: &[(&str, &str)]) -> BTreeMap<String, String> {
        given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn parse(given: &[(&str, &str)]) -> Result<LoadOptions> {
        LoadOptions::parse(&texts(given), None)
    }

    #[test]
    fn a_table_has_options_for_writing_too() {
        let given = [("option.as", "rcfile"), ("serde", "binary"), ("codec", "zlib"), ("location", "/t")];
        let options = parse(&given).unwrap();
        assert_eq!((options.format.as_deref(), options.paths), (Some("rcfile"), vec!["/t".to_owned()]));
        assert_eq!(options.open.extra.keys().collect::<Vec<_>>(), ["serde"]);
    }

    #[test]
    fn load_options_are_parsed() {
        let options = parse(&[
            ("path", "/x"),
            ("Schema", "a int"),
            ("serde_properties.field.delim", "|"),
            ("serde_properties", r#"{"escape.delim": "\\"}"#),
            ("hive_version", "3.1"),
            ("max_depth", "7"),
            ("batch_rows", "8k"),
            ("columns", r#"["a,b", "c"]"#),
            ("keys.k", "00ff"),
            ("mode", "dropMalformed"),
        ])
        .unwrap();
        assert_eq!(options.columns.unwrap(), ["a,b", "c"]);
        assert_eq!((options.batch_rows, options.split_bytes), (8192, 128 << 20));
        assert_eq!(options.open.keys["k"], [0, 255]);
        assert_eq!(options.on_error, OnError::Skip);
        assert!(matches!(&options.open.schema, Some(SchemaSpec::Ddl(ddl)) if ddl == "a int"));
        let extra = &options.open.extra;
        assert_eq!(extra["hive_version"], Value::Str("3.1".into()));
        assert_eq!(extra["max_depth"], Value::Int(7));
        let properties = [("escape.delim", Value::Str("\\".into())), ("field.delim", Value::Str("|".into()))];
        assert_eq!(extra["serde_properties"], Value::map(properties));
        assert_eq!(extra.len(), 3);
        let several = parse(&[("paths", r#"["file:/a", "/b"]"#), ("columns", "a, b")]).unwrap();
        assert_eq!(
            (several.paths, several.columns.unwrap()),
            (vec!["/a".into(), "/b".into()], vec!["a".into(), "b".into()])
        );
    }

    #[test]
    fn damage_is_ignored_if_that_is_asked_for() {
        let ignore = ("ignoreCorruptFiles", "true");
        let of =
            |given: &[(&str, &str)]| parse(&[&[("path", "/x")], given].concat()).map(|made| made.on_error);
        assert_eq!(of(&[ignore]).unwrap(), OnError::Skip);
        assert_eq!(of(&[ignore, ("mode", "DROPMALFORMED"), ("damage", "/d")]).unwrap(), OnError::Skip);
        assert_eq!(of(&[("ignorecorruptfiles", "false")]).unwrap(), OnError::Raise);
        assert!(of(&[ignore, ("mode", "FAILFAST")]).unwrap_err().to_string().contains("contradicts"));
    }

    #[test]
    fn table_properties_are_not_options() {
        let options = parse(&[
            ("location", "file:/t"),
            ("provider", "coldframe"),
            ("owner", "x"),
            ("option.serde", "text"),
            ("option.batch_rows", "7"),
            ("batch_rows", "8"),
        ])
        .unwrap();
        assert_eq!((options.paths, options.batch_rows), (vec!["/t".to_owned()], 8));
        assert_eq!(options.open.extra.len(), 1);
    }

    #[test]
    fn invalid_options_are_errors_without_secrets() {
        for (given, expected) in [
            (("mode", "PERMISSIVE"), "mode 'PERMISSIVE': expected FAILFAST or DROPMALFORMED"),
            (("damage", "/nowhere"), "option damage needs mode DROPMALFORMED"),
            (
                ("split_bytes", "many"),
                "option split_bytes: expected a positive number, like 1000 or 64m, found 'many'",
            ),
            (("batch_rows", "0"), "option batch_rows: expected a positive number"),
            (("batch_rows", "99999999999t"), "option batch_rows: expected a positive number"),
            (("maxFilesPerTrigger", "-1"), "option maxFilesPerTrigger: expected a positive number"),
            (("unify", "perhaps"), "option unify: expected true or false, found 'perhaps'"),
            (("pathGlobFiter", "*"), "no option `pathglobfiter`: did you mean pathGlobFilter?"),
            (("ignore_missing_files", "true"), "did you mean ignoreMissingFiles?"),
            (("ignoreMissingFiles", "?"), "option ignoreMissingFiles: expected true or false"),
            (("paths", "{}"), "option paths: expected a JSON list of texts, found '{}'"),
            (
                ("storage_options", "[\"secret\"]"),
                "option storage_options: expected a JSON object, found 10 characters",
            ),
            (("keys", "{\"a\": \"0g\"}"), "key a: expected hex digits"),
            (("schema", "arrow:!"), "option schema: not an Arrow schema"),
        ] {
            let message = parse(&[("path", "/x"), given]).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
        assert!(parse(&[]).unwrap_err().to_string().contains("no path"));
    }
}
