//! Notices about a table for the user. A notice is no error.

/// A notice about an open file for the user. It is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The bytes can be read with several layouts, and the reader chose one of them.
    AmbiguousDialect(String),
    /// Columns are encrypted; their values are returned as masked by the writer.
    EncryptedColumns(String),
    /// Parts of the table seem to be missing, without proof that they ever existed.
    PartialTable(String),
    /// The table's folder has files of other kinds, which are not read. The text lists their names and kinds.
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
