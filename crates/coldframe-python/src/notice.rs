//! Notes for the user, as Python warns of them.

use coldframe::Notice;

/// A notice as a kind and a text.
pub(crate) fn kind_and_text(notice: Notice) -> (&'static str, String) {
    let kind = match notice {
        Notice::AmbiguousDialect(_) => "ambiguous_dialect",
        Notice::EncryptedColumns(_) => "encrypted_columns",
        Notice::PartialTable(_) => "partial_table",
        Notice::LeftOut(_) => "left_out",
        Notice::AmbiguousCalendar(_) => "ambiguous_calendar",
        Notice::WrongIndex(_) => "wrong_index",
    };
    (kind, notice.text())
}
