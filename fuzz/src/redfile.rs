//! What the target of Redfile does with its bytes.

use coldframe_core::{OnError, OpenOptions, SchemaSpec, TableFile, Value};
use coldframe_redfile::RedFile;
use coldframe_testing::fixture::source;
use coldframe_testing::{layout, rows};

use crate::limits;

/// In each way of opening: all rows are valid Arrow or there is an error, damage is survived where that is asked for,
/// each byte has one place.
pub fn open_scan(bytes: &[u8]) {
    for file in opened(bytes) {
        rows::read(&file, OnError::Raise).unwrap();
        for on_error in [OnError::Skip, OnError::Null] {
            let outcome = rows::read(&file, on_error).unwrap();
            assert!(outcome.error.is_none(), "{:?}", outcome.error);
        }
        layout::assert_tiled(&file.inspect().unwrap());
        file.verify_structure().unwrap();
        let _ = file.metadata();
    }
}

/// By its footer; by any footer; by its pages and the schema of the file that the footer describes, if there is one.
fn opened(bytes: &[u8]) -> Vec<RedFile> {
    let mut options = OpenOptions { limits: limits(), ..OpenOptions::default() };
    let plain = RedFile::open(&source(bytes.to_vec()), &options).ok();
    let schema = plain.as_ref().map(|file| SchemaSpec::Arrow(file.schema().clone()));
    let mut files: Vec<RedFile> = plain.into_iter().collect();
    options.extra.insert("recover".to_owned(), Value::Bool(true));
    files.extend(RedFile::open(&source(bytes.to_vec()), &options));
    if let (Some(schema), Some((_, cut))) = (schema, bytes.split_last()) {
        options.schema = Some(schema);
        files.extend(RedFile::open(&source(cut.to_vec()), &options));
    }
    files
}
