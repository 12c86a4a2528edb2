//! What a source contains, whether or not a request reads it. Users need this to decide whether to delete the
//! source.

/// One part of a source's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// What it is: `table`, `snapshot`, `versions`, `archive` ...
    pub kind: &'static str,
    /// The table it belongs to, as a value of the format's option; empty for the whole source.
    pub of: String,
    /// The name for display.
    pub name: String,
    /// Whether the engine shows it to its readers; otherwise it exists only in files.
    pub visible: bool,
    /// Whether the request reads all of it; `None` if that is unknown before reading.
    pub taken: Option<bool>,
    /// The amount, if it is cheap to determine.
    pub count: Option<u64>,
    /// What `count` counts.
    pub unit: &'static str,
    /// Bytes of its files, if cheap to determine.
    pub bytes: Option<u64>,
    /// A sentence about it.
    pub note: String,
}

impl Content {
    /// A visible part of `of`.
    pub fn new(kind: &'static str, of: impl Into<String>, taken: Option<bool>) -> Self {
        let of = of.into();
        let name = of.clone();
        let (count, unit, bytes, note) = (None, "", None, String::new());
        Self { kind, of, name, visible: true, taken, count, unit, bytes, note }
    }

    /// With a name for display.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// With the amount.
    #[must_use]
    pub fn counted(self, count: u64, unit: &'static str) -> Self {
        Self { count: Some(count), unit, ..self }
    }

    /// With the bytes of its files.
    #[must_use]
    pub fn sized(self, bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    /// With a sentence.
    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// As content that exists only in files.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { visible: false, ..self }
    }
}
