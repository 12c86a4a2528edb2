//! The metadata of a table.

use coldframe_core::{Result, Value};

use crate::layout::policy::{Family, attributes};
use crate::open::OpenTable;
use crate::regions::alive::Region;

/// The contents of the table's descriptors, regions and snapshots as nested values.
pub(crate) fn metadata(table: &OpenTable) -> Result<Value> {
    let shared = &table.shared;
    let names = |names: &[String]| Value::List(names.iter().map(|n| n.as_str().into()).collect());
    let tables: Vec<String> = table.tables.iter().map(ToString::to_string).collect();
    let snapshot = table.snapshot.as_ref().map_or(Value::Null, |s| {
        Value::map([("name", Value::from(s.name.as_str())), ("created_ms", s.created.into())])
    });
    Ok(Value::map([
        ("table", Value::from(shared.table.to_string())),
        ("snapshot", snapshot),
        ("attributes", Value::map(attributes(&table.schema.attributes).map(|(k, v)| (k, Value::from(v))))),
        ("families", Value::List(shared.families.iter().map(family).collect())),
        ("regions", Value::List(table.regions.iter().map(|r| region(r)).collect())),
        ("regions_by", table.region_source.name().into()),
        (
            "missing",
            Value::List(
                table.missing.iter().map(|d| Value::from(format!("{}: {}", d.structure, d.reason))).collect(),
            ),
        ),
        ("unknown_regions", names(&table.unknown)),
        ("disabled", table.disabled.into()),
        ("as_of_ms", table.options.now.into()),
        ("tables", names(&tables)),
        ("snapshots", names(&table.snapshots)),
        ("wal", logs(table)?),
    ]))
}

/// Maximum bytes of logs that are read only to count cells.
const MAX_COUNTED_BYTES: u64 = 256 << 20;

/// The logs, and the number of cells that exist only in them.
fn logs(table: &OpenTable) -> Result<Value> {
    let Some(logs) = table.logs.as_ref().filter(|_| table.snapshot.is_none()) else { return Ok(Value::Null) };
    let servers = logs.of_servers()?;
    let (mut recovered, mut store_files) = (Vec::new(), Vec::new());
    for region in &table.regions {
        recovered.extend(logs.recovered(region)?);
        for family in &table.shared.families {
            store_files.extend(table.shared.recovered(region, family)?);
        }
    }
    let sum = |files: &[(String, u64)]| files.iter().map(|(_, len)| *len).fold(0, u64::saturating_add);
    let bytes = sum(&servers).saturating_add(sum(&recovered));
    let cells = match bytes <= MAX_COUNTED_BYTES {
        true => logs.count(&table.regions, table.order()).ok(),
        false => None,
    };
    // A server that dies may leave a log that ends within an edit. Such an edit was not acknowledged to a
    // client.
    let cut = match bytes <= MAX_COUNTED_BYTES {
        true => logs.cut().ok(),
        false => None,
    };
    let cut_off = cut.map(|cut| {
        let entry =
            |(path, at): (String, u64)| Value::map([("log", Value::from(path)), ("offset", at.into())]);
        Value::List(cut.into_iter().map(entry).collect())
    });
    let paths =
        |files: Vec<(String, u64)>| Value::List(files.into_iter().map(|(path, _)| path.into()).collect());
    Ok(Value::map([
        ("read", Value::from(table.options.wal)),
        ("logs", paths(servers)),
        ("recovered_edits", paths(recovered)),
        ("recovered_hfiles", paths(store_files)),
        ("bytes", bytes.into()),
        ("cells", cells.into()),
        ("cut_off", cut_off.unwrap_or(Value::Null)),
        // Given if the root directory lacks its folder of logs.
        ("missing", logs.first_missing(&table.regions)?.into()),
    ]))
}

fn family(family: &Family) -> Value {
    let attributes = family.attributes.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str())));
    Value::map([("name", Value::from(family.name.as_str())), ("attributes", Value::map(attributes))])
}

fn region(region: &Region) -> Value {
    Value::map([
        ("name", Value::from(region.encoded.as_str())),
        ("id", region.id.into()),
        ("start", Value::text_or_bytes(&region.start)),
        ("end", Value::text_or_bytes(&region.end)),
    ])
}
