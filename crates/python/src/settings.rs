//! Settings of a client, by keyword: how it is known, how it speaks, and whom it believes.

use std::path::PathBuf;
use std::time::Duration;

use lessor_client::{BearerToken, Builder, Tls, Transport};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::Seconds;
use crate::options::{unknown, word};

/// The settings from which each process builds its client.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) id: Option<String>,
    timeout: Option<Duration>,
    transport: Transport,
    tls: Option<Tls>,
    token: Option<Token>,
}

/// A bearer token. What reads its file again has a lock, and is made in each process anew.
enum Token {
    Text(String),
    File(PathBuf),
}

/// The parts of TLS, as they are given.
#[derive(Default)]
struct Given {
    ca: Option<Pem>,
    cert: Option<Pem>,
    key: Option<Pem>,
    server_identity: Option<String>,
}

/// A text in PEM, or the path of its file.
enum Pem {
    Text(Vec<u8>),
    File(PathBuf),
}

// === impl Settings ===

impl Settings {
    /// As keywords give them. `None` is the same as nothing given.
    pub(crate) fn read(given: Option<&Bound<'_, PyDict>>) -> PyResult<Settings> {
        let (mut settings, mut tls) = (Settings::default(), Given::default());
        for (name, value) in given.into_iter().flatten() {
            let name: PyBackedStr = name.extract()?;
            if !settings.set(&name, &value)? && !tls.set(&name, &value)? {
                return Err(unknown("Client", &name));
            }
        }
        settings.tls = tls.settings()?;
        Ok(settings)
    }

    /// Whether there is such a setting.
    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "id" => self.id = value.extract()?,
            "timeout" => self.timeout = value.extract::<Option<Seconds>>()?.map(|Seconds(time)| time),
            "transport" => {
                let words = [("stream", Transport::Stream), ("poll", Transport::Poll)];
                self.transport = word(name, value, &words)?.unwrap_or_default();
            }
            "token" => self.set_token(value.extract::<Option<String>>()?.map(Token::Text))?,
            "token_file" => self.set_token(value.extract::<Option<PathBuf>>()?.map(Token::File))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_token(&mut self, token: Option<Token>) -> PyResult<()> {
        if token.is_some() && self.token.is_some() {
            return Err(PyValueError::new_err("token: is given with token_file; wanted one of them"));
        }
        self.token = token.or(self.token.take());
        Ok(())
    }

    /// A builder with all of them.
    pub(crate) fn apply(&self, mut builder: Builder) -> Builder {
        if let Some(id) = &self.id {
            builder = builder.id(id);
        }
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(tls) = &self.tls {
            builder = builder.tls(tls.clone());
        }
        match &self.token {
            Some(Token::Text(text)) => builder = builder.token(BearerToken::text(text)),
            Some(Token::File(path)) => builder = builder.token(BearerToken::file(path)),
            None => {}
        }
        builder.transport(self.transport)
    }
}

// === impl Given ===

impl Given {
    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "ca" => self.ca = Pem::read(value)?,
            "cert" => self.cert = Pem::read(value)?,
            "key" => self.key = Pem::read(value)?,
            "server_identity" => self.server_identity = value.extract()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn settings(self) -> PyResult<Option<Tls>> {
        let fault = |text: &str| Err(PyValueError::new_err(text.to_owned()));
        let Given { ca, cert, key, server_identity } = self;
        let Some(ca) = ca else {
            return match (cert.or(key), server_identity) {
                (None, None) => Ok(None),
                (Some(_), _) => {
                    fault("cert and key: are given without ca; wanted the authorities of servers")
                }
                (None, Some(_)) => {
                    fault("server_identity: is given without ca; wanted the authorities of servers")
                }
            };
        };
        let tls = match ca {
            Pem::Text(pem) => Tls::ca(pem),
            Pem::File(path) => Tls::ca_file(path),
        };
        let tls = match (cert, key) {
            (None, None) => tls,
            (Some(Pem::Text(cert)), Some(Pem::Text(key))) => tls.identity(cert, key),
            (Some(Pem::File(cert)), Some(Pem::File(key))) => tls.identity_files(cert, key),
            (Some(_), None) => return fault("cert: is given without key; wanted both"),
            (None, Some(_)) => return fault("key: is given without cert; wanted both"),
            (Some(_), Some(_)) => {
                return fault("cert and key: one is a file and one a text; wanted two of a kind");
            }
        };
        let tls = tls.named("", "server_identity");
        Ok(Some(match server_identity {
            Some(glob) => tls.server(glob),
            None => tls,
        }))
    }
}

// === impl Pem ===

impl Pem {
    /// Bytes are the text itself, and everything else is a path.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Option<Pem>> {
        if value.is_none() {
            return Ok(None);
        }
        if value.is_instance_of::<PyBytes>() {
            return Ok(Some(Pem::Text(value.extract::<PyBackedBytes>()?.to_vec())));
        }
        Ok(Some(Pem::File(value.extract()?)))
    }
}
