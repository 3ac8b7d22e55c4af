//! The parameters of a query: each at most once, and none that is not known.

use axum::http::Uri;

use crate::problem::ApiProblem;

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

/// Rows of one answer, at the most and where nothing else is said.
pub(crate) const MOST_ROWS: usize = 1_000;
const USUAL_ROWS: usize = 100;

// === impl Parameters ===

impl Parameters {
    /// The parameters behind the path, which are to be among `known`.
    pub(crate) fn read(uri: &Uri, known: &'static [&'static str]) -> Result<Parameters, ApiProblem> {
        let mut read: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            if !known.contains(&name.as_ref()) {
                let wanted = match known {
                    [] => "no parameter".to_owned(),
                    known => format!("one of {}", known.join(", ")),
                };
                return Err(ApiProblem::invalid("parameter", &name, &wanted).knowing(known.iter().copied()));
            }
            if read.iter().any(|(before, _)| *before == name) {
                return Err(ApiProblem::invalid(&name, &value, "it once"));
            }
            read.push((name.into_owned(), value.into_owned()));
        }
        Ok(Parameters(read))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn required(&self, name: &str, wanted: &str) -> Result<&str, ApiProblem> {
        self.text(name).ok_or_else(|| {
            let error = format!("{name}: is missing; wanted {wanted}");
            ApiProblem::new(axum::http::StatusCode::BAD_REQUEST, error)
        })
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn number(&self, name: &str, (least, most): (u64, u64)) -> Result<Option<u64>, ApiProblem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(ApiProblem::invalid(name, text, &format!("a whole number from {least} to {most}"))),
        }
    }

    /// The most rows to answer with.
    pub(crate) fn limit(&self) -> Result<usize, ApiProblem> {
        let limit = self.number("limit", (1, MOST_ROWS as u64))?;
        Ok(limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(USUAL_ROWS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(uri: &str) -> Result<Parameters, ApiProblem> {
        Parameters::read(&uri.parse().expect("a path"), &["resource", "limit"])
    }

    #[test]
    fn parameters_are_known_and_stand_once() {
        let asked = read("/v1/holders?resource=a%20b%2Bc&limit=7").expect("they are right");
        assert_eq!((asked.text("resource"), asked.limit()), (Some("a b+c"), Ok(7)));
        assert_eq!(read("/").expect("none").limit(), Ok(100));
        let unknown = read("/v1/holders?resuorce=a").expect_err("it is not known");
        assert_eq!(unknown.error, "parameter: found \"resuorce\"; wanted one of resource, limit");
        assert_eq!(unknown.known, ["resource", "limit"]);
        assert_eq!(read("/?limit=1&limit=1").expect_err("twice").error, "limit: found \"1\"; wanted it once");
        for bad in ["0", "1001", "x", "-1", ""] {
            let fault = read(&format!("/?limit={bad}")).expect("read").limit().expect_err(bad);
            assert_eq!(fault.error, format!("limit: found {bad:?}; wanted a whole number from 1 to 1000"));
        }
    }
}
