//! Doors in the place of another service: its ports, its files and its settings, from the environment that it would read.
//!
//! The names and defaults are those of envoyproxy/ratelimit (`src/settings/settings.go`), so that a deployment of it changes its
//! image and says which server leases. What would be less safe than it was, or is not there, is refused by name; a store is
//! passed over, as units are leased.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::bail;
use axum::http::HeaderName;
use clap::ValueEnum;
use lessor_doors::rules::document::DoorsFile;
use lessor_doors::rules::{FieldKind, RuleBook};
use lessor_doors::shell::DoorAddress;

use crate::log::LogFormat;

/// A service whose place doors can take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PeerService {
    /// envoyproxy/ratelimit
    Ratelimit,
}

/// The settings of a service whose place is taken.
#[derive(Clone, Debug)]
pub(crate) struct PeerSettings {
    /// Where it served gRPC.
    pub(super) rls: DoorAddress,
    /// Where it served HTTP.
    pub(super) http: DoorAddress,
    /// The directory of its files.
    pub(super) files: PathBuf,
    /// Whether several files may have rules of one domain.
    pub(super) merges_domains: bool,
    /// The names of the fields with a limit, what is left of it and when it is whole again, if it sent any.
    pub(super) fields: Option<[&'static str; 3]>,
    /// Whether it refused nothing.
    pub(super) shadow: bool,
    /// The part of a limit from which on a request is near it.
    pub(super) near: f64,
    /// The TLS of gRPC, if it had any.
    pub(super) tls: Option<PeerTls>,
    pub(super) log_format: LogFormat,
    /// The least severe lines that it logged.
    pub(super) log_level: &'static str,
    /// Variables that say something which doors have no use for.
    pub(super) passed_over: Vec<&'static str>,
}

/// The files with which a service spoke TLS over gRPC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PeerTls {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) client_ca: Option<PathBuf>,
}

/// The variables of a service, and what is wrong with them.
struct Variables<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    faults: Vec<String>,
}

/// Variables for which doors have no use. Those of the store are more, and begin alike.
const PASSED_OVER: &[&str] = &[
    "BACKEND_TYPE",
    "REDIS_URL",
    "REDIS_PERSECOND_URL",
    "MEMCACHE_HOST_PORT",
    "MEMCACHE_SRV",
    "LOCAL_CACHE_SIZE_IN_BYTES",
    "STATSD_HOST",
    "USE_PROMETHEUS",
    "DEBUG_PORT",
    "TRACING_ENABLED",
];

// === impl PeerSettings ===

impl PeerSettings {
    /// The settings of `service` in the environment that `get` reads.
    ///
    /// # Errors
    /// All that is wrong, a line each, with the variable, its value and what was wanted.
    pub(crate) fn of(
        service: PeerService,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<PeerSettings> {
        match service {
            PeerService::Ratelimit => PeerSettings::of_ratelimit(get),
        }
    }

    fn of_ratelimit(get: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<PeerSettings> {
        let mut said = Variables { get, faults: Vec::new() };
        said.refuse_what_is_not_there();
        let rls = match said.text("GRPC_UDS") {
            Some(path) => DoorAddress::Path(path.into()),
            None => said.address("GRPC_HOST", ("GRPC_PORT", 8081)),
        };
        let http = said.address("HOST", ("PORT", 8080));
        let root = said.text("RUNTIME_ROOT").unwrap_or_else(|| "/srv/runtime_data/current".to_owned());
        let below = said.text("RUNTIME_SUBDIRECTORY").unwrap_or_default();
        let config = said.text("RUNTIME_APPDIRECTORY").unwrap_or_else(|| "config".to_owned());
        let files = [below, config].iter().fold(PathBuf::from(root), |path, part| match part.is_empty() {
            true => path,
            false => path.join(part.trim_start_matches('/')),
        });
        let settings = PeerSettings {
            rls,
            http,
            files,
            merges_domains: said.flag("MERGE_DOMAIN_CONFIG"),
            fields: said.fields(),
            shadow: said.flag("SHADOW_MODE"),
            near: said.near(),
            tls: said.tls(),
            log_format: said.log_format(),
            log_level: said.log_level(),
            passed_over: PASSED_OVER.iter().copied().filter(|name| said.text(name).is_some()).collect(),
        };
        match &said.faults[..] {
            [] => Ok(settings),
            faults => bail!("the environment of ratelimit:\n{}", faults.join("\n")),
        }
    }

    /// The document that stands in place of one of our own: how its files are read, and how requests for them are answered.
    pub(super) fn document(&self) -> DoorsFile {
        DoorsFile::of_service(self.merges_domains, self.fields.map(FieldKind::Named))
    }

    /// The rules as it would follow them.
    pub(super) fn in_manner(&self, book: RuleBook) -> RuleBook {
        let book = book.near_from(self.near);
        if self.shadow { book.in_shadow() } else { book }
    }
}

// === impl Variables ===

impl Variables<'_> {
    /// The text of a variable; an empty one says nothing.
    fn text(&self, name: &str) -> Option<String> {
        (self.get)(name).filter(|text| !text.is_empty())
    }

    fn wrong(&mut self, name: &str, text: &str, wanted: &str) {
        self.faults.push(format!("{name}: {text}; wanted {wanted}"));
    }

    fn refuse_what_is_not_there(&mut self) {
        if let Some(text) = self.text("GRPC_CLIENT_TLS_SAN") {
            let wanted = "none, as every certificate of GRPC_CLIENT_TLS_CACERT is believed";
            self.wrong("GRPC_CLIENT_TLS_SAN", &text, wanted);
        }
        if let Some(text) = self.text("CONFIG_TYPE").filter(|text| text != "FILE") {
            self.wrong("CONFIG_TYPE", &text, "FILE, as rules come from files");
        }
    }

    fn tls(&mut self) -> Option<PeerTls> {
        if !self.flag("GRPC_SERVER_USE_TLS") {
            return None;
        }
        let [certificate, key] =
            ["GRPC_SERVER_TLS_CERT", "GRPC_SERVER_TLS_KEY"].map(|name| match self.text(name) {
                Some(path) => path.into(),
                None => {
                    self.wrong(name, "nothing", "a file, as GRPC_SERVER_USE_TLS is true");
                    PathBuf::new()
                }
            });
        Some(PeerTls { certificate, key, client_ca: self.text("GRPC_CLIENT_TLS_CACERT").map(PathBuf::from) })
    }

    fn flag(&mut self, name: &str) -> bool {
        let Some(text) = self.text(name) else { return false };
        is_true(&text).unwrap_or_else(|| {
            self.wrong(name, &text, "true or false");
            false
        })
    }

    fn address(&mut self, host: &str, (port, default): (&str, u16)) -> DoorAddress {
        let address = self.text(host).unwrap_or_else(|| "0.0.0.0".to_owned());
        let ip = address.trim_matches(['[', ']']).parse().unwrap_or_else(|_| {
            self.wrong(host, &address, "an address, as 0.0.0.0");
            [127, 0, 0, 1].into()
        });
        let number = match self.text(port) {
            None => default,
            Some(text) => text.parse().unwrap_or_else(|_| {
                self.wrong(port, &text, "a port from 0 to 65535");
                default
            }),
        };
        DoorAddress::Port(SocketAddr::new(ip, number))
    }

    fn near(&mut self) -> f64 {
        let Some(text) = self.text("NEAR_LIMIT_RATIO") else { return RuleBook::NEAR };
        text.parse().ok().filter(|near| (0.0..=1.0).contains(near)).unwrap_or_else(|| {
            self.wrong("NEAR_LIMIT_RATIO", &text, "a part from 0 to 1, as 0.8");
            RuleBook::NEAR
        })
    }

    /// The names of fields, if they are sent.
    fn fields(&mut self) -> Option<[&'static str; 3]> {
        let names = [
            ("LIMIT_LIMIT_HEADER", "ratelimit-limit"),
            ("LIMIT_REMAINING_HEADER", "ratelimit-remaining"),
            ("LIMIT_RESET_HEADER", "ratelimit-reset"),
        ];
        let fields = names.map(|(name, default)| {
            let Some(text) = self.text(name) else { return default };
            match HeaderName::from_bytes(text.as_bytes()) {
                // Once in a process: its answers have these names as long as it runs.
                Ok(field) => &*field.as_str().to_owned().leak(),
                Err(_) => {
                    self.wrong(name, &text, "the name of a header field");
                    default
                }
            }
        });
        self.flag("LIMIT_RESPONSE_HEADERS_ENABLED").then_some(fields)
    }

    fn log_format(&mut self) -> LogFormat {
        let text = self.text("LOG_FORMAT").unwrap_or_default();
        match &*text.to_ascii_lowercase() {
            "" | "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            _ => {
                self.wrong("LOG_FORMAT", &text, "text or json");
                LogFormat::Text
            }
        }
    }

    /// Its levels, of which two end the process there.
    fn log_level(&mut self) -> &'static str {
        let text = self.text("LOG_LEVEL").unwrap_or_default();
        match &*text.to_ascii_lowercase() {
            "trace" => "trace",
            "debug" => "debug",
            "info" => "info",
            "" | "warn" | "warning" => "warn",
            "error" | "fatal" | "panic" => "error",
            _ => {
                self.wrong("LOG_LEVEL", &text, "trace, debug, info, warn, error, fatal or panic");
                "warn"
            }
        }
    }
}

/// The words for a flag that Go's `strconv.ParseBool` reads.
fn is_true(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
