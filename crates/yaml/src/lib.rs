//! Files that people write, in YAML: a tree in which every part knows its place, and everything that is wrong with it, told at
//! once and with the words of whoever wrote it.
//!
//! ```
//! use lessor_yaml::{Faults, Fields, Notes, Place, Schema, document, scalar};
//!
//! let read = |text: &str| -> Result<String, Faults> {
//!     document("greeting.yaml", text, "wanted to: and a name", |root| {
//!         let mut notes = Notes::default();
//!         let schema = Schema { subject: "the file".into(), within: "", known: &["to"], hint: |_| None };
//!         let name = Fields::read(&mut notes, root, &schema).and_then(|at| {
//!             let to = notes.read(&at, "to", |node| scalar::text("to", node).map(str::to_owned));
//!             notes.required(&at, "to", "a name", to)
//!         });
//!         name.filter(|_| notes.faults.is_empty()).ok_or(notes.faults)
//!     })
//! };
//! assert_eq!(read("to: world").unwrap(), "world");
//! assert_eq!(
//!     read("too: world").unwrap_err().to_string().lines().next(),
//!     Some("greeting.yaml:1:1: unknown field \"too\"; did you mean to?")
//! );
//! ```

pub mod fault;
pub mod fields;
pub mod node;
pub mod notes;
pub mod reading;
pub mod scalar;

pub use self::fault::{Fault, Faults};
pub use self::fields::{FILE, Fields, Schema};
pub use self::node::{Place, YamlNode, YamlValue};
pub use self::notes::Notes;
pub use self::reading::Reading;

/// Reads `text`, which is called `name` in faults, by `read`; of an empty one `wanted` says what should be in it.
///
/// # Errors
/// All that is wrong with it.
pub fn document<T>(
    name: &str,
    text: &str,
    wanted: &str,
    read: impl FnOnce(&YamlNode) -> Result<T, Vec<(Place, String)>>,
) -> Result<T, Faults> {
    // An editor may have left a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let found = match node::read(text) {
        Ok(Some(root)) => match read(&root) {
            Ok(document) => return Ok(document),
            Err(found) => found,
        },
        Ok(None) => vec![(Place::START, format!("nothing in it; {wanted}"))],
        Err(unreadable) => vec![(unreadable.place, unreadable.explained(text))],
    };
    Err(Faults::new(name, text, found))
}
