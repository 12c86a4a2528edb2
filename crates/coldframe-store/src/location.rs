//! Parses a path or URL: a local file, or a file in another store.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use coldframe_core::{Error, Result};

/// The location of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A path of the local file system. The path need not be UTF-8.
    Local(PathBuf),
    /// A URL of another store.
    Url {
        /// The whole URL.
        url: String,
        /// What comes before `://`, in lower case.
        scheme: String,
    },
}

impl Location {
    /// Parses a string: with a scheme it is a URL, otherwise a path. `file://` URLs become paths.
    pub fn parse(given: &OsStr) -> Result<Self> {
        let bytes = given.as_encoded_bytes();
        let Some((scheme, rest)) = split_scheme(bytes) else { return Ok(Self::Local(given.into())) };
        if scheme == "file" {
            return of_file_url(rest).map(Self::Local);
        }
        match given.to_str() {
            Some(url) => Ok(Self::Url { url: url.to_owned(), scheme }),
            None => Err(Error::invalid(format!("{}: expected a URL of UTF-8", given.display()))),
        }
    }
}

/// The scheme in lower case, and the text after `://`. A scheme has at least two letters: a single letter is
/// a drive of Windows.
fn split_scheme(given: &[u8]) -> Option<(String, &[u8])> {
    let end = given.windows(3).position(|w| w == b"://")?;
    let (scheme, rest) = (given.get(..end)?, given.get(end + 3..)?);
    let (first, others) = scheme.split_first()?;
    let follows = |b: &u8| b.is_ascii_alphanumeric() || b"+.-".contains(b);
    let fits = first.is_ascii_alphabetic() && !others.is_empty() && others.iter().all(follows);
    fits.then(|| (scheme.iter().map(|b| char::from(b.to_ascii_lowercase())).collect(), rest))
}

/// The path in a `file://` URL: `localhost` is dropped, `%41` is `A`.
fn of_file_url(rest: &[u8]) -> Result<PathBuf> {
    let rest = match rest.strip_prefix(b"localhost") {
        Some(path) if path.starts_with(b"/") => path,
        _ => rest,
    };
    let mut path = Vec::with_capacity(rest.len());
    let mut left = rest;
    while let Some((byte, after)) = left.split_first() {
        let escaped = if *byte == b'%' { after.get(..2).and_then(hex) } else { None };
        path.push(escaped.unwrap_or(*byte));
        left = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    os_string(path).map(PathBuf::from)
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> Result<OsString> {
    Ok(std::os::unix::ffi::OsStringExt::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> Result<OsString> {
    let path = String::from_utf8(bytes).map_err(|e| Error::invalid(format!("a file:// URL: {e}")))?;
    // `file:///C:/x` is `C:/x`.
    let drive = path.strip_prefix('/').filter(|p| p.as_bytes().get(1) == Some(&b':'));
    Ok(drive.unwrap_or(&path).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn local(given: &str) -> Option<PathBuf> {
        match Location::parse(OsStr::new(given)).unwrap() {
            Location::Local(path) => Some(path),
            Location::Url { .. } => None,
        }
    }

    #[test]
    fn file_urls_are_paths() {
        for (given, path) in [
            ("a/b", "a/b"),
            ("/a%20b", "/a%20b"),
            ("file:///a%20b/%C3%A9", "/a b/é"),
            ("FILE://localhost/a", "/a"),
            ("file:///100%", "/100%"),
            ("file:///%+1%zz", "/%+1%zz"),
            ("C://a", "C://a"),
            ("a/b://c", "a/b://c"),
            ("://", "://"),
        ] {
            assert_eq!(local(given).as_deref(), Some(Path::new(path)), "{given}");
        }
        let url = Location::parse(OsStr::new("S3a://bucket/k%20")).unwrap();
        assert_eq!(url, Location::Url { url: "S3a://bucket/k%20".to_owned(), scheme: "s3a".to_owned() });
    }

    #[cfg(unix)]
    #[test]
    fn a_path_need_not_be_text() {
        let name: OsString = std::os::unix::ffi::OsStringExt::from_vec(b"/a\xff".to_vec());
        assert_eq!(Location::parse(&name).unwrap(), Location::Local(PathBuf::from(&name)));
        assert_eq!(local("file:///a%fF"), Some(PathBuf::from(&name)));
        let url: OsString = std::os::unix::ffi::OsStringExt::from_vec(b"s3://a/\xff".to_vec());
        assert!(Location::parse(&url).is_err());
    }
}
