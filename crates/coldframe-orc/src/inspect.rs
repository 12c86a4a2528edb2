//! What a file says of itself, and where each of its bytes belongs.

use std::ops::Range;

use coldframe_core::{Damage, Error, Node, Result, Value};

use crate::file::Shape;
use crate::stripe::{StreamKind, Stripe, StripeLayout};
use crate::types::{Column, Kind};

/// `Footer.writer`.
const WRITERS: [&str; 6] = ["orc-java", "orc-c++", "presto", "scritchley-go", "trino", "cudf"];
/// `ColumnEncoding.kind`.
const ENCODINGS: [&str; 4] = ["DIRECT", "DICTIONARY", "DIRECT_V2", "DICTIONARY_V2"];

fn named(names: &[&str], number: u32) -> Value {
    match usize::try_from(number).ok().and_then(|n| names.get(n)) {
        Some(name) => (*name).into(),
        None => number.into(),
    }
}

/// Everything that the tail says.
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

fn describe_encryption(shape: &Shape, stated: &crate::proto::Encryption) -> Value {
    let keys = stated.key.iter().map(|key| {
        Value::map([
            ("name", Value::from(key.key_name())),
            ("version", key.key_version().into()),
            ("algorithm", named(&["unknown", "AES-CTR-128", "AES-CTR-256"], key.algorithm())),
        ])
    });
    let masks = stated.mask.iter().map(|mask| {
        let columns = mask.columns.iter().map(|c| Value::from(*c)).collect::<Vec<_>>();
        Value::map([("name", mask.name().into()), ("columns", Value::List(columns))])
    });
    let variants = stated.variants.iter().map(|variant| {
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

/// The layout.
pub(crate) fn tree(shape: &Shape) -> Result<Node> {
    let tail = &shape.tail;
    let (major, minor) = tail.version();
    let mut root = Node::new("file", 0..tail.file_len)
        .with("version", format!("{major}.{minor}"))
        .with("compression", tail.compression.name())
        .with("rows", tail.footer.number_of_rows);
    let mut parts: Vec<Node> = Vec::new();
    let head = shape.source.read(0..tail.file_len.min(3))?;
    if head == crate::tail::MAGIC {
        parts.push(Node::new("magic", 0..3));
    }
    for stripe in &shape.stripes {
        parts.push(stripe_node(shape, stripe)?);
    }
    parts.push(Node::new("stripe statistics", tail.stripe_statistics_bytes.clone()));
    parts.push(Node::new("metadata", tail.metadata_bytes.clone()));
    parts.push(Node::new("footer", tail.footer_bytes.clone()).with("stripes", shape.stripes.len()));
    let last = tail.postscript_bytes.end..tail.file_len;
    parts.push(Node::new("postscript", tail.postscript_bytes.clone()));
    parts.push(Node::new("postscript length", last));
    parts.sort_by_key(|n| n.bytes.start);
    for part in parts {
        push_apart(&mut root, part);
    }
    root.fill_gaps("gap");
    Ok(root)
}

/// Adds a part unless it overlaps what is there: contradictions are [`contradictions`]' to tell.
fn push_apart(parent: &mut Node, part: Node) {
    let end = parent.children.last().map_or(parent.bytes.start, |n| n.bytes.end);
    if part.bytes.start >= end && part.bytes.end <= parent.bytes.end {
        parent.push(part);
    }
}

fn stripe_node(shape: &Shape, stripe: &Stripe) -> Result<Node> {
    let mut node = Node::new(stripe.name(), stripe.bytes.clone())
        .with("rows", stripe.rows)
        .with("index_length", stripe.index_length);
    let layout = match layout(shape, stripe) {
        Ok(layout) => layout,
        Err(e) if e.is_damage() => {
            node.children.push(Node::new("streams", stripe.bytes.start..stripe.footer.start));
            node.children
                .push(Node::new("stripe footer", stripe.footer.clone()).with("damage", e.to_string()));
            return Ok(node);
        }
        Err(e) => return Err(e),
    };
    if let Some(zone) = &layout.writer_timezone {
        node = node.with("writer_timezone", zone.clone());
    }
    let mut streams: Vec<_> = layout.streams.iter().collect();
    streams.sort_by_key(|s| s.bytes.start);
    for stream in streams {
        let kind = StreamKind::from_number(stream.kind);
        let name = kind.map_or_else(|| format!("stream of kind {}", stream.kind), |k| k.name().to_owned());
        let path = shape.tree.get(stream.column).map(|c| c.path.clone());
        let mut part = Node::new(name, stream.bytes.clone()).with("column", stream.column).with("path", path);
        if kind == Some(StreamKind::Data) {
            let encoding = layout.encoding(stream.column);
            part = part.with("encoding", named(&ENCODINGS, encoding.kind()));
            if encoding.dictionary_size() > 0 {
                part = part.with("dictionary_size", encoding.dictionary_size());
            }
        }
        if let Some(variant) = stream.variant {
            part = part.with("encryption_variant", variant);
        }
        push_apart(&mut node, part);
    }
    push_apart(&mut node, Node::new("stripe footer", stripe.footer.clone()));
    node.fill_gaps("unused");
    Ok(node)
}

fn layout(shape: &Shape, stripe: &Stripe) -> Result<StripeLayout> {
    let columns = shape.tree.columns().len();
    let (compression, limits) = (shape.tail.compression, &shape.options.limits);
    StripeLayout::read(shape.source.as_ref(), stripe, compression, columns, &shape.encryption, limits)
}

/// Where parts of the file disagree.
pub(crate) fn contradictions(shape: &Shape) -> Result<Vec<Damage>> {
    let mut found = Vec::new();
    let mut add = |bytes: Range<u64>, e: Error| found.push(Damage::from_error(&e, bytes, None));
    let tail = &shape.tail;
    let rows: u64 = shape.stripes.iter().fold(0u64, |n, s| n.saturating_add(s.rows));
    if let Some(stated) = tail.footer.number_of_rows.filter(|stated| *stated != rows) {
        let e = Error::corrupt(format!("expected {stated} rows, found stripes of {rows}"));
        add(tail.footer_bytes.clone(), e.within("footer"));
    }
    let mut stripes: Vec<&Stripe> = shape.stripes.iter().collect();
    stripes.sort_by_key(|s| s.bytes.start);
    let data_end = tail.stripe_statistics_bytes.start;
    let mut end = 0;
    for stripe in stripes {
        if stripe.bytes.start < end || stripe.bytes.end > data_end {
            let e = Error::corrupt(format!(
                "expected a stripe in {end}..{data_end}, found it in {}..{}",
                stripe.bytes.start, stripe.bytes.end
            ));
            add(stripe.bytes.clone(), e.within(stripe.name()));
        }
        end = end.max(stripe.bytes.end);
        match layout(shape, stripe) {
            Ok(layout) => {
                let used = layout.streams.iter().map(|s| s.bytes.end).max().unwrap_or(stripe.bytes.start);
                if used < stripe.footer.start {
                    let e = Error::corrupt(format!(
                        "expected streams to byte {}, found them to byte {used}",
                        stripe.footer.start
                    ));
                    add(used..stripe.footer.start, e.within(stripe.name()));
                }
                for stream in &layout.streams {
                    if let Err(e) = check_index(shape, stripe, stream) {
                        if !e.is_damage() {
                            return Err(e);
                        }
                        add(stream.bytes.clone(), e.within(stripe.name()));
                    }
                }
            }
            // The scan has told already.
            Err(e) if e.is_damage() => {}
            Err(e) => return Err(e),
        }
    }
    if let Err(e) = shape.tail.read_metadata(shape.source.as_ref(), &shape.options.limits) {
        if !e.is_damage() {
            return Err(e);
        }
        add(tail.metadata_bytes.clone(), e);
    }
    Ok(found)
}

/// An index stream must decode: a scan without a filter does not read it.
fn check_index(shape: &Shape, stripe: &Stripe, stream: &crate::stripe::StreamPlace) -> Result<()> {
    let readable = stream.variant == shape.encryption.variant_of(stream.column) || stream.variant.is_none();
    if !readable || stream.bytes.is_empty() {
        return Ok(());
    }
    let reader = crate::index::IndexReader {
        source: shape.source.as_ref(),
        compression: shape.tail.compression,
        encryption: &shape.encryption,
        limits: &shape.options.limits,
    };
    match StreamKind::from_number(stream.kind) {
        Some(StreamKind::RowIndex) => reader.read::<crate::proto::RowIndex>(stripe, &[stream]).map(drop),
        Some(StreamKind::BloomFilter | StreamKind::BloomFilterUtf8) => {
            reader.read::<crate::proto::BloomFilterIndex>(stripe, &[stream]).map(drop)
        }
        _ => Ok(()),
    }
}
