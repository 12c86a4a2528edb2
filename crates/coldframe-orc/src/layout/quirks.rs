//! Lists where a file's writer deviates from the specification, by the writer's name and version in the file.
//!
//! ```text
//! Footer.writer            0 Java, 1 C++, 2 Presto, 3 Go, 4 Trino, 5 CUDF       softwareVersion: its release, sometimes
//! PostScript.writerVersion which of its bugs are fixed                          Footer.calendar: 1 hybrid, 2 proleptic
//! ```
//!
//! Only this module decides how reading and pruning depend on the writer.

use super::proto::{Footer, PostScript};

/// `Footer.writer` of orc-java.
const JAVA: u32 = 0;
/// `Footer.writer` of the C++ writer.
const CPP: u32 = 1;

/// The versions of the C++ writer whose bloom filters miss existing values. Files without a version are
/// equally wrong: the writer states it since 1.6.11 and 1.7.0, and writes filters since 1.6.0.
const WRONG_CPP_BLOOMS: [&str; 13] = [
    "1.6.0", "1.6.1", "1.6.2", "1.6.3", "1.6.4", "1.6.5", "1.6.6", "1.6.7", "1.6.8", "1.6.9", "1.6.10",
    "1.6.11", "1.7.0",
];

/// How to interpret the values of a file, and which of its statistics to trust.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quirks {
    /// Days before 1582-10-15 are in the Julian calendar.
    pub(crate) hybrid: bool,
    /// Decimals of at most 18 digits are integers: version 1.9999, the draft of 2.0.
    pub(crate) short_decimals: bool,
    /// Statistics of stripes and of the file are correct. Java's first writer has wrong maxima there.
    pub(crate) merged_statistics: bool,
    /// Statistics of strings are correct. Java's first writer compares in UTF-16 order.
    pub(crate) string_statistics: bool,
    /// Statistics of timestamps are milliseconds in UTC, as in Java and C++ since ORC-135. Other writers
    /// stored seconds, microseconds or nanoseconds (cuDF: the column's unit).
    pub(crate) timestamp_statistics: bool,
    /// Statistics of decimals of at most 18 digits are correct: they are wrong in version 6 (ORC-517).
    pub(crate) short_decimal_statistics: bool,
    /// Bloom filters contain all existing values.
    pub(crate) blooms: bool,
    /// Bloom filters of tinyint columns contain all existing values. The C++ writer overwrites the numbers
    /// with their bytes before it hashes them.
    pub(crate) byte_blooms: bool,
}

impl Quirks {
    /// The deviations of the writer of a file.
    pub(crate) fn new(footer: &Footer, postscript: &PostScript) -> Self {
        let (writer, version) = (footer.writer(), postscript.writer_version());
        let java = writer == JAVA;
        Self {
            hybrid: match footer.calendar() {
                // Iceberg stores proleptic days with Java's writer, which states Java's default.
                1 => !is_of_iceberg(footer),
                2 => false,
                // Without the field, Java's files are hybrid and those of other writers proleptic.
                _ => java && !is_of_iceberg(footer),
            },
            short_decimals: matches!(postscript.version.as_slice(), [1, 9999, ..]),
            merged_statistics: !java || version >= 1,
            string_statistics: !java || version >= 1,
            timestamp_statistics: matches!(writer, JAVA | CPP) && version >= 6,
            short_decimal_statistics: !java || version != 6,
            blooms: writer != CPP || has_right_blooms(footer.software_version.as_deref()),
            byte_blooms: writer != CPP,
        }
    }
}

/// Whether columns have the ids that Iceberg gives them.
fn is_of_iceberg(footer: &Footer) -> bool {
    footer.types.iter().flat_map(|of| &of.attributes).any(|pair| pair.key() == "iceberg.id")
}

/// Whether this version of the C++ writer wrote correct bloom filters.
fn has_right_blooms(software_version: Option<&str>) -> bool {
    let release = software_version.map(|version| version.split('-').next().unwrap_or(version));
    release.is_some_and(|release| !WRONG_CPP_BLOOMS.contains(&release))
}

#[cfg(test)]
mod tests {
    use super::super::proto::{StringPair, Type};
    use super::*;

    #[test]
    fn bloom_filters_of_early_cpp_writers_are_wrong() {
        assert!(!has_right_blooms(None) && !has_right_blooms(Some("1.6.11-SNAPSHOT")));
        assert!(has_right_blooms(Some("1.7.1")));
    }

    #[test]
    fn deviations_of_writers_are_not_relied_on() {
        let of = |writer| {
            let postscript = PostScript { writer_version: Some(6), ..PostScript::default() };
            Quirks::new(&Footer { writer: Some(writer), ..Footer::default() }, &postscript)
        };
        assert!(of(JAVA).byte_blooms && !of(CPP).byte_blooms);
        // 5 is cuDF.
        assert!(of(JAVA).timestamp_statistics && of(CPP).timestamp_statistics && !of(5).timestamp_statistics);
    }

    #[test]
    fn the_default_calendar_depends_on_the_writer() {
        let hybrid = |writer, calendar| {
            let footer = Footer { writer: Some(writer), calendar, ..Footer::default() };
            Quirks::new(&footer, &PostScript::default()).hybrid
        };
        assert!(hybrid(JAVA, None) && hybrid(CPP, Some(1)));
        assert!(!hybrid(CPP, None) && !hybrid(JAVA, Some(2)));
    }

    #[test]
    fn iceberg_days_are_proleptic_despite_the_footer() {
        let pair = StringPair { key: Some("iceberg.id".to_owned()), value: Some("1".to_owned()) };
        let day = Type { attributes: vec![pair], ..Type::default() };
        let footer = Footer { calendar: Some(1), types: vec![day], ..Footer::default() };
        assert!(!Quirks::new(&footer, &PostScript::default()).hybrid);
    }
}
