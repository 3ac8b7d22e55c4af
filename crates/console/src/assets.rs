//! The files of the page: embedded, packed once, and known by what they hold.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use lessor_server::shell::http::INDEX;

use crate::desk::Desk;

/// A file of the page, plain and packed.
struct Asset {
    plain: String,
    gzip: Vec<u8>,
    kind: &'static str,
    /// The tag by which browsers know what they have.
    tag: String,
}

const FRONT: &str = "console.html";
/// The script of the port of operators, which nobody else is served.
const PUSH: &str = "push.js";
const FILES: [(&str, &str); 5] = [
    (FRONT, include_str!("../page/console.html")),
    ("console.css", include_str!("../page/console.css")),
    ("console.js", SCRIPT),
    ("icon.svg", include_str!("../page/icon.svg")),
    (PUSH, include_str!("../page/push.js")),
];

/// The script: one module, of which each file is a room.
const SCRIPT: &str = concat!(
    include_str!("../page/dom.js"),
    include_str!("../page/live.js"),
    include_str!("../page/chart.js"),
    include_str!("../page/level.js"),
    include_str!("../page/resource.js"),
    include_str!("../page/tree.js"),
    include_str!("../page/domains.js"),
    include_str!("../page/lanes.js"),
    include_str!("../page/tiers.js"),
    include_str!("../page/operators.js"),
    include_str!("../page/plan.js"),
    include_str!("../page/console.js"),
);

/// The spaces of a style that say nothing. It has none of them in a text.
const SPACES: [(&str, &str); 7] =
    [("; ", ";"), ("{ ", "{"), (" }", "}"), (": ", ":"), (" {", "{"), (", ", ","), (";}", "}")];

static PACKED: LazyLock<BTreeMap<&str, Asset>> =
    LazyLock::new(|| FILES.into_iter().map(|(name, plain)| (name, Asset::new(name, plain))).collect());

/// The routes of the console, as text.
const V1: &str = "/         in a browser: the console\n\
    /plain    the same in short, without scripts\n\
    /v1/node, /v1/here, /v1/tasks, /v1/resources, /v1/holders?resource=NAME, /v1/domains, /v1/overrides, /v1/findings, /v1/series,\n\
    /v1/history, /v1/revision?number=N, /v1/diff?from=N&to=N, /v1/events: JSON; lists take ?where=has<share,client^=web-&sort=-short&limit=N&after=NEXT\n\
    POST /v1/tiers, /v1/check: burst tiers as clients count them; what is wrong with a configuration\n";

// === impl Asset ===

impl Asset {
    fn new(name: &str, source: &str) -> Asset {
        let plain = squeezed(name, source);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        std::io::Write::write_all(&mut encoder, plain.as_bytes()).expect("memory takes everything");
        let gzip = encoder.finish().expect("memory takes everything");
        let tag = format!("\"{}\"", &blake3::hash(plain.as_bytes()).to_hex()[..32]);
        let kind = match name.rsplit_once('.') {
            Some((_, "html")) => "text/html; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        };
        Asset { plain, gzip, kind, tag }
    }

    /// The answer to whoever may have it already.
    fn answer(&self, asked: &HeaderMap) -> Response {
        let has = |name: header::HeaderName, part: &str| {
            asked
                .get_all(name)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .any(|value| value.contains(part))
        };
        let mut response = match has(header::IF_NONE_MATCH, &self.tag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false if has(header::ACCEPT_ENCODING, "gzip") => {
                let mut response = Body::from(self.gzip.clone()).into_response();
                response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                response
            }
            false => Body::from(self.plain.clone()).into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
        if let Ok(tag) = HeaderValue::from_str(&self.tag) {
            headers.insert(header::ETAG, tag);
        }
        response
    }
}

/// A file without the lines that are comments, and without spaces before the others: nothing else is done to it.
fn squeezed(name: &str, source: &str) -> String {
    let (mut squeezed, mut is_comment) = (String::with_capacity(source.len()), false);
    for line in source.lines().map(str::trim_start) {
        is_comment |= line.starts_with("/*");
        if !is_comment && !line.is_empty() && !line.starts_with("//") {
            squeezed.push_str(line);
            squeezed.push('\n');
        }
        is_comment &= !line.ends_with("*/");
    }
    match name.ends_with(".css") {
        true => SPACES.iter().fold(squeezed, |text, (long, short)| text.replace(long, short)),
        false => squeezed,
    }
}

/// Answers `/`: the page for browsers, and text for all others.
pub(crate) async fn front(request: Request) -> Response {
    let accepted = request.headers().get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    match accepted.into_iter().any(|types| types.contains("text/html")) {
        true => file(FRONT, request.headers()),
        false => ([(header::VARY, "accept")], format!("{INDEX}{V1}")).into_response(),
    }
}

/// Answers `/console.js`, which browsers know by that name.
pub(crate) async fn script(request: Request) -> Response {
    file("console.js", request.headers())
}

/// Answers `/push.js`, at the port of operators.
pub(crate) async fn push(State(desk): State<Desk>, request: Request) -> Response {
    match desk.is_of_operators {
        true => file(PUSH, request.headers()),
        false => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Answers `/console.css`.
pub(crate) async fn style(request: Request) -> Response {
    file("console.css", request.headers())
}

/// Answers `/favicon.ico`, for which browsers ask by themselves.
pub(crate) async fn icon(request: Request) -> Response {
    file("icon.svg", request.headers())
}

fn file(name: &str, asked: &HeaderMap) -> Response {
    match PACKED.get(name) {
        Some(asset) => asset.answer(asked),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let plain: usize = PACKED.values().map(|file| file.plain.len()).sum();
        let packed: usize = PACKED.values().map(|file| file.gzip.len()).sum();
        println!("{plain} bytes, {packed} packed");
        assert!(plain <= 120 << 10, "{plain} bytes");
        assert!(packed <= 36 << 10, "{packed} bytes, packed");
    }

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let mut files = 0;
        for file in std::fs::read_dir(folder).expect("it is there") {
            let path = file.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("text");
            let squeezed = squeezed(&path.display().to_string(), &text);
            assert!(PACKED.values().any(|asset| asset.plain.contains(&squeezed)), "{text}");
            files += 1;
        }
        assert_eq!(files, 16);
    }

    #[test]
    fn only_comments_and_spaces_are_left_out() {
        let source = "// A.\n/** B.\n * C.\n */\n* { a: b; }\n\n  if (c) {\n    d(); // E.\n  }\n/* F. */\n";
        assert_eq!(squeezed("a.js", source), "* { a: b; }\nif (c) {\nd(); // E.\n}\n");
        assert_eq!(squeezed("a.css", "/* A. */\n.b > i, u { c: d; }\n"), ".b > i,u{c:d}\n");
    }

    #[test]
    fn a_file_is_sent_packed_to_who_takes_that_and_not_at_all_to_who_has_it() {
        let file = &PACKED["console.js"];
        let with = |name, value: &str| HeaderMap::from_iter([(name, value.parse().expect("a value"))]);
        let packed = file.answer(&with(header::ACCEPT_ENCODING, "br, gzip"));
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        assert!(!file.answer(&HeaderMap::new()).headers().contains_key(header::CONTENT_ENCODING));
        assert_eq!(file.answer(&with(header::IF_NONE_MATCH, &file.tag)).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(file.answer(&with(header::IF_NONE_MATCH, "\"other\"")).status(), StatusCode::OK);
    }

    #[test]
    fn nothing_in_the_page_comes_from_elsewhere_or_makes_markup_of_text() {
        for file in PACKED.values() {
            let text = &file.plain;
            let foreign: Vec<&str> =
                text.split(['"', '\'', '`', ' ', '(']).filter(|word| word.contains("://")).collect();
            // The name of SVG is no address.
            assert!(foreign.iter().all(|word| *word == "http://www.w3.org/2000/svg"), "{foreign:?}");
            for markup in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
            {
                assert!(!text.contains(markup), "{markup}");
            }
        }
    }
}
