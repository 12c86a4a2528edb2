//! Whole tables, made by hand from the rules of the format.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use coldframe_core::{Error, ErrorKind, Format, OnError, OpenOptions, Result, TableFile, Value};
use coldframe_hudi::{HudiFormat, HudiTableFormat};
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::hudi::{
    HudiTable, Row, after, avro_block, block, compacted_block, delete_block, kryo_block, rollback_block,
    seeds,
};
use coldframe_testing::{Dice, laws, layout, mutate, rows};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

const T1: &str = "20260101000000100";
const T2: &str = "20260101000000200";
const T3: &str = "20260101000000300";
const T4: &str = "20260101000000400";

const EVENT_TIME: &str = "hoodie.table.precombine.field=ts\nhoodie.compaction.payload.class=\
                          org.apache.hudi.common.model.DefaultHoodieRecordPayload";
const LATEST: &str = "hoodie.table.precombine.field=ts\nhoodie.compaction.payload.class=\
                      org.apache.hudi.common.model.OverwriteWithLatestAvroPayload";
const PARTIAL: &str = "hoodie.table.precombine.field=ts\nhoodie.compaction.payload.class=\
                       org.apache.hudi.common.model.PartialUpdateAvroPayload";
const NEW: &str = "hoodie.table.ordering.fields=ts\nhoodie.record.merge.mode=EVENT_TIME_ORDERING";

/// Rows of a row group.
const ROW_GROUP: usize = 2000;

fn parquet(rows: &[Row<'_>]) -> Vec<u8> {
    let texts = |of: fn(&Row<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("_hoodie_commit_time", texts(|r| Some(r.0.to_owned())), true),
        ("_hoodie_record_key", texts(|r| Some(r.1.to_owned())), true),
        ("id", texts(|r| Some(r.1.to_owned())), true),
        ("ts", Arc::new(rows.iter().map(|r| r.2).collect::<Int64Array>()) as ArrayRef, true),
        ("name", texts(|r| r.3.map(str::to_owned)), true),
    ])
    .unwrap();
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(ROW_GROUP)).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn base(instant: &str) -> String {
    format!("g-0_0-1-2_{instant}.parquet")
}

fn log(instant: &str, number: u32) -> String {
    format!(".g-0_{instant}.log.{number}_0-1-2")
}

fn open(table: &HudiTable, options: &[(&str, &str)]) -> Result<Arc<dyn TableFile>> {
    let extra = options.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
    let options = OpenOptions { extra: extra.collect(), ..OpenOptions::default() };
    HudiTableFormat.open(&table.folder.source(), &options)
}

/// The rows as `key ts name`, sorted.
fn read(table: &HudiTable, options: &[(&str, &str)]) -> Vec<String> {
    let outcome = rows::read(open(table, options).unwrap().as_ref(), OnError::Raise).unwrap();
    if let Some(e) = outcome.error {
        panic!("{e}");
    }
    let batch = outcome.batch;
    let column = |name: &str| batch.column_by_name(name).unwrap().clone();
    let (keys, times, names) = (column("id"), column("ts"), column("name"));
    let row = |row: usize| {
        let name = names.as_string::<i32>();
        let name = if name.is_null(row) { "-" } else { name.value(row) };
        format!(
            "{} {} {name}",
            keys.as_string::<i32>().value(row),
            times.as_primitive::<Int64Type>().value(row)
        )
    };
    let mut all: Vec<String> = (0..batch.num_rows()).map(row).collect();
    all.sort();
    all
}

fn failure(table: &HudiTable, options: &[(&str, &str)]) -> Error {
    match open(table, options) {
        Err(e) => e,
        Ok(table) => match rows::read(table.as_ref(), OnError::Raise) {
            Err(e) => e,
            Ok(outcome) => outcome.error.unwrap(),
        },
    }
}

/// A base file of `a`, `b` and `c`, and a log over it.
fn with_log(version: u32, properties: &str, blocks: &[Vec<u8>]) -> HudiTable {
    let instant = if version >= 8 { T2 } else { T1 };
    HudiTable::new(version, properties)
        .file(&base(T1), parquet(&[(T1, "a", 5, Some("one")), (T1, "b", 5, Some("one")), (T1, "c", 5, None)]))
        .commit(T1, "deltacommit", &[&base(T1)], &[])
        .file(&log(instant, 1), blocks.concat())
        .commit(T2, "deltacommit", &[&log(instant, 1)], &[])
}

#[test]
fn the_last_base_file_that_was_committed_is_read() {
    let table = HudiTable::new(6, "")
        .file(&base(T1), parquet(&[(T1, "a", 1, Some("old"))]))
        .commit(T1, "commit", &[&base(T1)], &[])
        .file(&base(T2), parquet(&[(T1, "a", 1, Some("old")), (T2, "b", 2, Some("new"))]))
        .commit(T2, "commit", &[&base(T2)], &[])
        .file(&base(T3), parquet(&[(T3, "a", 9, Some("uncommitted"))]))
        .pending(T3, "commit");
    assert_eq!(read(&table, &[]), ["a 1 old", "b 2 new"]);
    assert_eq!(read(&table, &[("as_of", T1)]), ["a 1 old"]);
    assert_eq!(read(&table, &[("as_of", "20260101000000150")]), ["a 1 old"]);
    assert_eq!(read(&table, &[("view", "incremental"), ("begin", T1)]), ["b 2 new"]);
    assert_eq!(read(&table, &[("view", "incremental"), ("begin", "0"), ("end", T1)]), ["a 1 old"]);
    assert!(HudiTableFormat.probe_folder(&table.folder).unwrap());
    assert!(!HudiFormat.probe_folder(&table.folder).unwrap());
    // The group is replaced by another one.
    let other = format!("h-0_0-1-2_{T4}.parquet");
    let table =
        table.file(&other, parquet(&[(T4, "z", 1, None)])).commit(T4, "replacecommit", &[&other], &["g-0"]);
    assert_eq!(read(&table, &[]), ["z 1 -"]);
    assert_eq!(read(&table, &[("as_of", T2)]), ["a 1 old", "b 2 new"]);
    let open = open(&table, &[]).unwrap();
    layout::assert_tiled(&open.inspect().unwrap());
}

#[test]
fn splits_of_few_bytes_have_the_same_rows() {
    let mut dice = Dice::new(1);
    let keys: Vec<String> = (0..9000).map(|_| format!("{:016x}", dice.roll())).collect();
    let rows: Vec<Row<'_>> = keys.iter().map(|key| (T1, key.as_str(), 1, None)).collect();
    let (long, most) = (parquet(&rows), 1 << 16);
    assert!(long.len() > 3 * most);
    let table = HudiTable::new(6, "").file(&base(T1), long.clone()).commit(T1, "commit", &[&base(T1)], &[]);
    let open = open(&table, &[]).unwrap();
    // Each split opens the file, so there is not one for each byte.
    let splits = open.splits(1).unwrap();
    assert_eq!(splits.len(), long.len().div_ceil(most));
    let scan = |split| rows::scan(open.as_ref(), &coldframe_core::Scan::default(), Some(split)).unwrap();
    let counts: Vec<usize> = splits.iter().map(|split| scan(split).batch.num_rows()).collect();
    assert_eq!(counts.iter().sum::<usize>(), rows.len());
    assert!(counts.iter().filter(|count| **count > 0).count() > 1, "{counts:?}");
}

#[test]
fn repeated_tasks_leave_files_that_do_not_count() {
    let twice = format!("g-0_7-7-7_{T1}.parquet");
    let table = HudiTable::new(6, "")
        .file(&base(T1), parquet(&[(T1, "a", 1, Some("no"))]))
        .file(&twice, parquet(&[(T1, "a", 1, Some("yes"))]))
        .commit(T1, "commit", &[&twice], &[]);
    assert_eq!(read(&table, &[]), ["a 1 yes"]);
}

#[test]
fn logs_are_merged_first_and_then_with_the_base_file() {
    // Against the base row, the delete wins; against the later record of the logs, it loses; and that record loses against
    // the base row, whose ordering value is greater.
    let blocks =
        [delete_block(T2, &[("a", None), ("b", None)]), avro_block(T2, &[(T2, "a", 3, Some("late"))])];
    for (version, properties) in [(6, EVENT_TIME), (9, NEW)] {
        let table = with_log(version, properties, &blocks);
        assert_eq!(read(&table, &[]), ["a 5 one", "c 5 -"], "{version}");
        assert_eq!(read(&table, &[("view", "read_optimized")]), ["a 5 one", "b 5 one", "c 5 -"]);
        assert_eq!(read(&table, &[("as_of", T1)]), ["a 5 one", "b 5 one", "c 5 -"]);
    }
    let table = with_log(6, LATEST, &blocks);
    assert_eq!(read(&table, &[]), ["a 3 late", "c 5 -"]);
    // Old deletes, which are Java objects.
    let table = with_log(6, LATEST, &[kryo_block(T2, &["aa", "bb"]), avro_block(T2, &[(T2, "bb", 1, None)])]);
    assert_eq!(read(&table, &[]), ["a 5 one", "b 5 one", "bb 1 -", "c 5 -"]);
}

#[test]
fn versions_of_hudi_differ_between_log_records() {
    let blocks =
        [avro_block(T2, &[(T2, "a", 9, Some("greater"))]), avro_block(T2, &[(T2, "a", 2, Some("later"))])];
    let table = with_log(6, LATEST, &blocks);
    assert_eq!(read(&table, &[])[0], "a 9 greater");
    assert_eq!(read(&table, &[("hudi_reader", "1.x")])[0], "a 2 later");
    // Deletes with an ordering value.
    let blocks = [
        avro_block(T2, &[(T2, "a", 9, Some("greater"))]),
        delete_block(T2, &[("a", Some(8)), ("b", Some(4))]),
    ];
    let table = with_log(9, NEW, &blocks);
    assert_eq!(read(&table, &[]), ["a 9 greater", "b 5 one", "c 5 -"]);
    let table = with_log(6, EVENT_TIME, &blocks);
    assert_eq!(read(&table, &[]), ["a 9 greater", "c 5 -"]);
}

#[test]
fn partial_updates_keep_the_values_that_are_null() {
    let blocks = [avro_block(T2, &[(T2, "a", 6, None), (T2, "c", 1, Some("filled"))])];
    assert_eq!(read(&with_log(6, PARTIAL, &blocks), &[]), ["a 6 one", "b 5 one", "c 5 filled"]);
    let new = format!("{NEW}\nhoodie.table.partial.update.mode=IGNORE_DEFAULTS");
    assert_eq!(read(&with_log(9, &new, &blocks), &[]), ["a 6 one", "b 5 one", "c 5 filled"]);
}

#[test]
fn blocks_that_do_not_count_are_left_out() {
    let rolled = "20260101000000150";
    let torn = avro_block(T2, &[(T2, "a", 7, Some("torn"))]);
    let blocks = [
        avro_block(rolled, &[(rolled, "a", 8, Some("rolled back"))]),
        // The instant of the rollback is later than all commits.
        rollback_block(T4, rolled),
        torn[..torn.len() - 30].to_vec(),
        avro_block(T2, &[(T2, "b", 7, Some("two"))]),
        avro_block(T3, &[(T3, "c", 7, Some("in flight"))]),
        block(6, &[(0, T2)], b"change data"),
    ];
    let table = with_log(6, EVENT_TIME, &blocks).pending(T3, "deltacommit");
    assert_eq!(read(&table, &[]), ["a 5 one", "b 7 two", "c 5 -"]);
    let e = failure(&with_log(6, EVENT_TIME, &[block(3, &[(0, T2)], &[0, 0, 0, 9, 0, 0, 0, 0])]), &[]);
    assert!(e.to_string().contains("schema"), "{e}");
}

#[test]
fn logs_over_a_pending_compaction_are_read() {
    let table = with_log(6, EVENT_TIME, &[avro_block(T2, &[(T2, "a", 6, Some("two"))])])
        .pending(T3, "compaction")
        .file(&log(T3, 1), avro_block(T4, &[(T4, "b", 6, Some("four"))]))
        .commit(T4, "deltacommit", &[&log(T3, 1)], &[]);
    assert_eq!(read(&table, &[]), ["a 6 two", "b 6 four", "c 5 -"]);
    // It was completed.
    let done = table.file(&base(T3), parquet(&[(T2, "a", 6, Some("compacted"))])).commit(
        T3,
        "commit",
        &[&base(T3)],
        &[],
    );
    assert_eq!(read(&done, &[]), ["a 6 compacted", "b 6 four"]);
}

#[test]
fn a_log_compaction_counts_without_the_blocks_that_it_merged() {
    let merged = [(T3, "a", 6, Some("two"))];
    let again = [(T4, "a", 6, Some("two"))];
    let table = with_log(9, NEW, &[avro_block(T2, &[(T2, "a", 6, Some("two"))])])
        .file(&log(T3, 1), compacted_block(T3, T2, &merged))
        .commit(T3, "deltacommit", &[&log(T3, 1)], &[])
        .file(&log(T4, 1), compacted_block(T4, T3, &again))
        .commit(T4, "deltacommit", &[&log(T4, 1)], &[]);
    assert_eq!(read(&table, &[]), ["a 6 two", "b 5 one", "c 5 -"]);
    for begin in [T2, T3] {
        let begin = after(begin);
        assert_eq!(read(&table, &[("view", "incremental"), ("begin", &begin)]), ["a 6 two"], "{begin}");
    }
}

#[test]
fn a_log_belongs_to_the_base_file_before_its_completion() {
    let table = with_log(9, NEW, &[avro_block(T2, &[(T2, "a", 6, Some("two"))])]);
    // A compaction that was planned before the log's commit was completed does not have it.
    let planned = "20260101000000203";
    assert!(planned < after(T2).as_str());
    let done = table.clone().file(&base(planned), parquet(&[(T1, "b", 5, Some("compacted"))])).commit(
        planned,
        "commit",
        &[&base(planned)],
        &[],
    );
    assert_eq!(read(&done, &[]), ["a 6 two", "b 5 compacted"]);
    let later = table.file(&base(T3), parquet(&[(T1, "b", 5, None)])).commit(T3, "commit", &[&base(T3)], &[]);
    assert_eq!(read(&later, &[]), ["b 5 -"]);
    // What was not completed hides nothing.
    let orphan = later.file(&base(T4), parquet(&[]));
    assert_eq!(read(&orphan, &[]), ["b 5 -"]);
    assert_eq!(open(&orphan, &[]).unwrap().notices().unwrap().len(), 1);
}

#[test]
fn missing_files_are_damage() {
    let table = with_log(6, EVENT_TIME, &[avro_block(T2, &[(T2, "a", 6, Some("two"))])]);
    for gone in [base(T1), log(T1, 1)] {
        let cut = table.clone().without(&gone);
        let e = failure(&cut, &[]);
        assert!(e.is_damage() && e.to_string().contains(&gone), "{e}");
        let outcome = rows::read(open(&cut, &[]).unwrap().as_ref(), OnError::Skip).unwrap();
        assert_eq!((outcome.batch.num_rows(), outcome.damage.len()), (0, 1), "{gone}");
        let notices = open(&cut, &[]).unwrap().notices().unwrap();
        assert!(matches!(notices.as_slice(), [notice] if notice.text().contains(&gone)), "{notices:?}");
    }
    // Only the blocks of the other logs show whether those of a missing log were repeated.
    let repeated = |blocks: &[Vec<u8>]| {
        let two =
            table.clone().file(&log(T3, 1), blocks.concat()).commit(T3, "deltacommit", &[&log(T3, 1)], &[]);
        let cut = open(&two.without(&log(T1, 1)), &[]).unwrap();
        assert_eq!(cut.notices().unwrap(), []);
        cut.notices_by_reading().unwrap().len()
    };
    let later = avro_block(T3, &[(T3, "b", 6, Some("three"))]);
    let first = avro_block(T2, &[(T2, "a", 6, Some("two"))]);
    assert_eq!(repeated(&[first, later.clone()]), 0);
    assert_eq!(repeated(&[later]), 1);
    assert_eq!(read(&table.clone().without(&log(T1, 1)), &[("view", "read_optimized")]).len(), 3);
    // A log without the block of its commit, which was torn.
    let mut torn = avro_block(T2, &[(T2, "a", 6, Some("two"))]);
    torn.truncate(torn.len() - 20);
    let e = failure(&table.clone().file(&log(T1, 1), torn), &[]);
    assert!(e.is_damage() && e.to_string().contains("block of commit"), "{e}");
    // A later base file has its rows.
    let table = table.without(&log(T1, 1)).file(&base(T3), parquet(&[(T1, "a", 5, None)])).commit(
        T3,
        "commit",
        &[&base(T3)],
        &[],
    );
    assert_eq!(read(&table, &[]), ["a 5 -"]);
}

#[test]
fn what_the_timeline_seems_to_have_lost_is_a_notice() {
    let texts = |table: &HudiTable| -> Vec<String> {
        open(table, &[]).unwrap().notices().unwrap().iter().map(coldframe_core::Notice::text).collect()
    };
    let table = HudiTable::new(6, "")
        .file(&base(T1), parquet(&[(T1, "a", 1, Some("old"))]))
        .commit(T1, "commit", &[&base(T1)], &[])
        .file(&base(T2), parquet(&[(T2, "a", 2, Some("new"))]))
        .file(&format!(".hoodie/{T2}.commit.requested"), "");
    // A write that was only requested was never completed.
    assert_eq!(texts(&table), [""; 0]);
    let lost = table.file(&format!(".hoodie/{T2}.inflight"), "{}");
    assert_eq!(read(&lost, &[]), ["a 1 old"]);
    let [text] = texts(&lost).try_into().unwrap();
    assert!(text.contains(&format!("1 of its commits were started and are not completed ({T2}")), "{text}");
    assert_eq!(open(&lost, &[("as_of", T1)]).unwrap().notices().unwrap(), []);
    for mark in [format!(".hoodie/.temp/{T2}/MARKERS0"), format!(".hoodie/.heartbeat/{T2}")] {
        assert_eq!(texts(&lost.clone().file(&mark, "")), [""; 0], "{mark}");
    }
    let complete = OpenOptions {
        extra: [("complete".to_owned(), Value::from(true))].into_iter().collect(),
        ..OpenOptions::default()
    };
    let table = HudiTableFormat.open(&lost.folder.source(), &complete).unwrap();
    assert_eq!(table.notices().unwrap(), []);
    let raised = rows::read(table.as_ref(), OnError::Raise).unwrap_err();
    assert!(raised.is_damage() && raised.to_string().contains("are not completed"), "{raised}");
    let outcome = rows::read(table.as_ref(), OnError::Skip).unwrap();
    assert_eq!((outcome.batch.num_rows(), outcome.damage.len()), (1, 1));
    // Which groups an empty commit replaced is not known.
    let empty = HudiTable::new(9, "")
        .file(&base(T1), parquet(&[(T1, "a", 1, Some("old"))]))
        .commit(T1, "commit", &[&base(T1)], &[])
        .file(&format!(".hoodie/timeline/{T2}_{T2}.replacecommit"), "");
    assert!(texts(&empty).iter().any(|text| text.contains("have an empty file")), "{:?}", texts(&empty));
    // Properties that were not written to their end.
    let properties = ".hoodie/hoodie.properties";
    assert!(failure(&lost.clone().file(properties, ""), &[]).to_string().contains("hoodie.table.name"));
    let cut = "hoodie.table.name=lab\nhoodie.table.version=6\nhoodie.table.re";
    assert_eq!(texts(&lost.file(properties, cut)).len(), 2);
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let custom = "hoodie.compaction.payload.class=com.example.Mine";
    let e = failure(&with_log(6, custom, &[avro_block(T2, &[])]), &[]);
    assert!(
        matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains("com.example.Mine"),
        "{e}"
    );
    // Nothing is merged here.
    assert_eq!(read(&with_log(6, custom, &[]), &[("view", "read_optimized")]).len(), 3);
    for (version, more, name) in [
        (10, "", "version 10"),
        (9, "hoodie.table.base.file.format=LANCE", "LANCE"),
        (6, "hoodie.table.partition.fields=nowhere", "nowhere"),
    ] {
        let table = HudiTable::new(version, more).file(&base(T1), parquet(&[(T1, "a", 1, None)])).commit(
            T1,
            "commit",
            &[&base(T1)],
            &[],
        );
        let e = failure(&table, &[]);
        assert!(matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains(name), "{e}");
    }
    let uniform = HudiTable::new(6, "").commit(T1, "commit", &["part-00000-x.parquet"], &[]);
    assert!(failure(&uniform, &[]).to_string().contains("part-00000"));
    let table = HudiTable::new(6, "");
    for options in [
        [("view", "incremental"), ("end", T1)],
        [("begin", T1), ("end", T2)],
        [("as_of", "soon"), ("end", T1)],
    ] {
        assert!(matches!(failure(&table, &options).kind(), ErrorKind::InvalidArgument(_)), "{options:?}");
    }
    let plain = MemoryFolder::default().with("a.parquet", parquet(&[]));
    assert!(!HudiTableFormat.probe_folder(&plain).unwrap());
    assert!(HudiTableFormat.open(&plain.source(), &OpenOptions::default()).unwrap_err().is_not_found());
}

#[test]
fn a_table_of_no_commits_has_no_rows() {
    let table = open(&HudiTable::new(9, NEW), &[]).unwrap();
    assert_eq!((table.row_count(), table.schema().fields().len()), (Some(0), 0));
    assert!(table.splits(1).unwrap().is_empty());
}

#[test]
fn the_files_of_a_table_have_a_fate() {
    let table = HudiTable::new(6, "")
        .file(&base(T1), parquet(&[(T1, "a", 1, None)]))
        .commit(T1, "commit", &[&base(T1)], &[])
        .file(&base(T2), parquet(&[(T1, "a", 1, None)]))
        .commit(T2, "commit", &[&base(T2)], &[])
        .file(&base(T3), parquet(&[]))
        .pending(T3, "commit")
        .file("notes.txt", "mine");
    let contents = HudiTableFormat.contents(&table.folder.source(), &OpenOptions::default()).unwrap();
    let kinds: Vec<_> = contents.iter().map(|c| (c.kind, c.count, c.taken)).collect();
    assert_eq!(
        kinds,
        [
            ("table", None, Some(true)),
            ("versions", Some(1), Some(false)),
            ("uncommitted", Some(1), Some(true))
        ]
    );
    let unclaimed = HudiTableFormat.unclaimed(&table.folder.source(), &OpenOptions::default()).unwrap();
    assert_eq!(unclaimed.iter().map(|e| e.path.as_str()).collect::<Vec<_>>(), ["notes.txt"]);
}

/// Any file of a table may have any bytes: an error or a table, never a panic.
#[test]
fn damaged_tables_obey_the_laws() {
    let base_table = with_log(
        9,
        NEW,
        &[avro_block(T2, &[(T2, "a", 6, Some("two"))]), delete_block(T2, &[("b", Some(7))])],
    );
    let mut tables = seeds();
    tables.push(base_table.folder);
    let mut dice = Dice::new(50);
    for folder in tables {
        for (path, bytes) in &folder.files {
            for turn in 0..12 {
                let bad = match turn % 2 {
                    0 => mutate::shaken(bytes, &mut dice),
                    _ => bytes.slice(..dice.below(bytes.len() + 1)),
                };
                let source = folder.with(path, bad).source();
                if let Ok(table) = HudiTableFormat.open(&source, &OpenOptions::default()) {
                    laws::assert_tolerant(table.as_ref(), None, &[1 << 11]);
                }
            }
        }
    }
}

/// A row group is left out only if no log can change its rows.
#[test]
fn row_groups_are_pruned_only_without_logs() {
    let count = |table: &HudiTable| {
        let value = Arc::new(Int64Array::from(vec![6])) as ArrayRef;
        let predicate = Some(coldframe_core::Predicate::compare("ts", coldframe_core::Op::Ge, value));
        let table = open(table, &[]).unwrap();
        let scan = coldframe_core::Scan { predicate, ..Default::default() };
        let (mut rows, mut pruned) = (0, 0);
        for split in table.splits(u64::MAX).unwrap() {
            let mut reader =
                coldframe_core::ScanReader::try_new(table.as_ref(), &scan, &split, Default::default())
                    .unwrap();
            while let Some(batch) = reader.next_batch().unwrap() {
                rows += batch.num_rows();
            }
            pruned += reader.work().pruned;
        }
        (rows, pruned)
    };
    let table = HudiTable::new(6, "")
        .file(&base(T1), parquet(&[(T1, "a", 5, None), (T1, "b", 5, None)]))
        .commit(T1, "commit", &[&base(T1)], &[]);
    assert_eq!(count(&table), (0, 1));
    let logged = with_log(6, EVENT_TIME, &[avro_block(T2, &[(T2, "a", 6, Some("two"))])]);
    assert_eq!(count(&logged), (1, 0));
}

/// Ranges of a split have its rows once.
#[test]
fn parts_of_a_split_have_each_row_once() {
    let logged = with_log(6, EVENT_TIME, &[avro_block(T2, &[(T2, "a", 6, Some("two"))])]);
    let table = open(&logged, &[]).unwrap();
    let splits = table.splits(u64::MAX).unwrap();
    let [whole] = splits.as_slice() else { panic!("{splits:?}") };
    let middle = whole.range.end / 2;
    let count = |range: std::ops::Range<u64>| {
        let part = coldframe_core::Split { range, ..whole.clone() };
        rows::scan(table.as_ref(), &coldframe_core::Scan::default(), Some(&part)).unwrap().batch.num_rows()
    };
    assert_eq!((count(0..middle), count(middle..whole.range.end)), (3, 0));
}

#[test]
fn a_log_by_itself_has_a_layout_and_no_rows() {
    let blocks = [avro_block(T2, &[(T2, "a", 1, None)]), rollback_block(T3, T2), b"#HUDI#torn".to_vec()];
    let source =
        |bytes: &[u8]| coldframe_core::Source::file("log", Arc::new(bytes::Bytes::copy_from_slice(bytes)));
    assert!(HudiTableFormat.probe(&blocks.concat(), &[]) && !HudiTableFormat.probe(b"PAR1", &[]));
    let log = HudiTableFormat.open(&source(&blocks.concat()), &OpenOptions::default()).unwrap();
    let node = log.inspect().unwrap();
    layout::assert_tiled(&node);
    let names: Vec<&str> = node.children.iter().map(|child| child.name.as_ref()).collect();
    assert_eq!(names, ["avro block", "command block", "corrupt block"]);
    let e = match rows::read(log.as_ref(), OnError::Raise) {
        Err(e) => e,
        Ok(outcome) => outcome.error.unwrap(),
    };
    assert!(
        matches!(e.kind(), ErrorKind::Unsupported(_)) && e.to_string().contains("open the table's directory"),
        "{e}"
    );
    let e = HudiTableFormat.open(&source(b"PAR1"), &OpenOptions::default()).unwrap_err();
    assert!(e.to_string().contains("found another file"), "{e}");
}
