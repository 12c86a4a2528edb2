//! What users should know about a table though it is no error.

/// Something that the user of an open file should know, though it is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The bytes fit several layouts, and the reader chose one.
    AmbiguousDialect(String),
    /// Columns are encrypted, and their masked values are returned.
    EncryptedColumns(String),
    /// Parts of the table are missing, though nothing proves that they should be present.
    PartialTable(String),
    /// Files of other kinds in the table's folder, which are not read: their names and kinds.
    LeftOut(String),
}

impl Notice {
    /// The message.
    pub fn text(&self) -> String {
        match self {
            Self::AmbiguousDialect(text) | Self::EncryptedColumns(text) | Self::PartialTable(text) => {
                text.clone()
            }
            Self::LeftOut(files) => format!("left out, because no format reads them: {files}"),
        }
    }
}
