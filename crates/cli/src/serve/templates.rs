//! The templates of a server: those of a file, or those that operators push into etcd.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use lessor_server::follower::FollowerConfig;
use lessor_server::repository::Repository;
use lessor_server::revision::RevisionKeys;
use lessor_server::shell::driver::Driver;
use lessor_server::shell::etcd::{
    EtcdOptions, EtcdTemplates, FollowedChange, TemplateOptions, TemplateWatch,
};
use lessor_server::shell::random;
use lessor_server::shell::source::Source;
use tracing::{error, info, warn};

use super::Serve;
use super::followed::{FollowedFile, Follower};
use super::tasks::SecretFiles;

/// The place of a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ConfigPlace {
    /// A file.
    File(PathBuf),
    /// The keys of an etcd that begin so.
    Etcd(String),
}

/// The etcd that holds the templates.
#[derive(Debug, Args)]
#[command(next_help_heading = "Templates in etcd (--config etcd:PREFIX)")]
pub(super) struct ConfigEtcd {
    /// The members of the etcd that holds the templates [default: those of --etcd, with its certificates and user]
    #[arg(long, env = "LESSOR_CONFIG_ETCD", value_name = "URL,...", value_delimiter = ',')]
    config_etcd: Vec<String>,
    /// A file with the certificates of the authorities that members at https:// are known by, PEM
    #[arg(long, env = "LESSOR_CONFIG_ETCD_CA", value_name = "FILE", requires = "config_etcd")]
    config_etcd_ca: Option<PathBuf>,
    /// A file with the certificate that this task shows there, PEM
    #[arg(long, env = "LESSOR_CONFIG_ETCD_CERT", value_name = "FILE", requires_all = ["config_etcd_ca", "config_etcd_key"])]
    config_etcd_cert: Option<PathBuf>,
    /// A file with its private key, PEM
    #[arg(long, env = "LESSOR_CONFIG_ETCD_KEY", value_name = "FILE", requires = "config_etcd_cert")]
    config_etcd_key: Option<PathBuf>,
    /// As whom this task speaks to an etcd that asks for passwords: it reads below PREFIX, and writes below PREFIX/task/
    #[arg(long, env = "LESSOR_CONFIG_ETCD_USER", value_name = "NAME", requires_all = ["config_etcd", "config_etcd_password_file"])]
    config_etcd_user: Option<String>,
    /// A file with that user's password, and nothing else in it
    #[arg(
        long,
        env = "LESSOR_CONFIG_ETCD_PASSWORD_FILE",
        value_name = "FILE",
        requires = "config_etcd_user"
    )]
    config_etcd_password_file: Option<PathBuf>,
    /// As an earlier version that reads templates up to this feature level: for tests
    #[arg(long, hide = true)]
    pretend_features: Option<u32>,
}

/// The templates of a server that runs.
pub(super) enum FollowedTemplates {
    File(Box<Follower<Repository>>),
    Etcd(Box<EtcdTemplates>),
}

/// The time for which a start waits for templates from etcd, before it goes on without.
const PATIENCE: Duration = Duration::from_secs(5);

// === impl ConfigPlace ===

impl FromStr for ConfigPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<ConfigPlace, String> {
        match (text.strip_prefix("etcd:"), text.strip_prefix("file:")) {
            (Some(prefix), _) => {
                let keys = RevisionKeys::new(prefix).map_err(|fault| fault.to_string())?;
                Ok(ConfigPlace::Etcd(keys.prefix().to_owned()))
            }
            (None, Some("")) | (None, None) if text.is_empty() || text == "file:" => {
                Err("wanted FILE or etcd:PREFIX".to_owned())
            }
            (None, Some(path)) => Ok(ConfigPlace::File(path.into())),
            (None, None) => Ok(ConfigPlace::File(text.into())),
        }
    }
}

impl fmt::Display for ConfigPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigPlace::File(path) => write!(f, "{}", path.display()),
            ConfigPlace::Etcd(prefix) => write!(f, "etcd:{prefix}"),
        }
    }
}

// === impl ConfigEtcd ===

impl ConfigEtcd {
    /// The etcd, if one is named.
    fn options(&self) -> anyhow::Result<Option<EtcdOptions>> {
        if self.config_etcd.is_empty() {
            return Ok(None);
        }
        let files = SecretFiles {
            ca: self.config_etcd_ca.clone(),
            identity: self.config_etcd_cert.clone().zip(self.config_etcd_key.clone()),
            user: self.config_etcd_user.clone().zip(self.config_etcd_password_file.clone()),
        };
        files.options(&self.config_etcd).map(Some)
    }
}

// === impl FollowedTemplates ===

impl FollowedTemplates {
    /// The templates to start with, those who follow them, and the file for whoever wants it to be read again.
    pub(super) async fn open(
        serve: &Serve,
    ) -> anyhow::Result<(Repository, FollowedTemplates, Option<FollowedFile>)> {
        let prefix = match &serve.config {
            ConfigPlace::File(path) => {
                if !serve.config_etcd.config_etcd.is_empty() {
                    bail!(
                        "--config-etcd: --config {} is a file; wanted --config etcd:PREFIX",
                        path.display()
                    );
                }
                let mut source: Source = Source::new(path);
                let repository = source.load()?;
                let (followed, follower) = FollowedFile::new("templates", source);
                return Ok((repository, FollowedTemplates::File(Box::new(follower)), Some(followed)));
            }
            ConfigPlace::Etcd(prefix) => prefix,
        };
        let mut templates = EtcdTemplates::start(options(serve, prefix)?)?;
        let mut first = templates.first(PATIENCE).await;
        if first.is_none() {
            warn!(%prefix, "no templates have been read from etcd in {PATIENCE:?}: `lessor history` says what stands there");
            if !serve.tasks.are_elected() {
                // Whoever came would be told for certain that there is no such resource.
                info!("nothing is served until there are templates");
                first = templates.first(Duration::MAX).await;
            }
        }
        Ok((first.unwrap_or_default(), FollowedTemplates::Etcd(Box::new(templates)), None))
    }

    /// The state of those at etcd.
    pub(super) fn watch(&self) -> Option<TemplateWatch> {
        match self {
            FollowedTemplates::File(_) => None,
            FollowedTemplates::Etcd(templates) => Some(templates.watch()),
        }
    }

    /// Puts them in force whenever they change.
    pub(super) async fn follow(&mut self, driver: &Driver) -> Infallible {
        match self {
            FollowedTemplates::File(follower) => {
                follower.follow(|loaded| super::reload(driver, loaded)).await
            }
            FollowedTemplates::Etcd(templates) => loop {
                let put = match templates.next().await {
                    FollowedChange::Templates(repository) => driver.reload(repository),
                    FollowedChange::Overrides(overrides) => driver.set_overrides(overrides),
                };
                if let Err(fault) = put {
                    error!(%fault, "what stands at etcd is not in force");
                }
            },
        }
    }

    /// Lets it be known at etcd that this task ends.
    pub(super) async fn leave(self) {
        if let FollowedTemplates::Etcd(templates) = self {
            templates.leave().await;
        }
    }
}

/// The etcd at which the templates are.
fn etcd_of(serve: &Serve, prefix: &str) -> anyhow::Result<EtcdOptions> {
    match serve.config_etcd.options()? {
        Some(etcd) => Ok(etcd),
        None => serve.tasks.etcd_options()?.with_context(|| {
            format!("--config etcd:{prefix}: at which etcd? wanted --config-etcd URL,... or --etcd URL,...")
        }),
    }
}

fn options(serve: &Serve, prefix: &str) -> anyhow::Result<TemplateOptions> {
    let etcd = etcd_of(serve, prefix)?;
    let mut follower = FollowerConfig::new(prefix, &serve.node, random::number())?;
    if serve.tasks.are_elected() {
        follower.keys.check_apart(&serve.tasks.etcd_prefix)?;
    }
    follower.address = serve.advertise.clone().unwrap_or_else(|| serve.listen.to_string());
    follower.level = serve.config_etcd.pretend_features.unwrap_or(follower.level);
    follower.binary = env!("LESSOR_VERSION").to_owned();
    Ok(TemplateOptions { etcd, follower, directory: serve.state_dir.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_a_file_or_a_prefix_at_etcd() {
        let place = |text: &str| text.parse::<ConfigPlace>();
        assert_eq!(place("a.yaml"), Ok(ConfigPlace::File("a.yaml".into())));
        assert_eq!(place("file:a.yaml"), Ok(ConfigPlace::File("a.yaml".into())));
        assert_eq!(place("etcd:t/prod/"), Ok(ConfigPlace::Etcd("t/prod".to_owned())));
        assert_eq!(place("./etcd:x"), Ok(ConfigPlace::File("./etcd:x".into())));
        assert!(place("etcd:").unwrap_err().contains("is empty; wanted one as lessor-templates/prod"));
        assert_eq!(
            [place(""), place("file:")].map(|place| place.unwrap_err()),
            ["wanted FILE or etcd:PREFIX"; 2]
        );
    }
}
