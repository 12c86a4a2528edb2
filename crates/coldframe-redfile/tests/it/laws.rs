//! The laws of every format, for Redfile. Damage costs a page or, if it is in a page header, the rest of the
//! chunk; and all of it is recorded.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_wrap,
    clippy::panic,
    reason = "a test that cannot go on has failed; rows are few enough"
)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use coldframe_core::{Format, Limits, Node, OpenOptions, Result, Source, TableFile, Value};
use coldframe_redfile::RedfileFormat;
use coldframe_redfile::metadata::FileMetaData;
use coldframe_redfile::write::{Dialect, WriteOptions, Writer};
use coldframe_testing::fixture;
use coldframe_testing::laws::{self, AllowedLoss, Damaged, Subject, Units};

const ROWS: usize = 300;

fn table() -> RecordBatch {
    let rows = || 0..ROWS;
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(rows().map(|i| i as i64)));
    let texts: ArrayRef =
        Arc::new(rows().map(|i| (i % 7 != 0).then(|| format!("row {i}"))).collect::<StringArray>());
    let item = Arc::new(Field::new("element", DataType::Int64, false));
    let values: Vec<i64> = rows().flat_map(|i| (0..i % 4).map(move |k| (i * 10 + k) as i64)).collect();
    let offsets = OffsetBuffer::from_lengths(rows().map(|i| i % 4));
    let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::new(Int64Array::from(values)), None));
    RecordBatch::try_from_iter_with_nullable([
        ("id", id, false),
        ("text", texts, true),
        ("list", lists, false),
    ])
    .unwrap()
}

fn write(batch: &RecordBatch, options: WriteOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap().0
}

fn opener(options: OpenOptions) -> impl Fn(Source) -> Result<Arc<dyn TableFile>> + Send + Sync + 'static {
    move |source| RedfileFormat.open(&source, &options)
}

fn recovering() -> OpenOptions {
    let extra = BTreeMap::from([("recover".to_owned(), Value::Bool(true))]);
    OpenOptions { extra, ..OpenOptions::default() }
}

/// The pages of leaves that are not repeated: header, bytes, and the rows of each page.
struct Page {
    header: Range<u64>,
    bytes: Range<u64>,
    rows: Range<usize>,
}

fn detail(node: &Node, key: &str) -> usize {
    match node.detail.iter().find(|(k, _)| k == key) {
        Some((_, Value::Int(n))) => usize::try_from(*n).unwrap(),
        Some((_, Value::UInt(n))) => usize::try_from(*n).unwrap(),
        other => panic!("{key} of {}: {other:?}", node.name),
    }
}

fn pages(tree: &Node) -> Vec<Page> {
    let (mut pages, mut first) = (Vec::new(), 0);
    for group in tree.children.iter().filter(|n| n.name.starts_with("row group ")) {
        for chunk in group.children.iter().filter(|n| !n.name.contains("`list")) {
            let mut row = first;
            for page in chunk.children.iter().filter(|n| n.name.starts_with("page ")) {
                let [header, data] = [0, 1].map(|i| &page.children[i]);
                let rows = detail(data, "num_values");
                pages.push(Page {
                    header: header.bytes.clone(),
                    bytes: data.bytes.clone(),
                    rows: row..row + rows,
                });
                row += rows;
            }
        }
        first += detail(group, "rows");
    }
    pages
}

/// What damage may cost: a page; after a bad page header, the rest of the chunk; for lists, whose rows can be
/// seen only from levels, the row group. Footers have no checksum, and chunks are located only by offsets, so
/// if bytes move, all chunks after them are lost.
fn unit(tree: &Node) -> impl Fn(&Damaged) -> AllowedLoss + use<> {
    let (units, pages) = (Units::named(tree, "row group ", "rows"), pages(tree));
    move |damaged| {
        let group = units.rows(&damaged.bytes);
        let outside = AllowedLoss::rows(0..0);
        if group.is_empty() {
            return AllowedLoss::file();
        }
        if damaged.moves() {
            // A file that is cut off has no footer.
            return AllowedLoss::rows(group.start..ROWS).and(match damaged.kind {
                laws::Kind::Cut => AllowedLoss::file(),
                _ => outside,
            });
        }
        let touches = |bytes: &Range<u64>| bytes.start < damaged.bytes.end && damaged.bytes.start < bytes.end;
        let begins = |p: &&Page| p.header.start <= damaged.bytes.start && damaged.bytes.start < p.bytes.end;
        match pages.iter().find(begins) {
            Some(page) if touches(&page.header) => AllowedLoss::rows(page.rows.start..group.end),
            Some(page) => AllowedLoss::rows(page.rows.clone()),
            None => AllowedLoss::rows(group),
        }
    }
}

fn obey(name: &str, options: WriteOptions) {
    let crc = options.crc;
    let options = WriteOptions { page_bytes: 200, row_group_rows: 110, ..options };
    let subject = Subject::new(name, write(&table(), options), opener(OpenOptions::default()));
    let subject = if crc { subject } else { subject.unsummed() };
    let unit = unit(&subject.tree());
    subject.unit(unit).counted().obey();
}

#[test]
fn the_laws_hold_for_pages_with_checksums() {
    obey("redelm-f", WriteOptions { crc: true, ..WriteOptions::default() });
}

#[test]
fn the_laws_hold_for_pages_of_the_other_layout() {
    obey("spec", WriteOptions { crc: true, dialect: Dialect::Spec, ..WriteOptions::default() });
}

#[test]
fn the_laws_hold_for_pages_without_checksums() {
    obey("without crc", WriteOptions::default());
}

fn doubled(base: usize, file: impl Fn(usize) -> Vec<u8>) -> Vec<Bytes> {
    [base, 2 * base, 4 * base].map(|n| file(n).into()).to_vec()
}

/// In a row of many columns, each column is opened, inspected and read by itself.
#[test]
fn work_grows_as_the_columns_do() {
    let files = doubled(2000, |columns| {
        let fields: Vec<Field> =
            (0..columns).map(|i| Field::new(format!("c{i}"), DataType::Utf8, true)).collect();
        let text = Arc::new(StringArray::from(vec!["a"])) as ArrayRef;
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![text; columns]).unwrap();
        write(&batch, WriteOptions::default())
    });
    laws::assert_linear("columns", &files, &laws::opener(opener(OpenOptions::default())));
    laws::assert_bounded("columns", &files[2], &laws::opener(opener(OpenOptions::default())));
}

/// In columns of nothing but nulls, a page of a few bytes has four million nulls, and all these pages are
/// open at the same time.
#[test]
fn columns_of_nulls_take_no_memory_for_their_levels() {
    const ROWS: usize = 4 << 20;
    let fields: Vec<Field> = (0..32).map(|i| Field::new(format!("c{i}"), DataType::Int32, true)).collect();
    let nulls = arrow_array::new_null_array(&DataType::Int32, ROWS);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![nulls; 32]).unwrap();
    let file = Bytes::from(write(&batch, WriteOptions::default()));
    assert!(file.len() < 10_000, "{}", file.len());
    let open = opener(OpenOptions::default());
    let table = open(coldframe_testing::fixture::source(file.clone())).unwrap();
    assert_eq!(table.row_count(), Some(ROWS as u64));
    laws::assert_bounded("nulls", &file, &laws::opener(open));
}

/// Files full of bytes that look like the end of a footer, or like pages.
#[test]
fn work_grows_as_hostile_files_do() {
    let open = laws::opener(opener(recovering()));
    let n = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
    let schema = Some(coldframe_core::SchemaSpec::Arrow(n));
    let with_schema = laws::opener(opener(OpenOptions { schema, ..recovering() }));
    for (name, part) in [
        ("magics", &b"RED1"[..]),
        ("magics and more", b"RED1\xff"),
        ("footers", b"\x15\x02\0\0\0\x06\0\0\0RED1"),
    ] {
        let files =
            doubled((1 << 20) / part.len(), |times| [b"RED1", part.repeat(times).as_slice()].concat());
        for open in [&open, &with_schema] {
            laws::assert_linear(name, &files, open);
            laws::assert_bounded(name, &files[2], open);
        }
    }
}

/// A footer may list the same row group many times.
#[test]
fn row_groups_that_share_their_bytes_are_not_all_read() {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..100_000).map(|i| i * i * 7919)));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", values, false)]).unwrap();
    let once = write(&batch, WriteOptions::default());
    let (mut metadata, start) = footer(&once);
    metadata.row_groups = vec![metadata.row_groups[0].clone(); 20_000];
    let file = with_footer(&once, &metadata, start);
    laws::assert_bounded("one row group", &file, &laws::opener(opener(OpenOptions::default())));
}

/// The footer of a file, and where it begins.
fn footer(file: &[u8]) -> (FileMetaData, usize) {
    let end = file.len() - 8;
    let len = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    let start = end - len;
    (FileMetaData::parse(&file[start..end], start as u64, &Limits::default()).unwrap(), start)
}

fn with_footer(file: &[u8], metadata: &FileMetaData, start: usize) -> Bytes {
    let footer = metadata.encode();
    let len = u32::try_from(footer.len()).unwrap().to_le_bytes();
    Bytes::from([&file[..start], &footer, &len, b"RED1"].concat())
}

/// Rows are returned in the order in which the footer lists their groups, wherever the groups are in the
/// file; this also holds for splits.
#[test]
fn row_groups_in_another_order_than_in_the_file() {
    let file = write(&table(), WriteOptions { row_group_rows: 40, ..WriteOptions::default() });
    let (mut metadata, start) = footer(&file);
    assert_eq!(metadata.row_groups.len(), 8);
    let all = metadata.row_groups.clone();
    for (order, splits) in
        [([0, 1, 2, 3, 4, 5, 6, 7], 8), ([0, 2, 1, 3, 4, 5, 7, 6], 4), ([7, 6, 5, 4, 3, 2, 1, 0], 1)]
    {
        metadata.row_groups = order.iter().map(|i| all[*i].clone()).collect();
        let file = with_footer(&file, &metadata, start);
        let len = file.len() as u64;
        let table = RedfileFormat.open(&fixture::source(file), &OpenOptions::default()).unwrap();
        laws::assert_tolerant(table.as_ref(), Some(len), &[1, len / 4]);
        assert_eq!(table.splits(1).unwrap().len(), splits);
    }
}
