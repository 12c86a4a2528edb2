//! What a table says of itself.

use coldframe_core::Value;

use crate::alive::Region;
use crate::layout::policy::{Family, attributes};
use crate::open::Found;

/// Everything that descriptors, regions and snapshots say.
pub(crate) fn metadata(found: &Found) -> Value {
    let shared = &found.shared;
    let names = |names: &[String]| Value::List(names.iter().map(|n| n.as_str().into()).collect());
    let tables: Vec<String> = found.tables.iter().map(ToString::to_string).collect();
    let snapshot = found.snapshot.as_ref().map_or(Value::Null, |s| {
        Value::map([("name", Value::from(s.name.as_str())), ("created_ms", s.created.into())])
    });
    Value::map([
        ("table", Value::from(shared.table.to_string())),
        ("snapshot", snapshot),
        ("attributes", Value::map(attributes(&found.schema.attributes).map(|(k, v)| (k, Value::from(v))))),
        ("families", Value::List(shared.families.iter().map(family).collect())),
        ("regions", Value::List(found.regions.iter().map(|r| region(r)).collect())),
        ("regions_by", found.known.name().into()),
        (
            "missing",
            Value::List(
                found.missing.iter().map(|d| Value::from(format!("{}: {}", d.structure, d.reason))).collect(),
            ),
        ),
        ("disabled", found.disabled.into()),
        ("as_of_ms", found.options.now.into()),
        ("tables", names(&tables)),
        ("snapshots", names(&found.snapshots)),
    ])
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
