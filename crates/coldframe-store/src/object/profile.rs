//! The credentials files of AWS tools.
//!
//! ```text
//! ~/.aws/credentials        ~/.aws/config
//! [work]                    [profile work]           # but [default]
//! aws_access_key_id = ..    region = eu-central-1
//! aws_secret_access_key = ..
//! ```
//!
//! This reads keys, tokens, regions and endpoints. A profile with credentials from elsewhere
//! (`credential_process`, `sso_..`, `role_arn`) is an error, because requests would have no credentials.

use std::collections::BTreeMap;
use std::path::PathBuf;

use coldframe_core::{Error, Result};

use crate::options::Options;

/// The names in the files, each with the name of our option.
const NAMES: &[(&str, &str)] = &[
    ("aws_access_key_id", "access_key_id"),
    ("aws_secret_access_key", "secret_access_key"),
    ("aws_session_token", "session_token"),
    ("region", "region"),
    ("endpoint_url", "endpoint"),
];

const ELSEWHERE: &[&str] = &["credential_process", "sso_session", "sso_start_url", "role_arn"];

/// Adds the profile's values to the options that are not set. Credentials that were given are not replaced. A
/// profile that was requested by name must exist.
pub(super) fn add(options: &mut Options) -> Result<()> {
    let asked = options.take("profile").or_else(|| std::env::var("AWS_PROFILE").ok());
    let profile = asked.as_deref().unwrap_or("default");
    let credentials = read("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let config = read("AWS_CONFIG_FILE", "config");
    let values = profile_of(&credentials, &config, profile);
    if values.is_empty() {
        return match asked {
            Some(name) => Err(Error::invalid(format!(
                "no profile `{name}` in the shared credentials and configuration files"
            ))),
            None => Ok(()),
        };
    }
    let has_keys = values.contains_key("aws_access_key_id");
    let given = options.has_any(&["access_key_id", "skip_signature", "web_identity_token_file"]);
    if let Some(source) = ELSEWHERE.iter().find(|name| values.contains_key(**name))
        && asked.is_some()
        && !has_keys
        && !given
    {
        return Err(Error::unsupported(format!(
            "profile `{profile}` gets its credentials through `{source}`, which is not supported: give them as AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN"
        )));
    }
    for (name, option) in NAMES {
        // Parts of two different key pairs must not be combined.
        if name.starts_with("aws_") && given {
            continue;
        }
        if let Some(value) = values.get(*name) {
            options.or_set(option, value.as_str());
        }
    }
    Ok(())
}

/// The values of a profile in both files; the credentials file takes precedence. Keys may be in either file,
/// but the parts of a key pair must be in the same file.
fn profile_of(credentials: &str, config: &str, profile: &str) -> BTreeMap<String, String> {
    let mut values = section(credentials, profile);
    let has_keys = values.contains_key("aws_access_key_id");
    let mut others = section(config, &format!("profile {profile}"));
    if profile == "default" {
        others.extend(section(config, profile));
    }
    others.retain(|name, _| !(has_keys && name.starts_with("aws_")));
    for (name, value) in others {
        values.entry(name).or_insert(value);
    }
    values
}

/// The text of the file that the environment variable names, or else of the file in the home directory; empty
/// if there is no such file.
fn read(variable: &str, name: &str) -> String {
    let path = std::env::var_os(variable).map(PathBuf::from);
    let path = path.or_else(|| Some(std::env::home_dir()?.join(".aws").join(name)));
    path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
}

/// The values of a section by name; indented lines below a name are ignored.
fn section(text: &str, wanted: &str) -> BTreeMap<String, String> {
    let mut inside = false;
    let mut values = BTreeMap::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = name.split_whitespace().eq(wanted.split_whitespace());
        } else if inside && !line.starts_with([' ', '\t', '#', ';']) {
            let Some((name, value)) = trimmed.split_once('=') else { continue };
            values.insert(name.trim().to_owned(), value.trim().to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_separate() {
        let text = "[default]\nregion = a\n# x = y\n[profile  work]\nregion=b\ns3 =\n  addressing_style = path\nendpoint_url = http://h:1\n";
        assert_eq!(section(text, "default"), BTreeMap::from([("region".to_owned(), "a".to_owned())]));
        let work = section(text, "profile work");
        assert_eq!(work.get("endpoint_url").map(String::as_str), Some("http://h:1"));
        assert_eq!((work.get("region").map(String::as_str), work.get("addressing_style")), (Some("b"), None));
        assert!(section(text, "other").is_empty());
    }

    #[test]
    fn keys_may_be_in_either_file_but_pairs_are_not_mixed() {
        let config = "[profile work]\naws_access_key_id = c\naws_secret_access_key = d\nregion = r\n[profile default]\nregion = x\n";
        let of = |credentials: &str, profile: &str, name: &str| {
            profile_of(credentials, config, profile).get(name).cloned()
        };
        assert_eq!(of("", "work", "aws_secret_access_key").as_deref(), Some("d"));
        let half = "[work]\naws_access_key_id = a\n";
        assert_eq!(of(half, "work", "aws_access_key_id").as_deref(), Some("a"));
        assert_eq!(of(half, "work", "aws_secret_access_key"), None);
        assert_eq!(of(half, "work", "region").as_deref(), Some("r"));
        assert_eq!(of("", "default", "region").as_deref(), Some("x"));
    }
}
