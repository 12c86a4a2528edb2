//! Paths and URLs without the secrets that URLs may have.
//!
//! ```text
//! https://user:password@host:8443/a.orc?sig=f3..#part      as given
//! https://host:8443/a.orc                                  as shown
//! ```
//!
//! This is the only place that decides what is a secret. [`crate::Error::in_file`] passes all paths through it.

/// Schemes of object stores begin with these texts. The name after `://` is the name of a bucket, which has
/// no port.
const BUCKETS: [&str; 7] = ["s3", "gs", "gcs", "az", "adl", "abfs", "wasb"];

/// A path or URL as people may see it, in errors, logs, traces, pages and reports: without passwords, and without a
/// query, which may be a signature. A path is shown as it is.
///
/// A password may have characters that it should not have, such as a slash. So if a name and a colon begin
/// the URL, nothing before the last `@` is shown. If the last `@` may lie in a query, nothing of the URL is
/// shown.
pub fn shown(url: &str) -> String {
    // fsspec chains URLs: `zip://a.orc::https://host/b.zip`.
    let mut rest = url;
    let mut whole = String::new();
    while let Some((first, next)) = chained(rest) {
        whole += &shown_alone(first);
        whole += "::";
        rest = next;
    }
    whole + &shown_alone(rest)
}

/// Each URL of a text in the form of [`shown`]. URLs end with white space or a quote.
pub fn shown_in(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
    text.split_inclusive(is_end)
        .map(|part| {
            let url = part.trim_end_matches(is_end);
            shown(url) + part.get(url.len()..).unwrap_or_default()
        })
        .collect()
}

/// The first of several URLs that `::` joins, and the other URLs.
fn chained(text: &str) -> Option<(&str, &str)> {
    text.match_indices("::").find_map(|(at, _)| {
        let (first, rest) = (text.get(..at)?, text.get(at + 2..)?);
        begins_with_scheme(rest).then_some((first, rest))
    })
}

fn shown_alone(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let kind = scheme.to_ascii_lowercase();
    if kind == "file" {
        return url.to_owned();
    }
    let is_web = kind.ends_with("http") || kind.ends_with("https");
    let rest = without_user(rest, is_web, !BUCKETS.iter().any(|bucket| kind.starts_with(bucket)));
    let end = if is_web {
        rest.find(['?', '#'])
    } else {
        // A ? without a value is part of a pattern.
        rest.find('?').filter(|at| rest.get(*at..).is_some_and(|query| query.contains('=')))
    };
    format!("{scheme}://{}", rest.get(..end.unwrap_or(rest.len())).unwrap_or_default())
}

/// What follows the name and the password of a URL. `rest`: what follows `://`.
fn without_user(rest: &str, is_web: bool, has_ports: bool) -> String {
    let mark = rest.find(['/', '?', '#', '@', ':', '[']);
    let password = mark.and_then(|at| rest.get(at..)).and_then(|behind| behind.strip_prefix(':'));
    if password.is_some_and(|text| !(has_ports && begins_with_port(text)))
        && let Some((user, host)) = rest.rsplit_once('@')
    {
        return match user {
            // The last @ may be in a query: nothing after it is safe then.
            user if user.contains('?') => "***".to_owned(),
            user if user.contains('/') => format!("***@{host}"),
            _ => host.to_owned(),
        };
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest.get(..end).and_then(|authority| authority.rfind('@')) {
        // The container of abfss://container@account is no secret.
        Some(at) if is_web => rest.get(at + 1..).unwrap_or_default().to_owned(),
        _ => rest.to_owned(),
    }
}

/// Whether a text begins with the number of a port: `8443/a.orc`.
fn begins_with_port(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..=5).contains(&digits) && matches!(text.as_bytes().get(digits), None | Some(b'/' | b'?' | b'#'))
}

/// Whether a text is a URL. A scheme has at least two letters.
fn begins_with_scheme(text: &str) -> bool {
    let follows = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-');
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(follows)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_signatures_are_not_shown() {
        for (url, expected) in [
            ("/data/a?b=c.orc", "/data/a?b=c.orc"),
            ("file:///data/a?b=c.orc", "file:///data/a?b=c.orc"),
            ("https://u:hush@h/x?sig=hush", "https://h/x"),
            ("HTTP://u:hush@h/x?X-Amz-Signature=hush", "HTTP://h/x"),
            ("HTTPS://h/x?hush", "HTTPS://h/x"),
            ("(http://hush@h:1/x#hush", "(http://h:1/x"),
            ("https://hush@host/a@b.orc", "https://host/a@b.orc"),
            ("https://user:hu/sh@host/a.orc", "https://***@host/a.orc"),
            ("https://user:hu?sh@host/a.orc", "https://***"),
            ("https://user:12345678@host/a.orc", "https://host/a.orc"),
            ("https://host:8443/a.orc?sig=a@hush", "https://host:8443/a.orc"),
            ("http://[::1]:8080/a@b.orc?hush", "http://[::1]:8080/a@b.orc"),
            ("s3a://key:hush@bucket/a?b", "s3a://bucket/a?b"),
            ("s3://key:hu/sh@bucket/a.orc", "s3://***@bucket/a.orc"),
            ("s3://key:12/hush@bucket/a.orc", "s3://***@bucket/a.orc"),
            ("s3://bucket/part-?.orc", "s3://bucket/part-?.orc"),
            ("s3://b/a@b:c", "s3://b/a@b:c"),
            ("S3://b/x?X-Amz-Security-Token=hush", "S3://b/x"),
            ("abfss://c@account.dfs.core.windows.net/a", "abfss://c@account.dfs.core.windows.net/a"),
            ("abfss://c@account/a.orc?sv=1&sig=hush", "abfss://c@account/a.orc"),
            ("hdfs://nn:8020/user/a@b/x.orc", "hdfs://nn:8020/user/a@b/x.orc"),
            ("sftp://u:hush@h/a b/x", "sftp://h/a b/x"),
            ("jdbc:mysql://u:hush@h/db?password=hush", "jdbc:mysql://h/db"),
            ("zip://a.orc::https://u:hush@h/b.zip?sig=hush", "zip://a.orc::https://h/b.zip"),
            ("simplecache::https://h/b.orc?sig=hush", "simplecache::https://h/b.orc"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
            assert_eq!(shown(&shown(expected)), shown(expected), "{url}");
        }
    }

    #[test]
    fn urls_in_a_text() {
        let text =
            "GET \"https://u:hush@h/x?sig=hush\" failed:\n\tsee http://h/y?token=hush, or 'a::b' at 10:20";
        assert_eq!(shown_in(text), "GET \"https://h/x\" failed:\n\tsee http://h/y or 'a::b' at 10:20");
        assert_eq!(shown_in("plain"), "plain");
    }
}
