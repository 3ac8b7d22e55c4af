//! `can`, `who-can`, `check --access` and `token`: the rules, asked without a server.

use tokio::io::AsyncWriteExt;

use crate::gate::{KEY, token};
use crate::house::{AGES, Outcome, lessor, run};

const RULES: &str = r#"
version: 3
default: deny
nodes:
  - {identity: "spiffe://acme/paris", node: paris}
clients:
  - {identity: "spiffe://acme/shop/*", client_id: "{last}-*", resources: ["db/*"]}
operators:
  - {identity: "uid:0", may: [all]}
  - {identity: team, may: [see], resources: ["db/orders"]}
"#;

/// Runs a command with the rules in a file.
async fn ask(arguments: &[&str]) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.yaml");
    std::fs::write(&path, RULES).unwrap();
    let mut all = arguments.to_vec();
    all.extend(["--access", path.to_str().unwrap()]);
    run(&all).await
}

#[tokio::test]
async fn can_says_whether_and_by_which_rule() {
    for (arguments, wanted) in [
        (&["can", "spiffe://acme/shop/web", "get", "db/orders"][..], Ok(())),
        (&["can", "spiffe://acme/shop/web", "get", "db/orders", "--client-id", "web-1"], Ok(())),
        (
            &["can", "spiffe://acme/shop/web", "get", "db/orders", "--client-id", "x"],
            Err("clients[0] on line 7 does not let \"spiffe://acme/shop/web\" call itself \"x\""),
        ),
        (&["can", "spiffe://acme/shop/web", "get", "api"], Err("hold \"api\"; wanted \"db/*\"")),
        (&["can", "web", "get", "db/orders"], Err("wanted a rule for it under clients")),
        (&["can", "spiffe://acme/paris", "node", "paris"], Ok(())),
        (&["can", "spiffe://acme/paris", "node", "tokyo"], Err("call itself \"tokyo\"")),
        (&["can", "uid:0", "push"], Ok(())),
        (&["can", "team", "see", "db/orders"], Ok(())),
        (&["can", "team", "push", "db/orders"], Err("it may [see]")),
        (&["can", "team", "see"], Err("wanted one of them")),
        (&["can", "team", "get"], Err("get is about a resource; wanted its name behind it")),
    ] {
        let outcome = ask(arguments).await;
        match wanted {
            Ok(()) => assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), "yes\n"), "{arguments:?}"),
            Err(part) => {
                assert_eq!(outcome.code, Some(1), "{arguments:?}");
                assert!(outcome.err.contains(part), "{arguments:?}: {}", outcome.err);
            }
        }
    }
}

#[tokio::test]
async fn who_can_lists_the_rules_that_let_somebody() {
    for (arguments, wanted) in [
        (&["who-can", "get", "db/orders"][..], "spiffe://acme/shop/* as {last}-*  (clients[0] on line 7)\n"),
        (&["who-can", "node"], "spiffe://acme/paris as paris  (nodes[0] on line 5)\n"),
        (
            &["who-can", "see", "db/orders"],
            "uid:0  (operators[0] on line 9)\nteam  (operators[1] on line 10)\n",
        ),
        (&["who-can", "see", "api"], "uid:0  (operators[0] on line 9)\n"),
    ] {
        let outcome = ask(arguments).await;
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), wanted), "{arguments:?}");
    }
    let nobody = ask(&["who-can", "get", "api"]).await;
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.err.contains("nobody, by these rules"), "{}", nobody.err);
}

#[tokio::test]
async fn check_says_what_is_wrong_with_rules() {
    let valid = ask(&["check"]).await;
    assert_eq!(valid.code, Some(0), "{}", valid.err);
    assert!(valid.out.ends_with("valid rules of access, 1 for nodes, 1 for clients, 2 for operators\n"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.yaml");
    std::fs::write(&path, "default: deny\nclients:\n  - {identity: \"\"}\n").unwrap();
    let faulty = run(&["check", "--access", path.to_str().unwrap()]).await;
    assert_eq!(faulty.code, Some(1));
    assert!(faulty.err.contains(":3:16: clients[0]: identity \"\" is malformed"), "{}", faulty.err);
}

#[tokio::test]
async fn a_token_is_made_and_shown() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("auth.key");
    std::fs::write(&key, KEY).unwrap();
    let key = key.to_str().unwrap();
    let flags = ["--identity", "web", "--client-id", "web-*", "--resource", "db/*", "--role", "see"];
    let sealed = token(key, &flags).await;

    let show = async |flags: &[&str], token: &str| {
        let mut command = lessor(&[&["token", "show"], flags].concat());
        let pipe = std::process::Stdio::piped;
        let mut child = command.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(token.as_bytes()).await.unwrap();
        let output = tokio::time::timeout(AGES, child.wait_with_output()).await.unwrap().unwrap();
        Outcome::of(&output)
    };
    let shown = show(&["--key", key], &sealed).await;
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    for line in
        ["identity   web\n", "client id  web-*\n", "resources  db/*\n", "roles      see\n", "believed   yes"]
    {
        assert!(shown.out.contains(line), "{line} in {}", shown.out);
    }
    let mut touched = sealed.clone();
    touched.replace_range(20..21, if &sealed[20..21] == "A" { "B" } else { "A" });
    let refused = show(&["--key", key], &touched).await;
    assert_eq!(refused.code, Some(1), "{}", refused.out);

    for (flags, wanted) in [
        (&["--identity", "plain", "--client-id", "*"][..], "stands for peers that have no certificate"),
        (&["--identity", "web"], "--client-id"),
        (&["--identity", "web", "--role", "king"], "there is no such role; wanted one of see, explain"),
        (&["--identity", "web", "--client-id", "{who}"], "wanted {last}, or none"),
    ] {
        let refused = run(&[&["token", "new", "--key", key], flags].concat()).await;
        assert_ne!(refused.code, Some(0), "{flags:?}");
        assert!(refused.err.contains(wanted), "{flags:?}: {}", refused.err);
    }
}
