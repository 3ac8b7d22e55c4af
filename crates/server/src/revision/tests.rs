//! Tests of what stands at etcd: what is good comes back as it was, and what is not is said with its key.

use super::*;

const KEY: &str = "p/revision/0000000007";

fn revision() -> Revision {
    Revision {
        number: 7,
        parent: 6,
        parent_digest: Some(Digest::of("six")),
        at: "2026-11-24T18:00:00Z".to_owned(),
        documents: vec![
            RevisionDocument::new("*", "all.yaml", "a"),
            RevisionDocument::new("pa*", "some.yaml", "b"),
            RevisionDocument::new("paris", "one.yaml", "c"),
        ],
        message: "why".to_owned(),
        ..Revision::default()
    }
}

fn fault(change: impl FnOnce(&mut Revision)) -> String {
    let mut revision = revision();
    change(&mut revision);
    let fault = revision.encode(KEY).expect_err("it is not valid").to_string();
    let text = serde_json::to_vec(&revision).unwrap();
    assert_eq!(Revision::decode(KEY, &text).expect_err("nor when it is read").to_string(), fault);
    fault
}

#[test]
fn a_revision_comes_back_as_it_was_and_only_as_what_its_head_names() {
    let text = revision().encode(KEY).unwrap();
    let (read, digest) = Revision::decode(KEY, text.as_bytes()).unwrap();
    assert_eq!(read, revision());
    let head = read.head(digest);
    assert_eq!(RevisionHead::decode("p/head", head.encode().as_bytes()), Ok(head));
    assert_eq!(Revision::decode_of(KEY, &head, text.as_bytes()), Ok(read));
    let other = RevisionHead { digest: Digest::of("other"), ..head };
    let fault = Revision::decode_of(KEY, &other, text.as_bytes()).unwrap_err().to_string();
    let told = format!(
        "key {KEY:?}: revision 7 with digest {digest}; wanted revision 7 with digest {}, as the head says",
        other.digest
    );
    assert_eq!(fault, told);
}

#[test]
fn a_node_follows_the_document_of_its_name_before_the_first_glob_that_matches() {
    let revision = revision();
    let name = |node| revision.document_for(node).map(|document| document.name.as_str());
    assert_eq!(
        [name("paris"), name("palermo"), name("tokyo")],
        [Some("one.yaml"), Some("all.yaml"), Some("all.yaml")]
    );
    let only = Revision { documents: vec![RevisionDocument::new("root", "r", "")], ..revision.clone() };
    assert_eq!(only.document_for("tokyo"), None);
}

#[test]
fn a_revision_that_is_not_valid_is_neither_written_nor_read() {
    assert_eq!(fault(|it| it.number = 0), format!("key {KEY:?}: number 0; wanted a number from 1 on"));
    assert!(fault(|it| it.parent = 7).ends_with("number 7 after parent 7; wanted a greater number"));
    assert!(fault(|it| it.parent_digest = None).contains("without its digest"));
    assert!(fault(|it| it.message.clear()).ends_with("no message; wanted a message that says why"));
    assert!(
        fault(|it| it.message = "x".repeat(2_049)).contains("a message of 2049 bytes; wanted at most 2048")
    );
    assert!(fault(|it| it.documents.clear()).ends_with("no document; wanted one at least"));
    let many = (0..65).map(|number| RevisionDocument::new(format!("n{number}"), "x", ""));
    let many: Vec<RevisionDocument> = many.collect();
    assert!(fault(|it| it.documents = many).contains("65 documents; wanted at most 64"));
    assert!(fault(|it| it.documents[0].bytes = MOST_BYTES + 1).contains("wanted at most 16777216"));
    assert!(fault(|it| it.documents[0].nodes = "[".to_owned()).contains("a document for \"[\": "));
    assert!(fault(|it| it.documents[0].nodes = "paris".to_owned()).contains("two documents for \"paris\""));
}

#[test]
fn what_is_no_revision_of_this_form_is_refused_with_its_key() {
    let decode = |text: &str| Revision::decode(KEY, text.as_bytes()).unwrap_err().to_string();
    let later = revision().encode(KEY).unwrap().replacen("\"form\":1", "\"form\":2", 1);
    let told = "a later version has written it: form 2; wanted form 1, which this one reads";
    assert_eq!(decode(&later), format!("key {KEY:?}: {told}"));
    for foreign in ["", "{", "[]", "hello", "{\"form\":1}", "{\"form\":1,\"number\":-1}"] {
        let fault = decode(foreign);
        assert!(
            fault.starts_with(&format!("key {KEY:?}: ")) && fault.ends_with("; wanted a revision in JSON"),
            "{fault}"
        );
    }
    assert!(decode(&" ".repeat(MOST_RECORD + 1)).contains("65537 bytes; wanted at most 65536"));
    let bad = RevisionHead::decode("p/head", br#"{"form":1,"number":3,"digest":"b3:12"}"#).unwrap_err();
    assert!(bad.to_string().contains("wanted b3: and 64 hexadecimal digits"), "{bad}");
}

#[test]
fn a_document_is_packed_and_only_what_its_revision_names_is_unpacked() {
    let text = "resources:\n".repeat(1_000);
    let document = RevisionDocument::new("*", "all.yaml", &text);
    let packed = pack("p/blob/x", &text).unwrap();
    assert!(packed.len() < 200 && packed == pack("p/blob/x", &text).unwrap());
    assert_eq!(unpack("p/blob/x", &document, &packed).as_deref(), Ok(text.as_str()));
    let fault =
        |document: &RevisionDocument, bytes: &[u8]| unpack("k", document, bytes).unwrap_err().to_string();
    let other = RevisionDocument { blob: Digest::of("other"), ..document.clone() };
    assert!(
        fault(&other, &packed)
            .contains(&format!("a text with digest {}; wanted {}", document.blob, other.blob))
    );
    let smaller = RevisionDocument { bytes: 100, ..document.clone() };
    assert!(fault(&smaller, &packed).contains("more than 100 bytes, unpacked"));
    assert!(fault(&document, &packed[..packed.len() / 2]).starts_with("key \"k\": "));
    assert!(
        fault(&document, b"plain").contains("wanted the document \"all.yaml\" of 11000 bytes, compressed")
    );
}

#[test]
fn keys_lie_under_a_prefix_that_is_apart_from_that_of_elections() {
    let keys = RevisionKeys::new("lessor-templates/prod/").unwrap();
    assert_eq!(keys.head(), "lessor-templates/prod/head");
    assert_eq!(keys.revision(42), "lessor-templates/prod/revision/0000000042");
    assert_eq!(keys.draft_of(&keys.draft("x")), Some("x"));
    assert_eq!((keys.draft_of(&keys.head()), keys.draft_of(&keys.drafts())), (None, None));
    assert_eq!(keys.task("a/b", 10), "lessor-templates/prod/task/a/b/000000000000000a");
    for (prefix, why) in [("", "is empty"), ("//", "is empty"), ("a\nb", "has control characters")] {
        let told = RevisionKeys::new(prefix).unwrap_err().to_string();
        assert!(told.contains(why), "{told}");
    }
    assert!(keys.check_apart("lessor").is_ok());
    for near in ["lessor-templates", "lessor-templates/prod", "lessor-templates/prod/x/"] {
        let told = keys.check_apart(near).unwrap_err().to_string();
        assert!(told.contains("is not apart from the prefix of elections"), "{told}");
    }
}

#[test]
fn the_last_good_revision_is_that_of_the_node_or_refused() {
    let document = RevisionDocument::new("*", "all.yaml", "text");
    let head = RevisionHead { form: FORM, number: 3, digest: Digest::of("three") };
    let last = LastGood::new("p", "paris", head, document, "text");
    let decode = |last: &LastGood| LastGood::decode("f", "p", "paris", last.encode().as_bytes());
    assert_eq!(decode(&last), Ok(last.clone()));
    let other = LastGood { node: "tokyo".to_owned(), ..last.clone() };
    assert!(decode(&other).unwrap_err().to_string().contains("a revision of node \"tokyo\""));
    let changed = LastGood { text: "other".to_owned(), ..last };
    assert!(decode(&changed).unwrap_err().to_string().contains("a text with digest"));
}

#[test]
fn a_report_tells_a_part_of_many_faults() {
    let told = told((0..50).map(|_| "ä".repeat(400)).collect());
    assert_eq!((told.len(), told[20].as_str()), (21, "and 30 more"));
    assert!(told[0].ends_with('…') && told[0].len() < 510);
    let report = TaskReport { form: FORM, node: "root".to_owned(), ..TaskReport::default() };
    assert_eq!(TaskReport::decode("k", report.encode().as_bytes()), Ok(report));
}
