//! Rows that are gone: events delete or replace rows that no file of the table can have.
//!
//! ```text
//! delta_2_2/bucket_00000           rows of write 2, bucket 0
//! delete_delta_3_3/bucket_00000    deletes rows of write 2, and of write 1: delta_1_1 is missing
//! delete_delta_3_3/bucket_00001    deletes rows of write 2, bucket 1: delta_2_2/bucket_00001 is missing
//! ```
//!
//! A base has the rows of all writes up to its own. Events up to that write, which a minor compaction has merged with later
//! ones, concern rows that the base no longer has.

use coldframe_core::{Error, Fault, Notice};

use crate::events::Events;
use crate::state::{DataFile, Role};

/// The rows of one write and bucket, which no file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingRows {
    pub(crate) write: i64,
    bucket: i32,
    /// The number of these rows that events name. There may have been more.
    named: u64,
}

/// The rows that events name and that none of `files` can have. `base`: the last write of the base, if there is one.
pub(crate) fn missing_rows<'a>(
    events: &Events,
    files: impl Iterator<Item = &'a DataFile> + Clone,
    base: Option<i64>,
) -> Vec<MissingRows> {
    let may_have = |file: &DataFile, write: i64, bucket: i32| {
        // The base of a first compaction has a negative write, and the rows of write 0.
        let writes = match file.is_in_base() {
            true => i64::MIN..=file.last_write.max(0),
            false => file.write_id..=file.last_write,
        };
        file.role == Role::Rows && file.bucket == bucket && writes.contains(&write)
    };
    let referred = events.referred(base.unwrap_or(i64::MIN)).into_iter();
    referred
        .filter(|((write, bucket), _)| !files.clone().any(|file| may_have(file, *write, *bucket)))
        .map(|((write, bucket), named)| MissingRows { write, bucket, named })
        .collect()
}

impl MissingRows {
    fn describe(&self) -> String {
        match self.write {
            0 => format!("the rows of bucket {} from before the table was transactional", self.bucket),
            write => format!("the rows of write {write} in bucket {}", self.bucket),
        }
    }

    /// The damage that this is in a table that must be complete.
    pub(crate) fn to_fault(&self) -> Fault {
        let Self { write, bucket, named } = *self;
        let e = format!("expected a file with {named} rows that were deleted later, found none");
        let e = Error::corrupt(e).within(format!("write {write}, bucket {bucket}"));
        Fault::from_error(&e, 0..0, None)
    }
}

/// What to tell of missing rows; nothing if there are none.
pub(crate) fn notice(missing: &[MissingRows]) -> Option<Notice> {
    let first = missing.first()?;
    let others = match missing.len() - 1 {
        0 => String::new(),
        1 => ", and those of one other write or bucket".to_owned(),
        n => format!(", and those of {n} other writes or buckets"),
    };
    Some(Notice::PartialTable(format!(
        "no file has {}{others}, of which {} were deleted or replaced later: a base or delta, or a file of it, is missing \
         (complete=True treats this as damage, complete=False accepts it)",
        first.describe(),
        first.named,
    )))
}

#[cfg(test)]
mod tests {
    use coldframe_testing::folder::MemoryFolder;

    use super::*;
    use crate::events::tests::batch;
    use crate::state::{base_write, current_files};

    fn missing(paths: &[&str], events: &[(i32, i64, i32, i64, i64)]) -> Vec<(i64, i32, u64)> {
        let folder =
            paths.iter().fold(MemoryFolder::default(), |folder, path| folder.with(path, &b"ORC"[..]));
        let mut all = Events::default();
        all.add(&batch(events), 0).unwrap();
        all.complete();
        let files = current_files(&folder, None).unwrap();
        let missing = missing_rows(&all, files.iter(), base_write(&folder, None).unwrap());
        missing.into_iter().map(|rows| (rows.write, rows.bucket, rows.named)).collect()
    }

    #[test]
    fn deleted_rows_need_a_file() {
        let deletes = [(2, 1, 0, 0, 3), (2, 1, 0, 1, 3), (2, 2, 1, 0, 3)];
        let whole = ["delta_1_1/bucket_00000", "delta_2_2/bucket_00001", "delete_delta_3_3/bucket_00000"];
        assert_eq!(missing(&whole, &deletes), []);
        assert_eq!(missing(&whole[1..], &deletes), [(1, 0, 2)]);
        assert_eq!(missing(&["delta_1_2/bucket_00000"], &deletes), [(2, 1, 1)]);
        assert_eq!(missing(&["base_2/bucket_00000", "base_2/bucket_00001"], &deletes), []);
        // Rows from before the table was transactional.
        assert_eq!(missing(&["000000_0"], &[(2, 0, 0, 7, 3)]), []);
        assert_eq!(missing(&["000000_0"], &[(2, 0, 1, 7, 3)]), [(0, 1, 1)]);
    }

    #[test]
    fn a_base_lacks_rows_that_were_deleted_before_it() {
        let merged = [(2, 1, 0, 0, 3), (2, 4, 0, 0, 6)];
        assert_eq!(missing(&["base_5/bucket_00001", "delete_delta_3_8/bucket_00000"], &merged), [(4, 0, 1)]);
        // All rows of the base are deleted.
        assert_eq!(missing(&["base_5/_orc_acid_version", "delete_delta_3_8/bucket_00000"], &merged[..1]), []);
    }
}
