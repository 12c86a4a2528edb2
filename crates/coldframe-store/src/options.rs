//! The options of stores, with the names that object_store, obstore, pyarrow, fsspec and Hadoop use for them.
//!
//! A value may be a secret, so options have no `Debug`, and errors contain only names.

use std::collections::BTreeMap;
use std::time::Duration;

use coldframe_core::{Error, Result};

/// A kind of store, which determines its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Amazon S3 and compatible stores.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage, Data Lake Storage, Fabric.
    Azure,
    /// Web servers.
    Http,
    /// HDFS.
    Hdfs,
}

use Kind::{Azure, Google, Hdfs, Http, S3};

/// A documented option of stores.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoreOption {
    /// The main name: object_store's name, if it has the option.
    pub name: &'static str,
    /// The stores with the option.
    pub of: &'static [Kind],
    /// The names in other libraries. `!` before a name means that its value is inverted.
    pub aliases: &'static [&'static str],
    /// A description of the option's value and effect.
    pub help: &'static str,
}

const CLOUDS: &[Kind] = &[S3, Google, Azure];
const ALL_HTTP: &[Kind] = &[S3, Google, Azure, Http];
const ALL: &[Kind] = &[S3, Google, Azure, Http, Hdfs];

/// All options. Names are compared ignoring upper and lower case, `-` is equal to `_`, and the prefixes
/// `aws_`, `google_` and `azure_` are ignored for stores of that kind.
pub const OPTIONS: &[StoreOption] = &[
    StoreOption {
        name: "access_key_id",
        of: &[S3],
        aliases: &["key", "access_key", "fs.s3a.access.key"],
        help: "the key's id",
    },
    StoreOption {
        name: "secret_access_key",
        of: &[S3],
        aliases: &["secret", "secret_key", "fs.s3a.secret.key"],
        help: "the key",
    },
    StoreOption {
        name: "session_token",
        of: &[S3],
        aliases: &["token", "fs.s3a.session.token"],
        help: "the token of temporary credentials",
    },
    StoreOption {
        name: "region",
        of: &[S3],
        aliases: &["region_name", "client_kwargs.region_name", "default_region", "fs.s3a.endpoint.region"],
        help: "the bucket's region; default us-east-1",
    },
    StoreOption {
        name: "endpoint",
        of: &[S3],
        aliases: &[
            "endpoint_url",
            "endpoint_override",
            "client_kwargs.endpoint_url",
            "endpoint_url_s3",
            "fs.s3a.endpoint",
        ],
        help: "the service's URL, if it is not Amazon's; an http:// URL allows http",
    },
    StoreOption {
        name: "virtual_hosted_style_request",
        of: &[S3],
        aliases: &["force_virtual_addressing", "!fs.s3a.path.style.access"],
        help: "whether the bucket is part of the host name; default false",
    },
    StoreOption {
        name: "skip_signature",
        of: CLOUDS,
        aliases: &["anon", "anonymous"],
        help: "send requests without credentials, for public data",
    },
    StoreOption {
        name: "profile",
        of: &[S3],
        aliases: &["profile_name", "aws_profile"],
        help: "the section of the shared credentials and configuration files; default AWS_PROFILE, or `default`",
    },
    StoreOption {
        name: "request_payer",
        of: &[S3],
        aliases: &["requester_pays", "fs.s3a.requester.pays.enabled"],
        help: "the requester pays",
    },
    StoreOption {
        name: "service_account",
        of: &[Google],
        aliases: &["service_account_path", "fs.gs.auth.service.account.json.keyfile"],
        help: "path of a service account's key file",
    },
    StoreOption { name: "service_account_key", of: &[Google], aliases: &[], help: "the same as JSON text" },
    StoreOption {
        name: "application_credentials",
        of: &[Google],
        aliases: &[],
        help: "path of application default credentials",
    },
    StoreOption { name: "bearer_token", of: &[Google], aliases: &["access_token"], help: "an OAuth token" },
    StoreOption {
        name: "base_url",
        of: &[Google],
        aliases: &["endpoint", "endpoint_url", "endpoint_override"],
        help: "the service's URL, if it is not Google's",
    },
    StoreOption {
        name: "account_name",
        of: &[Azure],
        aliases: &["storage_account_name"],
        help: "the storage account, if the URL does not name it",
    },
    StoreOption {
        name: "account_key",
        of: &[Azure],
        aliases: &["storage_account_key", "access_key"],
        help: "its key",
    },
    StoreOption {
        name: "sas_token",
        of: &[Azure],
        aliases: &["sas_key", "storage_sas_token", "storage_sas_key"],
        help: "a shared access signature",
    },
    StoreOption { name: "bearer_token", of: &[Azure], aliases: &["token"], help: "an OAuth token" },
    StoreOption { name: "client_id", of: &[Azure], aliases: &[], help: "of a service principal" },
    StoreOption { name: "client_secret", of: &[Azure], aliases: &[], help: "of a service principal" },
    StoreOption {
        name: "tenant_id",
        of: &[Azure],
        aliases: &["authority_id"],
        help: "of a service principal",
    },
    StoreOption {
        name: "endpoint",
        of: &[Azure],
        aliases: &["account_host", "endpoint_url"],
        help: "the service's URL, if it is not Microsoft's",
    },
    StoreOption {
        name: "allow_http",
        of: ALL_HTTP,
        aliases: &["!use_ssl", "!fs.s3a.connection.ssl.enabled"],
        help: "allow http without TLS; an http:// URL or endpoint implies it",
    },
    StoreOption {
        name: "allow_invalid_certificates",
        of: ALL_HTTP,
        aliases: &["!verify", "!tls_verify_certificates"],
        help: "accept any certificate",
    },
    StoreOption { name: "proxy_url", of: ALL_HTTP, aliases: &[], help: "a proxy for all requests" },
    StoreOption {
        name: "redirect_hosts",
        of: ALL_HTTP,
        aliases: &[],
        help: "other hosts to which a server may redirect, separated by commas; `*` is any; they get no credentials",
    },
    StoreOption {
        name: "timeout",
        of: ALL,
        aliases: &["request_timeout"],
        help: "seconds a server may be silent; default 20 (HDFS: 60)",
    },
    StoreOption {
        name: "connect_timeout",
        of: ALL_HTTP,
        aliases: &[],
        help: "seconds to wait for a connection; default 5",
    },
    StoreOption {
        name: "max_retries",
        of: ALL_HTTP,
        aliases: &["fs.s3a.attempts.maximum"],
        help: "how often a failed request is retried; default 4",
    },
    StoreOption {
        name: "retry_timeout",
        of: ALL_HTTP,
        aliases: &[],
        help: "seconds after which a failed request is no longer retried; default 60",
    },
    StoreOption {
        name: "hadoop_conf_dir",
        of: &[Hdfs],
        aliases: &[],
        help: "the directory of core-site.xml and hdfs-site.xml; default HADOOP_CONF_DIR",
    },
    StoreOption {
        name: "user",
        of: &[Hdfs],
        aliases: &["effective_user"],
        help: "the HDFS user; default HADOOP_USER_NAME",
    },
    StoreOption {
        name: "webhdfs",
        of: &[Hdfs],
        aliases: &[],
        help: "the web servers of the NameNodes (http://nn:9870, separated by commas), to read the visible part of files that are being written",
    },
];

/// Environment variables with the same meaning, in order of precedence, as in the SDKs of AWS: the endpoint
/// of S3 before the endpoint of all services, and AWS_REGION before the older AWS_DEFAULT_REGION.
#[cfg(feature = "object-store")]
const PREFERRED: &[&str] =
    &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_REGION", "AWS_DEFAULT_REGION"];

/// The options of a store by their main names.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Options(BTreeMap<String, String>);

impl Options {
    /// Parses the given options. `others`: whether the store's client knows a name that is not among
    /// [`OPTIONS`]. Hadoop's settings without a counterpart are ignored, since users pass whole
    /// configurations.
    pub(crate) fn new(
        kind: Kind,
        given: &BTreeMap<String, String>,
        others: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let mut options = Self::default();
        for (name, value) in given {
            let plain = plain(kind, name);
            match find(kind, &plain) {
                Some((option, opposite)) => {
                    let value = if opposite { negated(name, value)? } else { value.clone() };
                    options.0.insert(option.name.to_owned(), value);
                }
                None if others(&plain) || (kind == Hdfs && name.contains('.')) => {
                    // Hadoop's names are case-sensitive.
                    options.0.insert(if kind == Hdfs { name.clone() } else { plain }, value.clone());
                }
                None if plain.starts_with("fs.") => {}
                None => return Err(unknown(kind, name)),
            }
        }
        Ok(options)
    }

    /// Adds the options of the environment that are not set.
    #[cfg(feature = "object-store")]
    pub(crate) fn add_environment(&mut self, kind: Kind, prefix: &str, others: impl Fn(&str) -> bool) {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        self.add_variables(variables.filter(|(name, _)| name.starts_with(prefix)), kind, others);
    }

    /// Adds options from variables in any order. If several variables set the same option, precedence
    /// decides. Empty variables are ignored.
    #[cfg(feature = "object-store")]
    fn add_variables(
        &mut self,
        variables: impl Iterator<Item = (String, String)>,
        kind: Kind,
        others: impl Fn(&str) -> bool,
    ) {
        let mut variables: Vec<_> = variables.filter(|(_, value)| !value.is_empty()).collect();
        let rank =
            |name: &str| PREFERRED.iter().position(|preferred| *preferred == name).unwrap_or(PREFERRED.len());
        variables.sort_unstable_by(|(a, _), (b, _)| (rank(a), a).cmp(&(rank(b), b)));
        for (name, value) in &variables {
            let plain = plain(kind, name);
            let name = match find(kind, &plain) {
                Some((option, false)) => option.name.to_owned(),
                None if others(&plain) => plain,
                _ => continue,
            };
            self.0.entry(name).or_insert_with(|| value.clone());
        }
    }

    /// Sets an option that is not set.
    pub(crate) fn or_set(&mut self, name: &str, value: impl Into<String>) {
        self.0.entry(name.to_owned()).or_insert_with(|| value.into());
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Whether any of these options has a value.
    #[cfg(feature = "object-store")]
    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.0.contains_key(*name))
    }

    /// All options by their main names.
    pub(crate) fn into_map(self) -> BTreeMap<String, String> {
        self.0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Takes the value of an option that is a time: a number of seconds, or a number with `ms`, `s` or `m`.
    pub(crate) fn take_time(&mut self, name: &str, default: Duration) -> Result<Duration> {
        let Some(text) = self.take(name) else { return Ok(default) };
        time(&text).ok_or_else(|| {
            Error::invalid(format!(
                "storage option `{name}`: expected seconds such as 20 or 500ms, found {:?}",
                text.trim()
            ))
        })
    }
}

/// A time longer than nothing: a number of seconds, or a number with a unit.
pub(crate) fn time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let factor = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" | "sec" | "seconds" => 1.0,
        "m" | "min" => 60.0,
        _ => return None,
    };
    let seconds = number.trim().parse::<f64>().ok()? * factor;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}

/// A name in the form of [`OPTIONS`].
fn plain(kind: Kind, name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let prefix = match kind {
        S3 => "aws_",
        Google => "google_",
        Azure => "azure_",
        Http | Hdfs => "",
    };
    name.strip_prefix(prefix).map(str::to_owned).unwrap_or(name)
}

/// The option with a name, and whether its value is inverted.
fn find(kind: Kind, name: &str) -> Option<(&'static StoreOption, bool)> {
    OPTIONS.iter().filter(|option| option.of.contains(&kind)).find_map(|option| {
        if option.name == name {
            return Some((option, false));
        }
        let alias = option.aliases.iter().find(|alias| alias.trim_start_matches('!') == name)?;
        Some((option, alias.starts_with('!')))
    })
}

fn negated(name: &str, value: &str) -> Result<String> {
    match truth(value) {
        Some(value) => Ok((!value).to_string()),
        None => Err(Error::invalid(format!("storage option `{name}`: expected true or false"))),
    }
}

/// The boolean value of a text.
pub(crate) fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn unknown(kind: Kind, name: &str) -> Error {
    let known: Vec<&str> = OPTIONS.iter().filter(|o| o.of.contains(&kind)).map(|o| o.name).collect();
    Error::invalid(format!("no storage option `{name}` for this store; it knows: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn aliases_set_their_option() {
        for names in [
            ["aws_access_key_id", "aws_secret_access_key", "endpoint_url"],
            ["access_key", "secret_key", "endpoint_override"],
            ["key", "secret", "client_kwargs.endpoint_url"],
            ["fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.endpoint"],
            ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"],
        ] {
            let options: Vec<_> = names.into_iter().zip(["k", "s", "e"]).collect();
            let options = Options::new(S3, &given(&options), |_| false).unwrap();
            let values = ["access_key_id", "secret_access_key", "endpoint"].map(|name| options.get(name));
            assert_eq!(values, [Some("k"), Some("s"), Some("e")], "{names:?}");
        }
    }

    #[cfg(feature = "object-store")]
    #[test]
    fn preferred_variables_win() {
        let mut variables = vec![
            ("AWS_DEFAULT_REGION", "old"),
            ("AWS_ENDPOINT_URL", "http://all"),
            ("AWS_REGION", "new"),
            ("AWS_ENDPOINT_URL_S3", "http://s3"),
            ("AWS_SESSION_TOKEN", ""),
        ];
        for _ in 0..variables.len() {
            variables.rotate_left(1);
            let mut options = Options::default();
            let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            options.add_variables(owned, S3, |_| false);
            let values = ["region", "endpoint", "session_token"].map(|name| options.get(name));
            assert_eq!(values, [Some("new"), Some("http://s3"), None], "{variables:?}");
        }
    }

    #[test]
    fn negated_aliases_are_inverted() {
        let options = given(&[("fs.s3a.path.style.access", "true"), ("use_ssl", "False"), ("anon", "true")]);
        let options = Options::new(S3, &options, |_| false).unwrap();
        assert_eq!(options.get("virtual_hosted_style_request"), Some("false"));
        assert_eq!((options.get("allow_http"), options.get("skip_signature")), (Some("true"), Some("true")));
        assert!(Options::new(S3, &given(&[("use_ssl", "perhaps")]), |_| false).is_err());
    }

    #[test]
    fn unknown_names_are_reported_without_their_values() {
        let error =
            Options::new(S3, &given(&[("secret_acess_key", "hush")]), |_| false).err().unwrap().to_string();
        assert!(error.contains("secret_acess_key") && error.contains("secret_access_key"), "{error}");
        assert!(!error.contains("hush"));
        // Other settings of Hadoop are not an error.
        assert!(Options::new(S3, &given(&[("fs.s3a.fast.upload", "true")]), |_| false).is_ok());
        let hdfs =
            Options::new(Hdfs, &given(&[("dfs.client.failover.random.order", "true")]), |_| false).unwrap();
        assert_eq!(hdfs.get("dfs.client.failover.random.order"), Some("true"));
    }

    #[test]
    fn times_have_units() {
        let second = Duration::from_secs(1);
        for (text, time) in
            [("20", 20 * second), ("0.5", second / 2), ("500ms", second / 2), ("2 m", 120 * second)]
        {
            let mut options = Options::new(Http, &given(&[("timeout", text)]), |_| false).unwrap();
            assert_eq!(options.take_time("timeout", second).unwrap(), time);
            assert_eq!(options.take_time("timeout", second).unwrap(), second);
        }
        for text in ["soon", "-1", "1h", "0", ""] {
            let mut options = Options::new(Http, &given(&[("timeout", text)]), |_| false).unwrap();
            assert!(options.take_time("timeout", second).is_err(), "{text}");
        }
    }
}
