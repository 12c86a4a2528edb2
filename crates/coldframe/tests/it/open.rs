//! Opening: which bytes it reads, reopening in another process without reading, and its errors.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use coldframe::{ErrorKind, OpenOptions, ReadAt, Result, Scan, Source, detect, open, open_source};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/rcfile/files").join(name)
}

#[derive(Debug)]
struct Logged {
    bytes: Bytes,
    log: Mutex<Vec<Range<u64>>>,
}

impl Logged {
    fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { bytes: std::fs::read(fixture(name)).unwrap().into(), log: Mutex::default() })
    }

    fn requests(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

impl ReadAt for Logged {
    fn len(&self) -> u64 {
        ReadAt::len(&self.bytes)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.log.lock().unwrap().extend_from_slice(ranges);
        self.bytes.read_ranges(ranges)
    }
}

fn rows(file: &coldframe::File) -> usize {
    let splits = file.table.splits(1000).unwrap();
    let mut rows = 0;
    for split in splits {
        let mut reader = file.scan(&Scan::default(), &split).unwrap();
        while let Some(batch) = reader.next_batch().unwrap() {
            rows += batch.num_rows();
        }
    }
    rows
}

#[test]
fn opening_takes_one_request_and_reopening_no_request() {
    let source = Logged::new("binary_lz4.rc");
    let file =
        open_source(Source::file("a.rc", source.clone()), None, &OpenOptions::default(), Vec::new()).unwrap();
    assert_eq!(file.table.format(), "rcfile");
    assert_eq!(source.requests().len(), 1, "recognised and opened by the same bytes");

    let kept = file.recorded.as_ref().clone();
    let elsewhere = Logged::new("binary_lz4.rc");
    let again =
        open_source(Source::file("a.rc", elsewhere.clone()), Some("rcfile"), &OpenOptions::default(), kept);
    assert!(elsewhere.requests().is_empty());
    assert_eq!(rows(&again.unwrap()), 200);
    assert_eq!(rows(&file), 200);
}

#[test]
fn opening_errors_name_the_reason() {
    let bytes = |b: &'static [u8]| Source::file("x", Arc::new(Bytes::from_static(b)));
    assert!(detect(&bytes(b"PAR1....")).unwrap().is_none());
    let open_bytes =
        |b, format| open_source(bytes(b), format, &OpenOptions::default(), Vec::new()).unwrap_err();
    assert!(matches!(open_bytes(b"PAR1....", None).kind(), ErrorKind::Unsupported(_)));
    let e = open_bytes(b"PAP1....", None);
    assert!(matches!(e.kind(), ErrorKind::Corrupt(_)));
    assert!(e.to_string().starts_with("x: byte 0: magic: expected the magic of a known format"), "{e}");
    assert!(matches!(open_bytes(b"", None).kind(), ErrorKind::Corrupt(_)));
    assert!(matches!(open_bytes(b"RCF\x01", Some("orc9")).kind(), ErrorKind::Unsupported(_)));
    let e = open("no/such/file", None, &OpenOptions::default()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::NotFound(_)));
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let e = open(folder.as_path(), None, &OpenOptions::default()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Unsupported(_)), "{e}");

    let mut options = OpenOptions::default();
    options.extra.insert("max_columns".into(), coldframe::Value::Int(2));
    let e = open(fixture("binary_lz4.rc"), None, &options).unwrap_err();
    assert!(e.to_string().contains("`max_columns`"), "{e}");
    options.extra.insert("seperator".into(), "x".into());
    let e = open(fixture("binary_lz4.rc"), None, &options).unwrap_err();
    assert!(e.to_string().contains("rcfile has no option `seperator`; it knows: serde, "), "{e}");
}

#[test]
fn a_failed_write_leaves_no_file() {
    use arrow_array::{ArrayRef, Int32Array, RecordBatch, RecordBatchIterator};
    let folder = std::env::temp_dir().join(format!("coldframe-open-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let schema = batch.schema();
    let dest = folder.join("a.rc");
    let target = coldframe::Dest::new(&dest, &Default::default(), coldframe::store::Mode::Over).unwrap();
    let write = |stop: bool| {
        let mut data = RecordBatchIterator::new([Ok(batch.clone())], schema.clone());
        coldframe::write_file(&mut data, &target, "rcfile", &Default::default(), |_| {
            if stop { Err(coldframe::Error::invalid("stop")) } else { Ok(()) }
        })
    };
    assert!(write(true).is_err());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    let written = write(false).unwrap();
    assert_eq!((written.rows, written.bytes), (2, std::fs::metadata(&dest).unwrap().len()));
    assert_eq!(rows(&open(dest.as_path(), None, &OpenOptions::default()).unwrap()), 2);
    std::fs::remove_dir_all(&folder).unwrap();
}
