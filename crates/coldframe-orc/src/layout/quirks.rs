//! Lists where a file's writer deviates from the specification, by the writer's name and version in the file.
//!
//! ```text
//! Footer.writer            0 Java, 1 C++, 2 Presto, 3 Go, 4 Trino, 5 CUDF       softwareVersion: its release, sometimes
//! PostScript.writerVersion which of its bugs are fixed                          Footer.calendar: 1 hybrid, 2 proleptic
//! ```
//!
//! Only this module decides what depends on the writer: in reading, in pruning, and in the comparison of decoded values
//! with the file's statistics. Statistics that a writer computes wrongly are ignored:
//!
//! | writer | no statement |
//! |---|---|
//! | Java, version 0 (Hive 0.11 and 0.12) | ends in stripes and files (HIVE-8732), all of strings |
//! | Java, below version 6 | ends of timestamps: they are in the writer's zone (ORC-135) |
//! | Java, version 6 | ends of decimals of at most 18 digits (ORC-517) |
//! | C++ | bloom filters of 1.6.0 to 1.6.11 and 1.7.0; those of tinyint in every version |
//! | Presto, Trino | ends of timestamps. They state no ends of tinyint, no `hasNull`, and no ends of long strings |
//! | Go (`scritchley/orc`) | all of a stripe: the first one's are those of the file; `numberOfValues` counts nulls; merged statistics forget `hasNull`; sums of integers wrap at 64 bits; ends of timestamps |
//! | cuDF (NVIDIA RAPIDS) | total lengths of strings, whose sign is coded otherwise; the number of true values; ends of timestamps |
//! | cuDF before 24.02 | the same. It names no writer and no version, so its files look like those of Java's version 0 |
//!
//! Spark, Hive and Iceberg write with the Java writer. The C++ writer is a part of Arrow's C++ writer.

use super::proto::{ColumnStatistics, Footer, IntegerStatistics, PostScript, StringStatistics};

/// `Footer.writer` of orc-java.
const JAVA: u32 = 0;
/// `Footer.writer` of the C++ writer.
const CPP: u32 = 1;
/// `Footer.writer` of Presto.
const PRESTO: u32 = 2;
/// `Footer.writer` of the Go library scritchley/orc.
const GO: u32 = 3;
/// `Footer.writer` of Trino.
const TRINO: u32 = 4;
/// `Footer.writer` of cuDF.
const CUDF: u32 = 5;

/// The first `PostScript.writerVersion` of Java's writer whose files may be from Hive 3.1.
const HIVE_3: u32 = 6;

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
    /// Nothing states the calendar of days before 1582-10-15, and both calendars are usual: Hive 3.1 wrote
    /// proleptic days with Java's writer, whose files are hybrid otherwise (HIVE-22405).
    pub(crate) ambiguous_calendar: bool,
    /// Negative values of smallint and int may be stored as unsigned values of the same width.
    pub(crate) wrapped_integers: bool,
    /// `numberOfValues` and `hasNull` are correct.
    pub(crate) counts: bool,
    /// Sums of integers are correct.
    sums: bool,
    /// Total lengths of strings and numbers of true values are correct.
    lengths: bool,
    /// Decimals of at most 18 digits are integers: version 1.9999, the draft of 2.0.
    pub(crate) short_decimals: bool,
    /// Statistics of stripes and of the file are correct. Java's first writer has wrong maxima there.
    pub(crate) merged_statistics: bool,
    /// Statistics of a stripe are of the stripe. Go's writer merges the statistics of all stripes into the
    /// statistics of the first stripe.
    pub(crate) stripe_statistics: bool,
    /// Statistics of strings are correct. Java's first writer compares in UTF-16 order.
    pub(crate) string_statistics: bool,
    /// Statistics of timestamps are milliseconds in UTC, as in Java and C++ since ORC-135. Other writers
    /// stored seconds, microseconds or nanoseconds (cuDF: the column's unit).
    pub(crate) timestamp_statistics: bool,
    /// Statistics of decimals of at most 18 digits are correct: they are wrong in version 6 (ORC-517).
    pub(crate) short_decimal_statistics: bool,
    /// Whether decoded values are compared with the statistics of stripes and row groups that [`Self::believed`]
    /// returns. No file shows that the statistics of Go's writer, of cuDF or of unknown writers are right.
    pub(crate) statements: bool,
    /// Statistics of tinyint columns are of signed numbers. The C++ writer treats the numbers as unsigned
    /// (ORC-1725).
    pub(crate) byte_statistics: bool,
    /// Sums of floating point numbers are of all values. Java's writer adds a value that repeats in a batch once
    /// (seen in a file of 1.8.0).
    pub(crate) double_sums: bool,
    /// Sums of decimals are exact. Java's writer adds up short decimals in 64 bits, and rounds long decimals
    /// to 38 digits.
    pub(crate) decimal_sums: bool,
    /// Structs inside structs may have values for their nulls, too, as in files of pyarrow.
    pub(crate) superfluous_values: bool,
    /// All chunks of a stream except the last are full.
    pub(crate) full_chunks: bool,
    /// Bloom filters contain all existing values.
    pub(crate) blooms: bool,
    /// Bloom filters of tinyint columns contain all existing values. The C++ writer overwrites the numbers
    /// with their bytes before it hashes them.
    pub(crate) byte_blooms: bool,
}

impl Quirks {
    /// For the writer of a file. `hybrid` is the user's statement about a file that does not state its calendar.
    pub(crate) fn new(footer: &Footer, postscript: &PostScript, hybrid: Option<bool>) -> Self {
        let (writer, version) = (footer.writer(), postscript.writer_version());
        let java = writer == JAVA;
        let may_be_cudf = writer == CUDF || (java && version == 0);
        let is_stated = matches!(footer.calendar(), 1 | 2);
        Self {
            hybrid: match footer.calendar() {
                // Iceberg stores proleptic days with Java's writer, which states Java's default.
                1 => !is_of_iceberg(footer),
                2 => false,
                // Without the field, Java's files are hybrid and files of other writers are proleptic.
                _ => hybrid.unwrap_or(java && !is_of_iceberg(footer)),
            },
            ambiguous_calendar: !is_stated
                && hybrid.is_none()
                && java
                && version >= HIVE_3
                && !is_of_iceberg(footer),
            wrapped_integers: may_be_cudf,
            counts: writer != GO,
            sums: writer != GO,
            lengths: !may_be_cudf,
            short_decimals: matches!(postscript.version.as_slice(), [1, 9999, ..]),
            merged_statistics: !java || version >= 1,
            stripe_statistics: writer != GO,
            string_statistics: !java || version >= 1,
            timestamp_statistics: matches!(writer, JAVA | CPP) && version >= 6,
            short_decimal_statistics: !java || version != 6,
            statements: matches!(writer, JAVA | CPP | PRESTO | TRINO),
            byte_statistics: writer != CPP,
            double_sums: writer != JAVA,
            decimal_sums: writer != JAVA,
            superfluous_values: writer == CPP,
            full_chunks: matches!(writer, JAVA | CPP),
            blooms: writer != CPP || has_right_blooms(footer.software_version.as_deref()),
            byte_blooms: writer != CPP,
        }
    }

    /// The statistics without what this writer does not state correctly.
    pub(crate) fn believed(self, stats: ColumnStatistics) -> ColumnStatistics {
        ColumnStatistics {
            number_of_values: stats.number_of_values.filter(|_| self.counts),
            has_null: stats.has_null.filter(|_| self.counts),
            int_statistics: stats
                .int_statistics
                .map(|of| IntegerStatistics { sum: of.sum.filter(|_| self.sums), ..of }),
            string_statistics: stats
                .string_statistics
                .map(|of| StringStatistics { sum: of.sum.filter(|_| self.lengths), ..of }),
            bucket_statistics: stats.bucket_statistics.filter(|_| self.lengths),
            ..stats
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
    use super::super::proto::{BucketStatistics, StringPair, Type};
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
            Quirks::new(&Footer { writer: Some(writer), ..Footer::default() }, &postscript, None)
        };
        assert!(of(JAVA).byte_blooms && !of(CPP).byte_blooms);
        // 5 is cuDF.
        assert!(of(JAVA).timestamp_statistics && of(CPP).timestamp_statistics && !of(5).timestamp_statistics);
    }

    #[test]
    fn the_default_calendar_depends_on_the_writer() {
        let hybrid = |writer, calendar| {
            let footer = Footer { writer: Some(writer), calendar, ..Footer::default() };
            Quirks::new(&footer, &PostScript::default(), None).hybrid
        };
        assert!(hybrid(JAVA, None) && hybrid(CPP, Some(1)));
        assert!(!hybrid(CPP, None) && !hybrid(JAVA, Some(2)));
    }

    #[test]
    fn iceberg_days_are_proleptic_despite_the_footer() {
        let pair = StringPair { key: Some("iceberg.id".to_owned()), value: Some("1".to_owned()) };
        let day = Type { attributes: vec![pair], ..Type::default() };
        let footer = Footer { calendar: Some(1), types: vec![day], ..Footer::default() };
        assert!(!Quirks::new(&footer, &PostScript::default(), None).hybrid);
    }

    #[test]
    fn an_option_decides_where_no_calendar_is_stated() {
        let of = |stated, option, version| {
            let postscript = PostScript { writer_version: Some(version), ..PostScript::default() };
            let quirks = Quirks::new(&Footer { calendar: stated, ..Footer::default() }, &postscript, option);
            (quirks.hybrid, quirks.ambiguous_calendar)
        };
        // Hive 3.1 and Spark 2.4 write version 6, Hive 2 writes version 5.
        assert_eq!(of(None, None, 6), (true, true));
        assert_eq!(of(None, None, 5), (true, false));
        assert_eq!(of(None, Some(false), 6), (false, false));
        assert_eq!(of(None, Some(true), 6), (true, false));
        assert_eq!(of(Some(1), Some(false), 6), (true, false));
        assert_eq!(of(Some(2), Some(true), 6), (false, false));
    }

    #[test]
    fn what_a_writer_states_wrongly_is_no_statement() {
        let stated = ColumnStatistics {
            number_of_values: Some(3),
            has_null: Some(false),
            int_statistics: Some(IntegerStatistics { minimum: Some(1), maximum: Some(2), sum: Some(4) }),
            string_statistics: Some(StringStatistics { sum: Some(9), ..StringStatistics::default() }),
            bucket_statistics: Some(BucketStatistics { count: vec![2] }),
            ..ColumnStatistics::default()
        };
        let believed = |writer, version| {
            let postscript = PostScript { writer_version: Some(version), ..PostScript::default() };
            let footer = Footer { writer: Some(writer), ..Footer::default() };
            let stats = Quirks::new(&footer, &postscript, None).believed(stated.clone());
            let sum = stats.int_statistics.and_then(|of| of.sum);
            let length = stats.string_statistics.and_then(|of| of.sum);
            assert_eq!(stats.int_statistics.and_then(|of| of.minimum), Some(1), "of every writer");
            let counts = (stats.number_of_values, stats.has_null);
            (counts, sum.is_some(), length.is_some(), stats.bucket_statistics.is_some())
        };
        let counted = (Some(3), Some(false));
        for writer in [JAVA, CPP, 2, 4] {
            assert_eq!(believed(writer, 6), (counted, true, true, true), "{writer}");
        }
        assert_eq!(believed(GO, 6), ((None, None), false, true, true));
        // cuDF, and before 24.02, when it had no number.
        assert_eq!(believed(CUDF, 7), (counted, true, false, false));
        assert_eq!(believed(JAVA, 0), (counted, true, false, false));
    }
}
