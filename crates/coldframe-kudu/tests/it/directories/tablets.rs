//! Replicas, missing tablets, schemas of different ages, and encryption keys of several tenants.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use coldframe_cfile::write::{Options, Writer};
use coldframe_core::Limits;
use coldframe_core::predicate::Op;
use coldframe_core::{
    BatchWriter, DamageLog, ErrorKind, Format, OnError, OpenOptions, Predicate, Scan, ScanReader, Value,
};
use coldframe_kudu::KuduFormat;
use coldframe_testing::folder::MemoryFolder;
use coldframe_testing::rows::{as_text, read, scan, sorted};
use coldframe_testing::written::Sink;

use super::edit::{changed, fields, message, number, renamed};
use super::folder::{ending, open, table, tree};

/// Paths of the super blocks of a table.
pub(crate) fn super_blocks(tree: &MemoryFolder, table: &str) -> Vec<String> {
    let name = [&[7 << 3 | 2, u8::try_from(table.len()).unwrap()], table.as_bytes()].concat();
    let blocks = tree.files.iter().filter(|(path, _)| path.contains("tablet-meta/"));
    blocks.filter(|(_, b)| b.windows(name.len()).any(|w| w == name)).map(|(path, _)| path.clone()).collect()
}

#[test]
fn flushes_do_not_rank_replicas() {
    let all = tree("replicas");
    let rows = sorted(open(&all, &table("numbers")).unwrap().as_ref());
    for server in ["ts0", "ts1", "ts2"] {
        let mut hurt = all.clone();
        for path in super_blocks(&all, "numbers").into_iter().filter(|p| p.starts_with(server)) {
            let stale = changed(&all.files[&path], |mut fields| {
                // The super block lists no rowsets, although the number of its last flush is high.
                fields.retain(|(field, ..)| !matches!(field, 3 | 6));
                fields.push(number(3, 1000));
                fields
            });
            hurt.files.insert(path, stale);
        }
        assert_eq!(sorted(open(&hurt, &table("numbers")).unwrap().as_ref()), rows, "{server}");
    }
}

/// Checks the table `numbers` without one of its tablets, and the error of a read of the whole table.
fn lacks_a_tablet(hurt: &MemoryFolder, options: &coldframe_core::OpenOptions, all: usize, why: &str) {
    let lossy = open(hurt, options).unwrap();
    assert_eq!(lossy.row_count(), None);
    let e = match read(lossy.as_ref(), OnError::Raise) {
        Err(e) => e,
        Ok(outcome) => outcome.error.unwrap(),
    };
    assert!(e.is_damage() && e.to_string().contains(why), "{e}");
    let outcome = read(lossy.as_ref(), OnError::Skip).unwrap();
    assert!((1..all).contains(&outcome.batch.num_rows()), "{}", outcome.batch.num_rows());
    assert_eq!(outcome.damage.len(), 1, "{:?}", outcome.damage);
    assert!(outcome.damage[0].reason.contains(why), "{:?}", outcome.damage);
}

#[test]
fn a_tombstoned_tablet_is_damage() {
    let whole = tree("file_blocks");
    let all = sorted(open(&whole, &table("numbers")).unwrap().as_ref()).len();
    let path = super_blocks(&whole, "numbers").remove(0);
    let tombstone = changed(&whole.files[&path], |mut fields| {
        fields.retain(|(field, ..)| *field != 10);
        fields.push(number(10, 3));
        fields
    });
    let mut tombstoned = whole.clone();
    tombstoned.files.insert(path.clone(), tombstone);
    lacks_a_tablet(&tombstoned, &table("numbers"), all, "whose data was removed");
    // The tablet is not reported again as one that never existed.
    let metadata = open(&tombstoned, &table("numbers")).unwrap().metadata().unwrap();
    assert_eq!(metadata.get("missing_tablets"), Some(&Value::List(Vec::new())));
    // Requesting another tablet returns that tablet without an error.
    let other = super_blocks(&whole, "numbers").remove(1);
    let mut options = coldframe_core::OpenOptions::default();
    options.extra.insert("tablet".to_owned(), Value::Str(other.rsplit('/').next().unwrap().to_owned()));
    assert!(!sorted(open(&tombstoned, &options).unwrap().as_ref()).is_empty());
}

#[test]
fn an_absent_tablet_may_be_on_another_server() {
    let whole = tree("file_blocks");
    let all = sorted(open(&whole, &table("numbers")).unwrap().as_ref());
    let mut part = whole.clone();
    let path = super_blocks(&whole, "numbers").remove(0);
    part.files.remove(&path);
    part.files.remove(&path.replace("tablet-meta", "consensus-meta"));
    let numbers = open(&part, &table("numbers")).unwrap();
    let rows = sorted(numbers.as_ref());
    assert!((1..all.len()).contains(&rows.len()) && rows.iter().all(|row| all.contains(row)));
    assert_eq!(numbers.row_count(), Some(rows.len() as u64));
    let Some(Value::List(missing)) = numbers.metadata().unwrap().get("missing_tablets").cloned() else {
        panic!("no list")
    };
    assert_eq!(missing.len(), 1);
    assert!(matches!(missing[0].get("hash_buckets"), Some(Value::List(b)) if b.len() == 1), "{missing:?}");
    // A user who has copied all servers can require every tablet.
    let mut complete = table("numbers");
    complete.extra.insert("complete".to_owned(), Value::Bool(true));
    // The directory was copied without its logs.
    complete.extra.insert("wal".to_owned(), Value::Bool(false));
    lacks_a_tablet(&part, &complete, all.len(), "a tablet for each hash bucket");
    assert_eq!(sorted(open(&whole, &complete).unwrap().as_ref()), all);
}

fn notices(table: &dyn coldframe_core::TableFile) -> Vec<String> {
    table.notices().unwrap().iter().map(coldframe_core::Notice::text).collect()
}

#[test]
fn a_lost_super_block_is_noticed() {
    let whole = tree("file_blocks");
    let path = super_blocks(&whole, "numbers").remove(0);
    let id = path.rsplit('/').next().unwrap().to_owned();
    let mut part = whole.clone();
    part.files.remove(&path);
    let mut options = table("events");
    options.extra.insert("wal".to_owned(), Value::Bool(false));
    assert!(notices(open(&whole, &options).unwrap().as_ref()).is_empty());
    // The tablet may have been of any table.
    let texts = notices(open(&part, &options).unwrap().as_ref());
    assert!(matches!(texts.as_slice(), [text] if text.contains(&id)), "{texts:?}");
    options.extra.insert("complete".to_owned(), Value::Bool(true));
    let events = open(&part, &options).unwrap();
    assert!(notices(events.as_ref()).is_empty());
    let outcome = read(events.as_ref(), OnError::Skip).unwrap();
    assert!(
        matches!(outcome.damage.as_slice(), [lost] if lost.structure.contains(&id)),
        "{:?}",
        outcome.damage
    );
}

#[test]
fn missing_and_cut_blocks_are_noticed_without_reading_them() {
    let mut options = table("events");
    options.extra.insert("wal".to_owned(), Value::Bool(false));
    for name in ["log_blocks", "file_blocks"] {
        let whole = tree(name);
        let noticed = |tree: &MemoryFolder| {
            let table = open(tree, &options).unwrap();
            !table.notices_by_reading().unwrap().is_empty()
        };
        assert!(!noticed(&whole));
        let mut lost = 0;
        for path in whole.files.keys().filter(|path| path.contains("data/") && !path.ends_with("instance")) {
            let mut part = whole.clone();
            part.files.remove(path);
            let rows = open(&part, &options).and_then(|table| read(table.as_ref(), OnError::Raise));
            let is_read = rows.is_ok_and(|rows| rows.error.is_none());
            lost += usize::from(!is_read);
            assert!(is_read || noticed(&part), "{name}: {path}");
            if !is_read && !path.ends_with(".metadata") {
                part.files.insert(path.clone(), Vec::new().into());
                assert!(noticed(&part), "{name}: {path}");
            }
        }
        assert!(lost > 0, "{name}");
    }
}

#[test]
fn a_tablet_without_its_log_is_noticed() {
    let whole = tree("file_blocks");
    let texts = notices(open(&whole, &table("events")).unwrap().as_ref());
    assert!(matches!(texts.as_slice(), [text] if text.contains("write-ahead log")), "{texts:?}");
    let mut complete = table("events");
    complete.extra.insert("complete".to_owned(), Value::Bool(true));
    let events = open(&whole, &complete).unwrap();
    let outcome = read(events.as_ref(), OnError::Skip).unwrap();
    assert!(outcome.batch.num_rows() > 0);
    assert!(
        outcome.damage.iter().all(|lost| lost.reason.contains("write-ahead log")),
        "{:?}",
        outcome.damage
    );
    assert!(!outcome.damage.is_empty());
}

#[test]
fn filters_use_the_newest_schema() {
    let mut both = tree("file_blocks");
    let path = super_blocks(&both, "events").remove(0);
    let id = "0123456789abcdef0123456789abcdef";
    // Another tablet of the table, with the same rows: in its newer schema the key column `region` has been
    // renamed to `zone`, and `tag` to `region`.
    let newer = changed(&both.files[&path], |mut fields| {
        fields.retain(|(field, ..)| !matches!(field, 2 | 9));
        fields.push((2, 2, id.as_bytes().to_vec()));
        fields.push(number(9, 1000));
        renamed(&mut fields, &[("region", "zone"), ("tag", "region")]);
        fields
    });
    both.files.insert(path.replace(path.rsplit('/').next().unwrap(), id), newer);
    let events = open(&both, &table("events")).unwrap();
    assert!(events.schema().field_with_name("zone").is_ok());
    for label in ["label 1", "label 3", "nowhere"] {
        let value: ArrayRef = Arc::new(StringArray::from(vec![label]));
        let filter = Predicate::compare("region", Op::Eq, value);
        let opaque = Predicate::Or(vec![filter.clone(), filter.clone()]);
        let rows = |predicate| {
            let outcome =
                scan(events.as_ref(), &Scan { predicate: Some(predicate), ..Scan::default() }, None).unwrap();
            as_text(&outcome.batch)
        };
        assert_eq!(rows(filter), rows(opaque), "{label}");
    }
}

#[test]
fn a_table_of_arrays_does_not_affect_others() {
    let whole = tree("file_blocks");
    let rows = sorted(open(&whole, &table("numbers")).unwrap().as_ref());
    let mut with = whole.clone();
    for path in super_blocks(&whole, "events") {
        let arrays = changed(&whole.files[&path], |mut all| {
            for (_, _, schema) in all.iter_mut().filter(|(field, ..)| *field == 8) {
                let mut columns = fields(schema);
                let last = columns.iter_mut().rfind(|(field, ..)| *field == 1).unwrap();
                let mut column = fields(&last.2);
                column.retain(|(field, ..)| !matches!(field, 2 | 3));
                // An array of strings, as Kudu's sources describe it.
                let descriptor = message(&[(1, 2, message(&[number(1, 8)]))]);
                column.extend([(2, 2, b"tags".to_vec()), number(3, 21), (15, 2, descriptor)]);
                last.2 = message(&column);
                *schema = message(&columns);
            }
            all
        });
        with.files.insert(path, arrays);
    }
    let e = open(&with, &table("events")).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Unsupported(_)), "{e}");
    let text = e.to_string();
    assert!(["columns of arrays", "`tags`", "tablet-meta/"].iter().all(|part| text.contains(part)), "{text}");
    // The server's other table is read, and both are listed.
    assert_eq!(sorted(open(&with, &table("numbers")).unwrap().as_ref()), rows);
    let tables = KuduFormat.tables(&with.source(), &OpenOptions::default()).unwrap();
    assert_eq!(tables.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["events", "numbers"]);
}

#[test]
fn an_empty_container_needs_no_key() {
    let whole = tree("encrypted");
    let rows = sorted(open(&whole, &table("numbers")).unwrap().as_ref());
    let mut hurt = whole.clone();
    let path = ending(&whole, ".metadata").remove(0);
    let folder = path.rsplit_once('/').unwrap().0;
    for ending in ["metadata", "data"] {
        let header = whole.files[&path].slice(..64);
        hurt.files.insert(format!("{folder}/00000000000000000000000000000000.{ending}"), header);
    }
    assert_eq!(sorted(open(&hurt, &table("numbers")).unwrap().as_ref()), rows);
}

#[test]
fn each_file_is_opened_with_the_key_that_fits() {
    let whole = tree("encrypted");
    let rows = sorted(open(&whole, &table("numbers")).unwrap().as_ref());
    let mut hurt = whole.clone();
    for path in ending(&whole, "instance").into_iter().filter(|p| !p.ends_with("block_manager_instance")) {
        // The key of a tenant is listed before the server's own key.
        let key = (3, 2, b"00112233445566778899aabbccddeeff".to_vec());
        let with = changed(&whole.files[&path], |mut fields| {
            fields.push((6, 2, message(&[key])));
            fields
        });
        hurt.files.insert(path, with);
    }
    assert_eq!(sorted(open(&hurt, &table("numbers")).unwrap().as_ref()), rows);
    // Damage to the first bytes of a block does not prevent the right key from being chosen.
    let path = ending(&whole, ".data").into_iter().find(|p| whole.files[p].len() > 5000).unwrap();
    let mut bytes = whole.files[&path].to_vec();
    bytes[4096] ^= 1;
    hurt.files.insert(path, bytes.into());
    let outcome = read(open(&hurt, &table("numbers")).unwrap().as_ref(), OnError::Skip).unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    match read(open(&hurt, &table("numbers")).unwrap().as_ref(), OnError::Raise) {
        Ok(outcome) => {
            assert!(outcome.error.is_none_or(|e| !matches!(e.kind(), ErrorKind::KeyUnavailable(_))))
        }
        Err(e) => assert!(!matches!(e.kind(), ErrorKind::KeyUnavailable(_)), "{e}"),
    }
}

/// Writes a column as a CFile.
fn cfile(values: ArrayRef, nullable: bool) -> Vec<u8> {
    let out = Sink::default();
    let batch = RecordBatch::try_from_iter_with_nullable([("value", values, nullable)]).unwrap();
    let writer = Writer::new(Box::new(out.clone()), &batch.schema(), &Options::default());
    let mut writer = Box::new(writer.unwrap());
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    out.take()
}

#[test]
fn long_values_are_divided_into_batches() {
    let mut tree = tree("file_blocks");
    let path = super_blocks(&tree, "numbers").remove(0);
    let mut blocks = Vec::new();
    let changed = changed(&tree.files[&path], |all| {
        let mut seen = 0;
        let rowset = |(field, kind, value): (u64, u8, Vec<u8>)| {
            seen += usize::from(field == 6);
            if field != 6 {
                return Some((field, kind, value));
            }
            // A rowset with only its columns, without deltas.
            let mut own = fields(&value);
            own.retain(|(field, ..)| matches!(field, 1..=3));
            if seen == 1 {
                for (_, _, column) in own.iter().filter(|(field, ..)| *field == 3) {
                    let block = fields(column).into_iter().find(|(field, ..)| *field == 2).unwrap().2;
                    let id = fields(&block).remove(0).2;
                    blocks.push(u64::from_le_bytes(id.try_into().unwrap()));
                }
            }
            (seen == 1).then(|| (6, kind, message(&own)))
        };
        all.into_iter().filter_map(rowset).collect()
    });
    tree.files.insert(path.clone(), changed);
    let rows = 54_000;
    let texts: Vec<String> = (0..6).map(|i| format!("{i}").repeat(40_000)).collect();
    let keys = Int32Array::from_iter_values((0..rows).map(|i| i % 6));
    let long = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(StringArray::from(texts))).unwrap();
    let columns: [(ArrayRef, bool); 2] =
        [(Arc::new(Int32Array::from_iter_values(0..rows)), false), (Arc::new(long), true)];
    for ((values, nullable), id) in columns.into_iter().zip(&blocks) {
        let path = ending(&tree, &format!("/{id:016}")).remove(0);
        tree.files.insert(path, cfile(values, nullable).into());
    }
    let mut options = coldframe_core::OpenOptions::default();
    let id = path.rsplit('/').next().unwrap().to_owned();
    options.extra.insert("tablet".to_owned(), Value::Str(id));
    let table = open(&tree, &options).unwrap();
    let mut next = 0;
    for split in table.splits(u64::MAX).unwrap() {
        let mut reader =
            ScanReader::try_new(table.as_ref(), &Scan::default(), &split, DamageLog::default()).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            let (keys, text) =
                (batch.column(0).as_primitive::<Int32Type>(), batch.column(1).as_string::<i32>());
            assert!(text.value_data().len() as u64 <= 2 * Limits::default().batch_bytes());
            for (key, value) in keys.values().iter().zip(text.iter()) {
                assert_eq!((*key, value.unwrap().len()), (next, 40_000));
                assert!(value.unwrap().starts_with(&(key % 6).to_string()));
                next += 1;
            }
        }
    }
    assert_eq!(next, rows);
}
