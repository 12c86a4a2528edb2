//! Notices about a table for the user. A notice is no error.

use coldframe_encoding::Error;

/// A notice about an open file for the user. It is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The bytes can be read with several layouts, and the reader chose one of them.
    AmbiguousDialect(String),
    /// The file does not state the calendar of its old days, and its writer used more than one calendar.
    AmbiguousCalendar(String),
    /// Columns are encrypted, and their masked values are returned.
    EncryptedColumns(String),
    /// Parts of the table are missing or cannot be read, or seem to be missing.
    PartialTable(String),
    /// The table's folder has files of other kinds, which are not read. The text lists their names and kinds.
    LeftOut(String),
    /// The index of a file contradicts its values, so that part of the file was read in full.
    WrongIndex(String),
}

impl Notice {
    /// The notice for an index that contradicts the values, as an error describes it.
    pub fn wrong_index(e: &Error) -> Self {
        Self::WrongIndex(format!("{}: {}", e.structure(), e.reason()))
    }

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
