//! Returns the metadata of a file as plain data.

use coldframe_core::Value;

use crate::layout::proto::Encryption;
use crate::layout::stripe::Stripe;
use crate::layout::types::{Column, Kind};
use crate::open::Shape;

/// `Footer.writer`.
const WRITERS: [&str; 6] = ["orc-java", "orc-c++", "presto", "scritchley-go", "trino", "cudf"];

/// The name for a number, or the number.
pub(crate) fn named(names: &[&str], number: u32) -> Value {
    match usize::try_from(number).ok().and_then(|n| names.get(n)) {
        Some(name) => (*name).into(),
        None => number.into(),
    }
}

/// Everything in the tail.
pub(crate) fn metadata(shape: &Shape) -> Value {
    let tail = &shape.tail;
    let (footer, postscript) = (&tail.footer, &tail.postscript);
    let (major, minor) = tail.version();
    let stripes = shape.stripes.iter().map(describe_stripe).collect::<Vec<_>>();
    let types = shape.tree.columns().iter().map(describe_column).collect::<Vec<_>>();
    let user = footer.metadata.iter().map(|item| {
        (item.name().to_owned(), item.value.as_deref().map_or(Value::Null, Value::text_or_bytes))
    });
    let mut out = vec![
        ("version".to_owned(), format!("{major}.{minor}").into()),
        ("writer_version".to_owned(), postscript.writer_version.into()),
        ("writer".to_owned(), footer.writer.map_or(Value::Null, |w| named(&WRITERS, w))),
        ("software_version".to_owned(), footer.software_version.clone().into()),
        ("compression".to_owned(), tail.compression.name().into()),
        ("compression_block_size".to_owned(), postscript.compression_block_size.into()),
        ("rows".to_owned(), footer.number_of_rows.into()),
        ("row_index_stride".to_owned(), footer.row_index_stride.into()),
        ("calendar".to_owned(), named(&["unknown", "hybrid", "proleptic"], footer.calendar())),
        ("header_length".to_owned(), footer.header_length.into()),
        ("content_length".to_owned(), footer.content_length.into()),
        ("footer_length".to_owned(), postscript.footer_length.into()),
        ("metadata_length".to_owned(), postscript.metadata_length.into()),
        ("stripe_statistics_length".to_owned(), postscript.stripe_statistics_length.into()),
        ("stripes".to_owned(), Value::List(stripes)),
        ("types".to_owned(), Value::List(types)),
        ("user_metadata".to_owned(), Value::Map(user.collect())),
    ];
    if let Some(encryption) = &footer.encryption {
        out.push(("encryption".to_owned(), describe_encryption(shape, encryption)));
    }
    if let Some(recovered) = shape.recovered {
        let recovered = Value::map([
            ("stripes_found", Value::from(shape.stripes.len())),
            ("all_proved_by", recovered.proof.into()),
        ]);
        out.push(("recovered".to_owned(), recovered));
    }
    Value::Map(out)
}

fn describe_stripe(stripe: &Stripe) -> Value {
    Value::map([
        ("offset", stripe.bytes.start.into()),
        ("index_length", stripe.index_length.into()),
        ("data_length", (stripe.footer.start - stripe.bytes.start - stripe.index_length).into()),
        ("footer_length", (stripe.footer.end - stripe.footer.start).into()),
        ("rows", Value::from(stripe.rows)),
    ])
}

fn describe_column(column: &Column) -> Value {
    let mut out = vec![
        ("column".to_owned(), column.id.into()),
        ("path".to_owned(), column.path.clone().into()),
        ("kind".to_owned(), Value::from(column.kind.name())),
    ];
    if column.kind == Kind::Decimal {
        out.push(("precision".to_owned(), column.precision.into()));
        out.push(("scale".to_owned(), column.scale.into()));
    }
    if let Some(length) = column.maximum_length.filter(|n| *n > 0) {
        out.push(("maximum_length".to_owned(), length.into()));
    }
    if !column.attributes.is_empty() {
        let pairs = column.attributes.iter().map(|(k, v)| (k.clone(), v.clone().into()));
        out.push(("attributes".to_owned(), Value::Map(pairs.collect())));
    }
    Value::Map(out)
}

fn describe_encryption(shape: &Shape, encryption: &Encryption) -> Value {
    let keys = encryption.key.iter().map(|key| {
        Value::map([
            ("name", Value::from(key.key_name())),
            ("version", key.key_version().into()),
            ("algorithm", named(&["unknown", "AES-CTR-128", "AES-CTR-256"], key.algorithm())),
        ])
    });
    let masks = encryption.mask.iter().map(|mask| {
        let columns = mask.columns.iter().map(|c| Value::from(*c)).collect::<Vec<_>>();
        Value::map([("name", mask.name().into()), ("columns", Value::List(columns))])
    });
    let variants = encryption.variants.iter().map(|variant| {
        let root = usize::try_from(variant.root()).unwrap_or(usize::MAX);
        Value::map([
            ("root", Value::from(variant.root())),
            ("path", shape.tree.get(root).map(|c| c.path.clone()).into()),
            ("key", variant.key().into()),
            ("readable", Value::Bool(shape.encryption.missing_key(root).is_none())),
        ])
    });
    let masked = shape.tree.columns().iter().filter_map(|c| {
        let key = shape.encryption.missing_key(c.id)?;
        Some(Value::map([("column", c.path.as_str()), ("key", key)].map(|(k, v)| (k, Value::from(v)))))
    });
    Value::map([
        ("keys", Value::List(keys.collect())),
        ("masks", Value::List(masks.collect())),
        ("variants", Value::List(variants.collect())),
        ("masked_columns", Value::List(masked.collect())),
    ])
}
