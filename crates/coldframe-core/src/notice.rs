//! What is told about a table without being an error.

/// Something that the user of an open file should know, though it is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The bytes fit several layouts; one was assumed.
    AmbiguousDialect(String),
    /// Columns are encrypted; their masked values are read.
    EncryptedColumns(String),
    /// Parts of the table are missing here, and nothing proves that they should be here.
    PartialTable(String),
    /// Files that lie among those of the table are of other kinds, and not read: their names and kinds.
    LeftOut(String),
}

impl Notice {
    /// What there is to say.
    pub fn text(&self) -> String {
        match self {
            Self::AmbiguousDialect(text) | Self::EncryptedColumns(text) | Self::PartialTable(text) => {
                text.clone()
            }
            Self::LeftOut(files) => format!("left out, since no format here reads them: {files}"),
        }
    }
}
