//! Properties of tables and partitions that decide how their files are read.

use super::Properties;
use crate::dataset::partition::unescaped;
use crate::formats;

/// The property of Spark's own tables that has the format.
pub const PROVIDER: &str = "spark.sql.sources.provider";

/// The property of tables whose columns Hive matches by position, also in files that have names.
pub const POSITIONS: &str = "orc.force.positional.evolution";

/// The format of tables that Hudi registers.
const HUDI: &str = "hudi";

/// Whether Spark reads such a table without its logs.
const READ_OPTIMIZED: &str = "hoodie.query.as.ro.table";

/// The properties of a table or partition that mean something to a SerDe.
pub fn of_serde(parameters: &Properties) -> Properties {
    let means = |name: &str| {
        let starts = ["serialization.", "hive.serialization.", "hive.lazysimple."];
        name.ends_with(".delim")
            || name == "timestamp.formats"
            || starts.iter().any(|start| name.starts_with(start))
    };
    let of = |(name, text): (&String, &String)| means(name).then(|| (name.clone(), text.clone()));
    parameters.iter().filter_map(of).collect()
}

/// Where a table's files are; `None` if it has no files: views, HBase tables and the like.
pub fn location_of_files<'a>(
    kind: &str,
    location: Option<&'a str>,
    parameters: &'a Properties,
    serde_properties: &'a Properties,
) -> Option<&'a str> {
    let handler = parameters.get("storage_handler").is_some_and(|handler| !handler.is_empty());
    if kind == "VIRTUAL_VIEW" || handler {
        return None;
    }
    // For tables that Hive cannot read, Spark sets a placeholder as the location.
    let of_spark = parameters.get(PROVIDER).and_then(|_| serde_properties.get("path"));
    of_spark.map(String::as_str).or(location)
}

/// Whether the metastore has the partitions of a partitioned table. The metastore may lack the partitions of
/// tables that Spark created.
pub fn are_registered(parameters: &Properties) -> bool {
    !parameters.contains_key(PROVIDER)
        || parameters.get("spark.sql.partitionProvider").is_some_and(|provider| provider == "catalog")
}

/// Whether Hive matches a table's columns by position even in files that have names.
pub fn is_by_position(parameters: &Properties) -> bool {
    parameters.get(POSITIONS).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"))
}

/// Whether a table's directories hold base and delta directories.
pub fn is_transactional(parameters: &Properties) -> bool {
    parameters.get("transactional").is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// The format by the table's provider or input format: one of our formats, or else the name of the class.
pub fn declared_format(input_format: Option<&str>, parameters: &Properties) -> String {
    if let Some(provider) = parameters.get(PROVIDER) {
        return provider.to_lowercase();
    }
    let name = input_format.unwrap_or_default();
    if is_class_of_hudi(name) {
        return HUDI.to_owned();
    }
    let name = name.rsplit('.').next().unwrap_or(name);
    let format = readable().into_iter().find(|(class, _)| name.ends_with(class));
    format.map_or_else(|| name.to_owned(), |(_, format)| format.to_owned())
}

/// The view of a Hudi table that a definition shows; `None` if its table is not one of Hudi. Hudi registers a table that
/// merges on read twice: as `t_ro`, without its logs, and as `t_rt`.
pub fn hudi_view(
    input_format: Option<&str>,
    parameters: &Properties,
    serde_properties: &Properties,
) -> Option<&'static str> {
    let class = input_format.filter(|class| is_class_of_hudi(class));
    let of_spark = parameters.get(PROVIDER).is_some_and(|provider| provider.eq_ignore_ascii_case(HUDI));
    if class.is_none() && !of_spark {
        return None;
    }
    let stated = serde_properties.get(READ_OPTIMIZED).or_else(|| parameters.get(READ_OPTIMIZED));
    let without_logs = match stated {
        Some(text) => text.eq_ignore_ascii_case("true"),
        None => class.is_some_and(|class| !class.contains("Realtime")),
    };
    Some(if without_logs { "read_optimized" } else { "snapshot" })
}

/// Whether an input format is one of Hudi, also under its old name.
fn is_class_of_hudi(class: &str) -> bool {
    ["org.apache.hudi.", "com.uber.hoodie."].iter().any(|package| class.starts_with(package))
}

/// Our formats by the names of Hive's input formats.
fn readable() -> Vec<(&'static str, &'static str)> {
    let of = |format: std::sync::Arc<dyn crate::Format>| {
        let name = format.name();
        format.capabilities().input_formats.iter().map(move |class| (*class, name))
    };
    formats().into_iter().flat_map(of).collect()
}

/// Whether a format that a metastore states is a format that is read.
pub fn is_read(format: &str) -> bool {
    readable().iter().any(|(_, known)| *known == format)
}

/// Whether the outermost folders name a value of each key: `dt=2014-01-01`, `region=asia%2Fpacific`. More folders may
/// follow.
pub fn are_folders_of<'a>(keys: impl ExactSizeIterator<Item = &'a str>, folders: &[&str]) -> bool {
    let is_of =
        |(folder, key): (&&str, &str)| folder.split_once('=').is_some_and(|(name, _)| unescaped(name) == key);
    folders.len() >= keys.len() && folders.iter().zip(keys).all(is_of)
}
