//! File names as text, even if they are not UTF-8.
//!
//! Listings return text, and files are opened by text. Unix names are bytes: here each byte that is not part
//! of a UTF-8 character is represented by a private-use character, from `U+10FE80` for 0x80 to `U+10FEFF` for
//! 0xFF. If a name contains such a character, its bytes are represented in the same way, so each name has
//! exactly one text.

use std::ffi::{OsStr, OsString};

/// The character that would represent 0x00.
#[cfg(unix)]
const STAND_IN: u32 = 0x0010_FE00;

/// The text form of a name.
#[cfg(unix)]
pub fn to_text(name: &OsStr) -> String {
    use std::os::unix::ffi::OsStrExt;
    if let Some(plain) = name.to_str().filter(|n| n.chars().all(|c| byte_of(c).is_none())) {
        return plain.to_owned();
    }
    let mut text = String::new();
    let stand_ins = |bytes: &[u8]| -> String {
        bytes.iter().filter_map(|b| char::from_u32(STAND_IN + u32::from(*b))).collect()
    };
    for chunk in name.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match byte_of(c) {
                Some(_) => text.push_str(&stand_ins(c.encode_utf8(&mut [0; 4]).as_bytes())),
                None => text.push(c),
            }
        }
        text.push_str(&stand_ins(chunk.invalid()));
    }
    text
}

/// The name, or path below a folder, that a text form represents.
#[cfg(unix)]
pub fn from_text(text: &str) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(bytes)
}

/// The byte that a character represents.
#[cfg(unix)]
fn byte_of(c: char) -> Option<u8> {
    u32::from(c).checked_sub(STAND_IN).and_then(|n| u8::try_from(n).ok()).filter(|b| *b >= 0x80)
}

/// The text form of a name. On other systems names are text, except for broken surrogate pairs, which are
/// replaced.
#[cfg(not(unix))]
pub fn to_text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// The name, or path below a folder, that a text form represents.
#[cfg(not(unix))]
pub fn from_text(text: &str) -> OsString {
    text.into()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn each_name_has_a_text_of_its_own() {
        let names: [&[u8]; 6] = [
            b"plain",
            "h\u{e9}".as_bytes(),
            b"\xff",
            b"a\xc3",
            b"\xf4\x8f\xba\x80",
            "\u{10fe80}x\u{10ff00}".as_bytes(),
        ];
        let mut texts = Vec::new();
        for name in names {
            let name = OsString::from_vec(name.to_vec());
            let text = to_text(&name);
            assert_eq!(from_text(&text), name);
            texts.push(text);
        }
        assert_eq!(texts[0], "plain");
        assert_eq!(texts[2], "\u{10feff}");
        texts.sort();
        texts.dedup();
        // The fifth and the sixth name begin with the same character, which one of the two represents by its
        // bytes.
        assert_eq!(texts.len(), 6);
    }
}
