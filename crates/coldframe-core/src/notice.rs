//! Notes for the user about a table, which are not errors.

/// A note for the user of an open file, which is not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The bytes fit several layouts, and the reader chose one.
    AmbiguousDialect(String),
    /// The file does not state the calendar of its old days, and its writer used more than one.
    AmbiguousCalendar(String),
    /// Columns are encrypted, and their masked values are returned.
    EncryptedColumns(String),
    /// Parts of the table seem to be missing, without proof that they ever existed.
    PartialTable(String),
    /// Files of other kinds in the table's folder, which are not read: their names and kinds.
    LeftOut(String),
    /// The index of a file contradicts its values, so that part of the file was read in full.
    WrongIndex(String),
}

impl Notice {
    /// The message.
    pub fn text(&self) -> String {
        match self {
            Self::AmbiguousDialect(text)
            | Self::AmbiguousCalendar(text)
            | Self::EncryptedColumns(text)
            | Self::PartialTable(text) => text.clone(),
            Self::WrongIndex(part) => {
                format!("its index is wrong, so this part was read in full without it: {part}")
            }
            Self::LeftOut(files) => format!("left out, because no format reads them: {files}"),
        }
    }
}
