//! Hudi tables made by hand, from the rules of the format: timelines and log files in memory.
//!
//! A row has a commit time, a key, an ordering value and a name. Base files are made by the caller.

use serde_json::json;

use crate::folder::MemoryFolder;

/// The Avro schema of the rows.
pub const SCHEMA: &str = r#"{"type":"record","name":"lab","fields":[
    {"name":"_hoodie_commit_time","type":["null","string"],"default":null},
    {"name":"_hoodie_record_key","type":["null","string"],"default":null},
    {"name":"id","type":["null","string"],"default":null},{"name":"ts","type":["null","long"],"default":null},
    {"name":"name","type":["null","string"],"default":null}]}"#;

/// A row: commit time, key, ordering value, name.
pub type Row<'a> = (&'a str, &'a str, i64, Option<&'a str>);

/// A table.
#[derive(Clone, Debug)]
pub struct HudiTable {
    /// Its files.
    pub folder: MemoryFolder,
    new_layout: bool,
}

impl HudiTable {
    /// A table without partitions and commits, of table version 6 or 9. `more`: further lines of its properties.
    pub fn new(version: u32, more: &str) -> Self {
        let new_layout = version >= 8;
        let properties = format!(
            "hoodie.table.name=lab\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.version={version}\n\
             hoodie.timeline.layout.version={}\nhoodie.table.recordkey.fields=id\n{more}\n",
            if new_layout { 2 } else { 1 },
        );
        let folder = MemoryFolder::default()
            .with(".hoodie/hoodie.properties", properties)
            .with(".hoodie_partition_metadata", "commitTime=1\npartitionDepth=0\n");
        Self { folder, new_layout }
    }

    /// With a file.
    #[must_use]
    pub fn file(mut self, path: &str, bytes: impl Into<bytes::Bytes>) -> Self {
        self.folder.files.insert(path.to_owned(), bytes.into());
        self
    }

    /// Without a file.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        assert!(self.folder.files.remove(path).is_some(), "{path}");
        self
    }

    /// With a completed action. `written`: the names of the files that it wrote; `replaced`: file groups.
    #[must_use]
    pub fn commit(self, instant: &str, action: &str, written: &[&str], replaced: &[&str]) -> Self {
        let stats: Vec<_> = written
            .iter()
            .map(|path| json!({"fileId": group_of(path), "path": path, "numWrites": 1}))
            .collect();
        let content = json!({
            "partitionToWriteStats": {"": stats}, "partitionToReplaceFileIds": {"": replaced},
            "extraMetadata": {"schema": SCHEMA},
        });
        let path = match self.new_layout {
            true => format!(".hoodie/timeline/{instant}_{}.{action}", after(instant)),
            false => format!(".hoodie/{instant}.{action}"),
        };
        self.file(&path, content.to_string())
    }

    /// With an action that is not completed.
    #[must_use]
    pub fn pending(self, instant: &str, action: &str) -> Self {
        let folder = if self.new_layout { ".hoodie/timeline" } else { ".hoodie" };
        let path = format!("{folder}/{instant}.{action}.requested");
        self.file(&path, "")
    }
}

/// The group in a file's name.
fn group_of(name: &str) -> &str {
    name.trim_start_matches('.').split('_').next().unwrap_or_default()
}

/// The time at which an instant is completed.
pub fn after(instant: &str) -> String {
    (instant.parse::<u64>().unwrap() + 5).to_string()
}

/// A block of a log. `header`: keys and texts.
pub fn block(kind: i32, header: &[(i32, &str)], content: &[u8]) -> Vec<u8> {
    let mut body = [1_i32, kind, count(header.len())].map(i32::to_be_bytes).concat();
    for (key, text) in header {
        body.extend(key.to_be_bytes());
        body.extend(count(text.len()).to_be_bytes());
        body.extend(text.as_bytes());
    }
    body.extend(i64::from(count(content.len())).to_be_bytes());
    body.extend(content);
    body.extend(0_i32.to_be_bytes());
    let size = i64::from(count(body.len())) + 8;
    let mut block = b"#HUDI#".to_vec();
    block.extend(size.to_be_bytes());
    block.extend(body);
    block.extend((size + 6).to_be_bytes());
    block
}

/// A block of records.
pub fn avro_block(instant: &str, rows: &[Row<'_>]) -> Vec<u8> {
    block(3, &[(0, instant), (2, SCHEMA)], &records(rows))
}

/// A block of a log compaction: the merged records of the blocks of the instants `of`.
pub fn compacted_block(instant: &str, of: &str, rows: &[Row<'_>]) -> Vec<u8> {
    block(3, &[(0, instant), (2, SCHEMA), (4, of)], &records(rows))
}

/// Records as in a block of Avro.
fn records(rows: &[Row<'_>]) -> Vec<u8> {
    let mut content = [3, count(rows.len())].map(i32::to_be_bytes).concat();
    for (time, key, ts, name) in rows {
        let mut datum = Vec::new();
        for value in [time, key, key] {
            datum.push(2);
            text(&mut datum, value);
        }
        datum.push(2);
        long(&mut datum, *ts);
        match name {
            Some(name) => {
                datum.push(2);
                text(&mut datum, name);
            }
            None => datum.push(0),
        }
        content.extend(count(datum.len()).to_be_bytes());
        content.extend(datum);
    }
    content
}

/// A block of deletes. An ordering value of `None` is the default, the integer 0.
pub fn delete_block(instant: &str, keys: &[(&str, Option<i64>)]) -> Vec<u8> {
    let mut list = Vec::new();
    long(&mut list, i64::from(count(keys.len())));
    for (key, order) in keys {
        list.push(2);
        text(&mut list, key);
        list.extend([2, 0]);
        match order {
            // The branches of the union: null, boolean, int, long ..
            Some(order) => {
                list.push(6);
                long(&mut list, *order);
            }
            None => list.extend([4, 0]),
        }
    }
    list.push(0);
    let mut content = [3, count(list.len())].map(i32::to_be_bytes).concat();
    content.extend(list);
    block(1, &[(0, instant)], &content)
}

/// A block of deletes as Hudi 0.10 writes them: Java objects.
pub fn kryo_block(instant: &str, keys: &[&str]) -> Vec<u8> {
    let ascii = |out: &mut Vec<u8>, text: &str| {
        let (last, front) = text.as_bytes().split_last().unwrap();
        out.extend(front);
        out.push(last | 0x80);
    };
    let mut list = vec![1, 0];
    ascii(&mut list, "[Lorg.apache.hudi.common.model.HoodieKey;");
    list.extend([1, u8::try_from(keys.len() + 1).unwrap()]);
    for (number, key) in keys.iter().enumerate() {
        list.extend([1, 1]);
        if number == 0 {
            ascii(&mut list, "org.apache.hudi.common.model.HoodieKey");
        }
        list.extend([1, 1, 0x81, 1]);
        ascii(&mut list, key);
    }
    let mut content = [1, count(list.len())].map(i32::to_be_bytes).concat();
    content.extend(list);
    block(1, &[(0, instant)], &content)
}

/// A block that rolls an instant back.
pub fn rollback_block(instant: &str, target: &str) -> Vec<u8> {
    block(0, &[(0, instant), (1, target), (3, "0")], &[])
}

/// Tables of logs alone, as inputs of fuzzing: of both layouts, with all kinds of blocks.
pub fn seeds() -> Vec<MemoryFolder> {
    let (first, second, third) = ("20260101000000001", "20260101000000101", "20260101000000201");
    let log = [
        avro_block(first, &[(first, "a", 1, Some("x")), (first, "b", 2, None)]),
        delete_block(second, &[("a", Some(5)), ("c", None)]),
        kryo_block(second, &["b2", "b3"]),
        rollback_block(third, "20260101000000150"),
        avro_block(third, &[(third, "b", 1, Some("y"))]),
    ];
    let properties = "hoodie.table.precombine.field=ts\nhoodie.compaction.payload.class=\
                      org.apache.hudi.common.model.DefaultHoodieRecordPayload";
    let old = format!(".g-0_{first}.log.1_0-1-2");
    let old = HudiTable::new(6, properties)
        .commit(first, "deltacommit", &[&old], &[])
        .commit(second, "deltacommit", &[&old], &[])
        .commit(third, "deltacommit", &[&old], &[])
        .file(&old, log.concat());
    let new = format!(".g-0_{second}.log.1_0-1-2");
    let new =
        HudiTable::new(9, "hoodie.table.ordering.fields=ts\nhoodie.record.merge.mode=EVENT_TIME_ORDERING")
            .commit(second, "deltacommit", &[&new], &[])
            .file(
                &new,
                [avro_block(second, &[(second, "a", 1, Some("x"))]), delete_block(second, &[("a", Some(0))])]
                    .concat(),
            );
    vec![old.folder, new.folder]
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap()
}

fn long(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = (value << 1 ^ value >> 63).cast_unsigned();
    while zigzag > 0x7f {
        out.push(u8::try_from(zigzag & 0x7f).unwrap() | 0x80);
        zigzag >>= 7;
    }
    out.push(u8::try_from(zigzag).unwrap());
}

fn text(out: &mut Vec<u8>, text: &str) {
    long(out, i64::from(count(text.len())));
    out.extend(text.as_bytes());
}
