//! The page without scripts: the node and its resources as one table of plain HTML.

use std::fmt::Write as _;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use lessor_server::access::Role;
use lessor_server::shell::driver::Summary;

use crate::desk::Desk;
use crate::parameters::Parameters;
use crate::problem::ApiProblem;

/// Resources that are shown.
const MOST: usize = 200;

/// Answers `/plain`.
pub(crate) async fn page(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    Parameters::read(request.uri(), &[])?;
    desk.may(&request, Role::See, None)?;
    let summary = desk.summary().await?;
    let mut response = html(&summary).into_response();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

fn html(summary: &Summary) -> String {
    let status = &summary.status;
    let mut page = String::from(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <meta http-equiv=refresh content=5><title>Lessor</title><link rel=stylesheet href=/console.css>\
         <body class=plain><main>",
    );
    let path: Vec<String> = status.names.path.iter().map(|name| escaped(name)).collect();
    let (node, count) = (path.join(" / "), status.resources_in_all);
    write!(
        page,
        "<h1>{node}</h1><p>Epoch {}, configuration {}, {count} resources.",
        status.epoch, status.config_version
    )
    .expect("a string takes everything");
    page.push_str(
        "<div class=scroll><table><thead><tr><th scope=col>resource<th scope=col>capacity<th scope=col>out\
         <th scope=col>wanted<th scope=col>holders<th scope=col>short<tbody>",
    );
    for row in status.resources.iter().take(MOST) {
        let (name, of) = (escaped(&row.resource.resource), &row.resource);
        write!(
            page,
            "<tr><th scope=row>{name}<td>{:.2}<td>{:.2}<td>{:.2}<td>{}<td>{:.2}",
            of.capacity, row.outstanding, of.wants, of.clients, row.pressure.short
        )
        .expect("a string takes everything");
    }
    page.push_str("</table></div></main>");
    page
}

/// Text as it stands in HTML: names are chosen by clients.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(
            escaped("<img src=x onerror='a&b'>\""),
            "&lt;img src=x onerror=&#39;a&amp;b&#39;&gt;&quot;"
        );
    }
}
