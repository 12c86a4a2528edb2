//! The traits suffice for a file whose footer lists its units, for a file whose units are found by walking
//! through the file, and for a table of several files. The scan (filter, projection, limit, damage) treats
//! all three alike.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use coldframe_core::*;
use coldframe_encoding::Cursor;

/// A unit as stored: the number of rows (u32), a byte that must be 0, then a pair (k i64, v i64) for each
/// row.
fn unit_bytes(rows: Range<i64>) -> Vec<u8> {
    let mut out = u32::try_from(rows.end - rows.start).unwrap().to_be_bytes().to_vec();
    out.push(0);
    for k in rows {
        out.extend(k.to_be_bytes());
        out.extend((k * k).to_be_bytes());
    }
    out
}

fn unit_len(rows: u32) -> u64 {
    5 + u64::from(rows) * 16
}

#[derive(Debug)]
struct DecodeRows {
    decode: SchemaRef,
    offset: u64,
    batch_rows: usize,
}

impl DecodeUnit for DecodeRows {
    fn decode(self: Box<Self>, bytes: Vec<Bytes>) -> Result<BatchIter> {
        let mut c = Cursor::new(&bytes[0], self.offset);
        let rows = c.u32_be()? as usize;
        c.expect("mark", &[0])?;
        let (mut k, mut v) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            k.push(c.i64_be()?);
            v.push(c.i64_be()?);
        }
        let (k, v): (ArrayRef, ArrayRef) = (Arc::new(Int64Array::from(k)), Arc::new(Int64Array::from(v)));
        let columns =
            self.decode.fields().iter().map(|f| if f.name() == "k" { k.clone() } else { v.clone() });
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch =
            RecordBatch::try_new_with_options(self.decode.clone(), columns.collect(), &options).unwrap();
        let step = self.batch_rows;
        Ok(Box::new((0..rows).step_by(step).map(move |i| Ok(batch.slice(i, step.min(rows - i))))))
    }
}

fn unit(request: &PlanRequest, source: &Arc<dyn ReadAt>, range: Range<u64>, rows: u64) -> Unit {
    let decode = DecodeRows {
        decode: request.decode.clone(),
        offset: range.start,
        batch_rows: request.scan.batch_rows,
    };
    Unit {
        fetch: vec![Fetch { source: source.clone(), range: range.clone() }],
        rows: Some(rows),
        structure: format!("unit at {}", range.start),
        bytes: range,
        decode: Box::new(decode),
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, false),
        Field::new("v", DataType::Int64, false),
    ]))
}

/// A table whose units, and the keys in each, are known before anything is read. The units may be in several
/// files.
#[derive(Debug)]
struct Listed {
    schema: SchemaRef,
    units: Vec<ListedUnit>,
}

/// A unit's file, bytes and keys.
type ListedUnit = (Arc<dyn ReadAt>, Range<u64>, Range<i64>);

struct ListedPlan(std::vec::IntoIter<Unit>);

impl Plan for ListedPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        Ok(self.0.next())
    }
}

fn int(v: i64) -> ArrayRef {
    Arc::new(Int64Array::from(vec![v]))
}

impl TableFile for Listed {
    fn format(&self) -> &'static str {
        "listed"
    }
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }
    fn row_count(&self) -> Option<u64> {
        Some(self.units.iter().map(|(_, _, keys)| keys.end.abs_diff(keys.start)).sum())
    }
    fn metadata(&self) -> Result<Value> {
        Ok(Value::Null)
    }
    fn splits(&self, _: u64) -> Result<Vec<Split>> {
        Ok((0u32..)
            .zip(&self.units)
            .map(|(part, (_, r, _))| Split { part, range: r.clone(), rows: None })
            .collect())
    }
    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let (source, range, keys) = &self.units[split.part as usize];
        let bounds = |c: &str| {
            (c == "k").then(|| ColumnBounds {
                min: Some(int(keys.start)),
                max: Some(int(keys.end - 1)),
                has_null: Some(false),
                has_value: Some(true),
            })
        };
        let wanted = request.scan.predicate.as_ref().is_none_or(|p| p.may_match(&bounds));
        let rows = keys.end.abs_diff(keys.start);
        let units: Vec<Unit> =
            wanted.then(|| unit(request, source, range.clone(), rows)).into_iter().collect();
        Ok(Box::new(ListedPlan(units.into_iter())))
    }
    fn inspect(&self) -> Result<Node> {
        Ok(Node::new("table", 0..0))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A file about which nothing is known in advance: the first bytes of each unit state its length.
#[derive(Debug)]
struct Walked {
    schema: SchemaRef,
    source: Arc<dyn ReadAt>,
}

struct WalkPlan {
    source: Arc<dyn ReadAt>,
    at: u64,
    end: u64,
    request: PlanRequest,
}

impl Plan for WalkPlan {
    fn next_unit(&mut self) -> Result<Option<Unit>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let head = self.source.read(self.at..self.at + 4)?;
        let rows = Cursor::new(&head, self.at).u32_be()?;
        let range = self.at..self.at + unit_len(rows);
        self.at = range.end;
        Ok(Some(unit(&self.request, &self.source, range, rows.into())))
    }
}

impl TableFile for Walked {
    fn format(&self) -> &'static str {
        "walked"
    }
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }
    fn row_count(&self) -> Option<u64> {
        None
    }
    fn metadata(&self) -> Result<Value> {
        Ok(Value::Null)
    }
    fn splits(&self, _: u64) -> Result<Vec<Split>> {
        Ok(vec![Split { part: 0, range: 0..self.source.len(), rows: None }])
    }
    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let (at, end) = (split.range.start, split.range.end);
        Ok(Box::new(WalkPlan { source: self.source.clone(), at, end, request: request.clone() }))
    }
    fn inspect(&self) -> Result<Node> {
        Ok(Node::new("table", 0..0))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Four units of ten rows: as one file, and as a table of two files.
fn tables() -> (Walked, Listed) {
    let unit = |u: i64| unit_bytes(u * 10..u * 10 + 10);
    let whole: Vec<u8> = (0..4).flat_map(unit).collect();
    let halves: Vec<Arc<dyn ReadAt>> = [0, 2]
        .map(|h| Arc::new(Bytes::from((h..h + 2).flat_map(unit).collect::<Vec<_>>())) as Arc<dyn ReadAt>)
        .to_vec();
    let n = unit_len(10);
    let units = (0..4i64).map(|u| {
        let place = u64::try_from(u % 2).unwrap() * n;
        (halves[usize::try_from(u / 2).unwrap()].clone(), place..place + n, u * 10..u * 10 + 10)
    });
    let listed = Listed { schema: schema(), units: units.collect() };
    (Walked { schema: schema(), source: Arc::new(Bytes::from(whole)) }, listed)
}

fn read(table: &dyn TableFile, scan: &Scan, damage: &DamageLog) -> Result<Vec<i64>> {
    let mut all = Vec::new();
    for split in table.splits(1)? {
        let mut reader = ScanReader::try_new(table, scan, &split, damage.clone())?;
        while let Some(batch) = reader.next_batch()? {
            assert!(batch.num_rows() > 0 && batch.num_rows() <= scan.batch_rows);
            all.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        }
    }
    Ok(all)
}

fn columns(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|n| (*n).to_owned()).collect())
}

#[test]
fn all_kinds_of_files_give_the_same_rows() {
    let (walked, listed) = tables();
    // The filter's column is not requested, and the negation is pushed to the leaves.
    let outside = Predicate::Or(vec![
        Predicate::compare("k", Op::Lt, int(17)),
        Predicate::compare("k", Op::Gt, int(21)),
    ]);
    let scan = Scan { columns: columns(&["v"]), predicate: Some(!outside), batch_rows: 3, ..Scan::default() };
    for table in [&walked as &dyn TableFile, &listed] {
        assert_eq!(read(table, &scan, &DamageLog::default()).unwrap(), [289, 324, 361, 400, 441]);
        let count = |p| scan::count(table, p).unwrap();
        assert_eq!((count(None), count(scan.predicate.clone())), (40, 5));
        assert_eq!(scan::verify(table, |_| Ok(())).unwrap().rows, 40);
        let e = read(table, &Scan { columns: columns(&["x"]), ..Scan::default() }, &DamageLog::default());
        assert_eq!(e.unwrap_err().to_string(), "no column `x`; there are: k, v");
    }
    let first = ScanReader::try_new(
        &walked,
        &Scan { limit: Some(7), batch_rows: 4, ..Scan::default() },
        &walked.splits(1).unwrap()[0],
        DamageLog::default(),
    );
    assert_eq!(first.unwrap().map(|b| b.unwrap().num_rows()).collect::<Vec<_>>(), [4, 3]);
}

/// A file states more rows than it has bytes for, while later stages allocate memory in proportion to the
/// rows of a batch.
#[test]
fn batches_have_at_most_the_requested_rows() {
    #[derive(Debug)]
    struct Claims;

    impl DecodeUnit for Claims {
        fn decode(self: Box<Self>, _: Vec<Bytes>) -> Result<BatchIter> {
            let batch = |rows| {
                let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
                RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
                    .map_err(arrow_error)
            };
            Ok(Box::new([batch(10), batch(3), batch(8)].into_iter()))
        }
    }

    impl TableFile for Claims {
        fn format(&self) -> &'static str {
            "claims"
        }
        fn schema(&self) -> &SchemaRef {
            static EMPTY: std::sync::LazyLock<SchemaRef> =
                std::sync::LazyLock::new(|| Arc::new(Schema::empty()));
            &EMPTY
        }
        fn row_count(&self) -> Option<u64> {
            None
        }
        fn metadata(&self) -> Result<Value> {
            Ok(Value::Null)
        }
        fn splits(&self, _: u64) -> Result<Vec<Split>> {
            Ok(vec![Split { part: 0, range: 0..0, rows: None }])
        }
        fn plan(&self, _: &PlanRequest, _: &Split) -> Result<Box<dyn Plan>> {
            let structure = "unit".to_owned();
            let unit =
                Unit { fetch: Vec::new(), bytes: 0..0, rows: None, structure, decode: Box::new(Claims) };
            Ok(Box::new(ListedPlan(vec![unit].into_iter())))
        }
        fn inspect(&self) -> Result<Node> {
            Ok(Node::new("table", 0..0))
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    let rows = |limit| {
        let scan = Scan { batch_rows: 4, limit, ..Scan::default() };
        let split = &Claims.splits(1).unwrap()[0];
        let reader = ScanReader::try_new(&Claims, &scan, split, DamageLog::default()).unwrap();
        reader.map(|b| b.unwrap().num_rows()).collect::<Vec<_>>()
    };
    assert_eq!(rows(None), [4, 4, 2, 3, 4, 4]);
    assert_eq!(rows(Some(9)), [4, 4, 1]);
}

#[derive(Debug)]
struct Logged {
    inner: Arc<dyn ReadAt>,
    log: Mutex<Vec<Range<u64>>>,
}

impl ReadAt for Logged {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.log.lock().unwrap().extend_from_slice(ranges);
        self.inner.read_ranges(ranges)
    }
}

#[test]
fn pruned_units_are_not_read() {
    let (_, mut listed) = tables();
    let mut logs = Vec::new();
    for (source, _, _) in &mut listed.units {
        let logged = Arc::new(Logged { inner: source.clone(), log: Mutex::default() });
        logs.push(logged.clone());
        *source = logged;
    }
    let scan = Scan { predicate: Some(Predicate::compare("k", Op::Ge, int(25))), ..Scan::default() };
    assert_eq!(read(&listed, &scan, &DamageLog::default()).unwrap(), (25..40).collect::<Vec<_>>());
    let requests: Vec<usize> = logs.iter().map(|l| l.log.lock().unwrap().len()).collect();
    assert_eq!(requests, [0, 0, 1, 1]);
}

#[test]
fn damage_costs_a_unit_and_is_recorded_or_raised() {
    let (walked, _) = tables();
    let mut bytes = walked.source.read(0..walked.source.len()).unwrap().to_vec();
    let second = unit_len(10);
    bytes[usize::try_from(second).unwrap() + 4] = 9;
    let damaged = Walked { schema: schema(), source: Arc::new(Bytes::from(bytes)) };
    let log = DamageLog::default();
    let e = read(&damaged, &Scan::default(), &log).unwrap_err();
    let place = format!("byte {}: unit at {second}: mark: expected", second + 4);
    assert!(e.to_string().starts_with(&place), "{e}");
    let skip = Scan { on_error: OnError::Skip, ..Scan::default() };
    let kept: Vec<i64> = (0..10).chain(20..40).collect();
    assert_eq!(read(&damaged, &skip, &log).unwrap(), kept);
    let [record] = log.records().try_into().unwrap();
    assert_eq!((record.bytes, record.rows_lost), (second..2 * second, Some(10)));
    let report = scan::verify(&damaged, |_| Ok(())).unwrap();
    assert_eq!((report.rows, report.damage.len()), (30, 1));

    // Such a plan cannot continue after the end of a truncated file.
    let cut = Walked { schema: schema(), source: Arc::new(walked.source.read(0..40).unwrap()) };
    assert!(read(&cut, &Scan::default(), &log).is_err());
}
