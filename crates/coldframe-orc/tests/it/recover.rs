//! Reads files without their tail: the rows come from their stripes.

use crate::support;

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use coldframe_core::{Format, OnError, OpenOptions, SchemaSpec, Source, TableFile, Value};
use coldframe_orc::OrcFormat;
use coldframe_store::{LocalFile, LocalFolder};
use coldframe_testing::layout::assert_tiled;
use coldframe_testing::{Dice, mutate, rows};
use support::{open, written};

fn table(n: i64) -> RecordBatch {
    let mut dice = Dice::new(1);
    let ids: arrow_array::ArrayRef = Arc::new((0..n).collect::<arrow_array::Int64Array>());
    let texts = (0..n).map(|i| (i % 7 > 0).then(|| format!("word {:x}", dice.roll())));
    let texts: arrow_array::ArrayRef = Arc::new(texts.collect::<arrow_array::StringArray>());
    RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("word", texts, true)]).unwrap()
}

const DDL: &str = "id bigint, word string";
const CODECS: [&str; 6] = ["none", "zlib", "snappy", "lz4", "zstd", "lzo"];

/// A file of four stripes.
fn stripes(codec: &str) -> Bytes {
    let options = [
        ("codec", Value::from(codec)),
        ("stripe_rows", Value::Int(1000)),
        ("row_index_stride", Value::Int(300)),
    ];
    written(&table(4000), &options)
}

fn recovering(schema: Option<&str>) -> OpenOptions {
    let mut options =
        OpenOptions { schema: schema.map(|ddl| SchemaSpec::Ddl(ddl.to_owned())), ..OpenOptions::default() };
    options.extra.insert("recover".into(), Value::Bool(true));
    options
}

fn ends(bytes: &Bytes) -> Vec<usize> {
    let file = open("whole", bytes.clone(), &OpenOptions::default()).unwrap().file;
    stripe_ends(file.as_ref())
}

/// Where the stripes end, according to the file.
fn stripe_ends(file: &dyn TableFile) -> Vec<usize> {
    let metadata = file.metadata().unwrap();
    let Some(Value::List(stripes)) = metadata.get("stripes") else { panic!("{metadata:?}") };
    let number = |stripe: &Value, name: &str| match stripe.get(name) {
        Some(Value::UInt(n)) => usize::try_from(*n).unwrap(),
        Some(Value::Int(n)) => usize::try_from(*n).unwrap(),
        other => panic!("{other:?}"),
    };
    let parts = ["offset", "index_length", "data_length", "footer_length"];
    stripes.iter().map(|stripe| parts.iter().map(|part| number(stripe, part)).sum()).collect()
}

fn read(file: &dyn TableFile) -> rows::Outcome {
    let outcome = rows::read(file, OnError::Skip).unwrap();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_tiled(&file.inspect().unwrap());
    outcome
}

#[test]
fn a_lost_tail_loses_no_stripe() {
    for codec in CODECS {
        let (bytes, want) = (stripes(codec), table(4000));
        let ends = ends(&bytes);
        assert_eq!(ends.len(), 4);
        // The tail is missing as a whole or in part, or a stripe is truncated.
        for (cut, rows) in [(ends[3], 4000), (ends[3] + 9, 4000), (ends[3] - 1, 3000), (ends[1] + 50, 2000)] {
            let cut = bytes.slice(..cut);
            assert!(open(codec, cut.clone(), &OpenOptions::default()).is_err());
            let file = open(codec, cut.clone(), &recovering(Some(DDL))).unwrap().file;
            let got = read(file.as_ref());
            assert_eq!(got.batch.num_rows(), rows, "{codec}");
            assert_eq!(got.batch, want.slice(0, rows), "{codec}");
            let lost: u64 = got.damage.iter().map(|d| d.bytes.end - d.bytes.start).sum();
            assert_eq!(lost, cut.len() as u64 - ends[rows / 1000 - 1] as u64, "{codec}: {:?}", got.damage);
        }
    }
}

/// If a stripe's footer is damaged, only that stripe is lost.
#[test]
fn a_lost_stripe_loses_no_other() {
    for codec in CODECS {
        let bytes = stripes(codec);
        let ends = ends(&bytes);
        let mut damaged = bytes[..ends[3]].to_vec();
        damaged[ends[1] - 12..ends[1]].fill(0xff);
        let file = open(codec, damaged.into(), &recovering(Some(DDL))).unwrap().file;
        let got = read(file.as_ref());
        let want = arrow_select::concat::concat_batches(
            &table(4000).schema(),
            &[table(4000).slice(0, 1000), table(4000).slice(2000, 2000)],
        );
        assert_eq!(got.batch, want.unwrap(), "{codec}");
        let lost: Vec<_> = got.damage.iter().map(|d| (d.bytes.start, d.bytes.end, d.rows_lost)).collect();
        let end = ends[3] as u64;
        assert_eq!(lost, [(ends[0] as u64, ends[1] as u64, None), (end, end, None)], "{codec}");
        // The number of lost rows is unknown, so a read with `raise` fails.
        let raised = rows::read(file.as_ref(), OnError::Raise).unwrap();
        assert!(raised.error.is_some_and(|e| e.is_damage()), "{codec}");
    }
}

/// A schema supplies the types of a file without its tail, and types that a file leaves open. The schema must
/// not contradict the file's own types.
#[test]
fn a_schema_must_not_contradict_the_file() {
    let mut options = recovering(Some(DDL));
    options.extra.clear();
    let file = open("whole", stripes("none"), &options).unwrap().file;
    assert_eq!(read(file.as_ref()).batch, table(4000));
    let other = OpenOptions { schema: Some(SchemaSpec::Ddl("id int".to_owned())), ..options };
    let e = open("whole", stripes("none"), &other).map(|_| ()).unwrap_err();
    assert!(matches!(e.kind(), coldframe_core::ErrorKind::Schema(_)), "{e}");
}

/// A filter works on a recovered file as on any other file.
#[test]
fn recovered_files_are_pruned() {
    let bytes = stripes("zlib");
    let ends = ends(&bytes);
    let file = open("cut", bytes.slice(..ends[2]), &recovering(Some(DDL))).unwrap().file;
    let value: arrow_array::ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![2950]));
    let scan = coldframe_core::Scan {
        predicate: Some(coldframe_core::Predicate::compare("id", coldframe_core::Op::Ge, value)),
        on_error: OnError::Skip,
        ..coldframe_core::Scan::default()
    };
    let got = rows::scan(file.as_ref(), &scan, None).unwrap();
    assert_eq!(got.batch, table(4000).slice(2950, 50));
}

fn open_in(folder: &Path, name: &str, options: &OpenOptions) -> coldframe_core::Result<Arc<dyn TableFile>> {
    let source = Source::File {
        path: name.into(),
        bytes: Arc::new(LocalFile::open(folder.join(name)).unwrap()),
        siblings: Some(Arc::new(LocalFolder::new(folder))),
    };
    OrcFormat.open(&source, options)
}

#[test]
fn a_named_file_beside_it_supplies_the_types() {
    let folder = tempfile::tempdir().unwrap();
    for codec in CODECS {
        let bytes = stripes(codec);
        std::fs::write(folder.path().join("000000_0"), b"no file of this format").unwrap();
        std::fs::write(folder.path().join("000001_0"), &bytes[..ends(&bytes)[2]]).unwrap();
        let e = open_in(folder.path(), "000001_0", &recovering(None)).unwrap_err();
        assert!(e.to_string().contains("schema_from"), "{e}");
        std::fs::write(folder.path().join("000002_0"), &bytes).unwrap();
        let mut named = recovering(None);
        named.extra.insert("schema_from".into(), Value::from("000002_0"));
        // A file that the user does not name may be of another table, with other names and types.
        let e = open_in(folder.path(), "000001_0", &recovering(None)).unwrap_err();
        assert!(e.to_string().contains("schema_from") && e.to_string().contains("000002_0"), "{e}");
        let file = open_in(folder.path(), "000001_0", &named).unwrap();
        assert_eq!(read(file.as_ref()).batch, table(4000).slice(0, 3000), "{codec}");
        std::fs::remove_file(folder.path().join("000002_0")).unwrap();
    }
}

/// Another file was appended to the first file: the first tail is now inside the file, and supplies types and
/// stripes.
#[test]
fn an_earlier_tail_inside_the_file_is_used() {
    for codec in CODECS {
        let bytes = stripes(codec);
        let longer = [bytes.as_ref(), &bytes[3..ends(&bytes)[0]]].concat();
        let file = open(codec, longer.into(), &recovering(None)).unwrap().file;
        let got = read(file.as_ref());
        assert_eq!(got.batch.num_rows(), 5000, "{codec}");
        assert_eq!(got.batch.slice(0, 4000), table(4000), "{codec}");
        assert_eq!(got.batch.slice(4000, 1000), table(4000).slice(0, 1000), "{codec}");
    }
}

/// Every file of the corpus is read without its tail, with its own types, and gives all rows or an error.
#[test]
fn fixtures_without_their_tails_give_all_rows_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (mut whole, mut refused) = (0, 0);
    for fixture in support::fixtures() {
        let bytes = fixture.bytes();
        let mut options = recovering(None);
        options.extra.insert("timestamp_unit".into(), Value::from("us"));
        options.extra.insert("schema_from".into(), Value::from("whole"));
        let Ok(opened) = open(&fixture.name(), bytes.clone(), &options) else { continue };
        let Some(end) = stripe_ends(opened.file.as_ref()).into_iter().max() else { continue };
        let encrypted = opened.file.metadata().unwrap().get("encryption").is_some();
        if bytes.len() > 300_000 {
            continue;
        }
        let truth = rows::read(opened.file.as_ref(), OnError::Skip).unwrap();
        std::fs::write(folder.path().join("whole"), &bytes).unwrap();
        std::fs::write(folder.path().join("cut"), &bytes[..end]).unwrap();
        match open_in(folder.path(), "cut", &options) {
            Ok(cut) => {
                let got = read(cut.as_ref());
                assert!(got.batch.num_rows() <= truth.batch.num_rows(), "{}", fixture.name());
                let same = got.batch.num_rows() == truth.batch.num_rows();
                assert!(same || !got.damage.is_empty(), "{}: rows lost without a record", fixture.name());
                if same && truth.damage.is_empty() && !encrypted {
                    assert!(got.batch.columns() == truth.batch.columns(), "{}", fixture.name());
                    whole += 1;
                } else {
                    println!(
                        "{}: {} of {} rows",
                        fixture.name(),
                        got.batch.num_rows(),
                        truth.batch.num_rows()
                    );
                }
            }
            Err(e) => {
                println!("{}: {e}", fixture.name());
                refused += 1;
            }
        }
    }
    println!("{whole} whole, {refused} refused");
    assert!(whole > refused);
}

/// Damage in the middle of a recovered file gives errors and damage records, never a panic.
#[test]
fn randomly_changed_files_without_tails_give_rows_or_an_error() {
    for (seed, codec) in CODECS.into_iter().enumerate() {
        let bytes = stripes(codec);
        let cut = bytes.slice(..ends(&bytes)[1]);
        let mut dice = Dice::new(seed as u64);
        for _ in 0..25 {
            let mutant = mutate::shaken(&cut, &mut dice);
            let Ok(opened) = open(codec, mutant, &recovering(Some(DDL))) else { continue };
            let got = read(opened.file.as_ref());
            assert!(got.batch.num_rows() <= 4000);
            opened.file.verify_structure().unwrap();
        }
    }
}

/// If the remains of the tail prove that no stripe is missing, no damage is recorded, and a read with `raise`
/// succeeds.
#[test]
fn no_damage_where_the_rest_of_the_tail_proves_all_stripes() {
    for codec in CODECS {
        let (bytes, want) = (stripes(codec), table(4000));
        let (ends, mut proofs) = (ends(&bytes), Vec::new());
        for cut in (ends[3]..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
            let file = open(codec, bytes.slice(..cut), &recovering(Some(DDL))).unwrap().file;
            let raised = rows::read(file.as_ref(), OnError::Raise).unwrap();
            let passed = read(file.as_ref());
            assert_eq!(passed.batch, want, "{codec}: {cut}");
            assert_eq!(raised.error.is_none(), passed.damage.is_empty(), "{codec}: {cut}");
            let recovered = file.metadata().unwrap().get("recovered").cloned().unwrap();
            let proof = recovered.get("all_proved_by").cloned().unwrap();
            assert_eq!(proof == Value::Null, raised.error.is_some(), "{codec}: {cut}");
            if proofs.last() != Some(&proof) {
                proofs.push(proof);
            }
        }
        // The longer the file, the more of its tail remains.
        let [nothing, statistics, footer] = proofs.as_slice() else { panic!("{codec}: {proofs:?}") };
        assert_eq!(nothing, &Value::Null, "{codec}");
        assert_eq!(statistics, &Value::from("the statistics of stripes"), "{codec}");
        assert_eq!(footer, &Value::from("the footer"), "{codec}");
    }
}

/// With the footer's list, the record of a damaged stripe has its number of rows.
#[test]
fn a_footers_list_counts_the_rows_of_a_lost_stripe() {
    for codec in CODECS {
        let bytes = stripes(codec);
        let ends = ends(&bytes);
        let mut damaged = bytes[..bytes.len() - 1].to_vec();
        damaged[ends[1] - 12..ends[1]].fill(0xff);
        let file = open(codec, damaged.into(), &recovering(Some(DDL))).unwrap().file;
        let got = read(file.as_ref());
        let lost: Vec<_> = got.damage.iter().map(|d| (d.bytes.start, d.bytes.end, d.rows_lost)).collect();
        assert_eq!(lost, [(ends[0] as u64, ends[1] as u64, Some(1000))], "{codec}: {:?}", got.damage);
        assert_eq!(got.batch.num_rows(), 3000, "{codec}");
    }
}

/// A file without its end, with more damage: changed bytes in stripe footers, a missing stripe.
fn shortened(bytes: &Bytes, ends: &[usize], dice: &mut Dice) -> Bytes {
    let cut = dice.below(bytes.len());
    let mut left = bytes[..cut.max(1)].to_vec();
    let stripe = dice.below(ends.len());
    let start = if stripe == 0 { 3 } else { ends[stripe - 1] };
    match dice.below(3) {
        0 if ends[stripe] <= left.len() => left[ends[stripe] - 12..ends[stripe]].fill(0xff),
        1 if ends[stripe] <= left.len() => drop(left.drain(start..ends[stripe])),
        _ => {}
    }
    left.into()
}

/// Recovery obeys these laws: returned rows are rows of the file, in order and without duplicates. If rows
/// are missing, reads with `skip` and `null` record damage, and a read with `raise` fails. Without a record,
/// no row is missing.
#[test]
fn only_rows_of_the_file_are_recovered_and_every_loss_is_recorded() {
    let want = rows::as_text(&table(4000));
    for (seed, codec) in ["none", "zlib", "zstd"].into_iter().enumerate() {
        let bytes = stripes(codec);
        let (ends, mut dice) = (ends(&bytes), Dice::new(100 + seed as u64));
        for _ in 0..40 {
            let mutant = shortened(&bytes, &ends, &mut dice);
            let Ok(opened) = open(codec, mutant, &recovering(Some(DDL))) else { continue };
            let raised = rows::read(opened.file.as_ref(), OnError::Raise).unwrap();
            for mode in [OnError::Skip, OnError::Null] {
                let got = rows::read(opened.file.as_ref(), mode).unwrap();
                assert!(got.error.is_none(), "{codec}: {:?}", got.error);
                let mut rest = want.iter();
                let recovered = rows::as_text(&got.batch);
                assert!(
                    recovered.iter().all(|row| rest.any(|of| of == row)),
                    "{codec}: other rows, or some twice"
                );
                let missing = want.len() - recovered.len();
                assert!(
                    missing == 0 || !got.damage.is_empty(),
                    "{codec}: {missing} rows lost without a record"
                );
                assert_eq!(got.damage.is_empty(), raised.error.is_none(), "{codec}: {:?}", got.damage);
                let recorded = got.damage.iter().map(|d| d.rows_lost).sum::<Option<u64>>();
                assert!(
                    recorded.is_none_or(|recorded| recorded == missing as u64),
                    "{codec}: {missing} lost, {recorded:?} recorded"
                );
            }
        }
    }
}
