//! Tests of the settings that an environment says.

use super::*;

fn settings(said: &[(&str, &str)]) -> anyhow::Result<PeerSettings> {
    let get = |name: &str| said.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
    PeerSettings::of(PeerService::Ratelimit, &get)
}

#[test]
fn without_a_word_it_is_as_that_service_is() {
    for said in [&[][..], &[("PORT", ""), ("SHADOW_MODE", "f"), ("CONFIG_TYPE", "FILE")]] {
        let settings = settings(said).unwrap();
        assert_eq!(
            (settings.rls.to_string(), settings.http.to_string()),
            ("0.0.0.0:8081".to_owned(), "0.0.0.0:8080".to_owned())
        );
        assert_eq!(settings.files, PathBuf::from("/srv/runtime_data/current/config"));
        assert!(!settings.merges_domains && !settings.shadow && settings.fields.is_none());
        assert_eq!((settings.near, settings.log_level), (0.8, "warn"));
        assert!(settings.passed_over.is_empty());
    }
}

#[test]
fn all_that_doors_can_do_is_taken_over() {
    let settings = settings(&[
        ("GRPC_UDS", "/run/ratelimit.sock"),
        ("HOST", "::1"),
        ("PORT", "9000"),
        ("RUNTIME_ROOT", "/data"),
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
        ("RUNTIME_APPDIRECTORY", "limits"),
        ("MERGE_DOMAIN_CONFIG", "true"),
        ("SHADOW_MODE", "1"),
        ("NEAR_LIMIT_RATIO", "0.5"),
        ("LIMIT_RESPONSE_HEADERS_ENABLED", "true"),
        ("LIMIT_LIMIT_HEADER", "X-Most"),
        ("LOG_LEVEL", "Debug"),
        ("LOG_FORMAT", "json"),
        ("REDIS_URL", "redis:6379"),
        ("USE_STATSD", "false"),
    ])
    .unwrap();
    assert_eq!(
        (settings.rls.to_string(), settings.http.to_string()),
        ("unix:/run/ratelimit.sock".to_owned(), "[::1]:9000".to_owned())
    );
    assert_eq!(settings.files, PathBuf::from("/data/ratelimit/limits"));
    assert!(settings.merges_domains && settings.shadow);
    assert_eq!(settings.fields, Some(["x-most", "ratelimit-remaining", "ratelimit-reset"]));
    assert_eq!((settings.near, settings.log_level), (0.5, "debug"));
    assert!(matches!(settings.log_format, LogFormat::Json));
    assert_eq!(settings.passed_over, ["REDIS_URL"]);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let fault = settings(&[
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", "/tls/cert.pem"),
        ("GRPC_CLIENT_TLS_SAN", "proxy.shop"),
        ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
        ("GRPC_HOST", "everywhere"),
        ("GRPC_PORT", "70000"),
        ("NEAR_LIMIT_RATIO", "80"),
        ("SHADOW_MODE", "yes"),
        ("LIMIT_RESET_HEADER", "reset after"),
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
    ])
    .unwrap_err();
    let fault = fault.to_string();
    let lines: Vec<&str> = fault.lines().collect();
    assert_eq!(
        lines,
        [
            "the environment of ratelimit:",
            "GRPC_CLIENT_TLS_SAN: proxy.shop; wanted none, as every certificate of GRPC_CLIENT_TLS_CACERT is believed",
            "CONFIG_TYPE: GRPC_XDS_SOTW; wanted FILE, as rules come from files",
            "GRPC_HOST: everywhere; wanted an address, as 0.0.0.0",
            "GRPC_PORT: 70000; wanted a port from 0 to 65535",
            "LIMIT_RESET_HEADER: reset after; wanted the name of a header field",
            "SHADOW_MODE: yes; wanted true or false",
            "NEAR_LIMIT_RATIO: 80; wanted a part from 0 to 1, as 0.8",
            "GRPC_SERVER_TLS_KEY: nothing; wanted a file, as GRPC_SERVER_USE_TLS is true",
            "LOG_FORMAT: xml; wanted text or json",
            "LOG_LEVEL: loud; wanted trace, debug, info, warn, error, fatal or panic",
        ]
    );
}
