//! What a source contains, whether or not a request reads it. Users need this to decide whether to delete the
//! source.

/// One part of a source's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// What the part is: `table`, `snapshot`, `versions`, `archive` ...
    pub kind: &'static str,
    /// The table that the part belongs to, as a value of the format's option; empty if it belongs to the
    /// whole source.
    pub of: String,
    /// The name for display.
    pub name: String,
    /// Whether the format's engine shows this part to its readers; otherwise the part exists only in files.
    pub visible: bool,
    /// Whether the request reads all of the part; `None` if that is unknown before reading.
    pub taken: Option<bool>,
    /// The size of the part in `unit`s, if it is cheap to determine.
    pub count: Option<u64>,
    /// What `count` counts.
    pub unit: &'static str,
    /// Bytes of the part's files, if cheap to determine.
    pub bytes: Option<u64>,
    /// A sentence about the part, for the user.
    pub note: String,
}

impl Content {
    /// A part of `of` that the engine shows.
    pub fn new(kind: &'static str, of: impl Into<String>, taken: Option<bool>) -> Self {
        let of = of.into();
        let name = of.clone();
        let (count, unit, bytes, note) = (None, "", None, String::new());
        Self { kind, of, name, visible: true, taken, count, unit, bytes, note }
    }

    /// Sets the name for display.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the count and what it counts.
    #[must_use]
    pub fn counted(self, count: u64, unit: &'static str) -> Self {
        Self { count: Some(count), unit, ..self }
    }

    /// Sets the bytes of the part's files.
    #[must_use]
    pub fn sized(self, bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    /// Sets the sentence about the part.
    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Marks the part as one that exists only in files.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { visible: false, ..self }
    }
}
