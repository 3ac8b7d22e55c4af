//! Malformed requests: each is refused by the name of its field, and nobody else notices.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::{
    GetCapacityRequest, GetServerCapacityRequest, Lease, PriorityBandAggregate, ReleaseCapacityRequest,
    ResourceRequest, ServerCapacityResourceRequest,
};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::house::holder::{Holder, Nature, ask, claim};
use crate::house::{House, everything, template};
use crate::raw;

const AMOUNT: &str = "a finite number of at least 0";
const NAME: &str = "1 to 256 bytes of text without control characters";
const PRIORITY: &str = "a whole number, greater is served first";
const COUNT: &str = "a whole number from 1 to 4294967295";

/// A server, somebody who holds a lease all the time, and somebody who sends nonsense.
struct Scene {
    house: House,
    witness: Holder,
    witness_server: CapacityClient<Channel>,
    channel: Channel,
    server: CapacityClient<Channel>,
}

// === impl Scene ===

impl Scene {
    async fn open() -> Scene {
        let algorithm =
            "{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 1, learning_mode_duration: 0}";
        let house = House::open(&template("db*", 100.0, algorithm)).await;
        let channel = house.connect().await;
        let mut scene = Scene {
            witness: Holder::new("witness", Nature::Knows, "db", 70.0),
            witness_server: house.capacity().await,
            server: CapacityClient::new(channel.clone()),
            channel,
            house,
        };
        scene.check_undisturbed("at the start").await;
        scene
    }

    /// The witness goes on with what it had, and is still the only one there is.
    async fn check_undisturbed(&mut self, after: &str) {
        let before = clock::now();
        let granted = self.witness.report(&mut self.witness_server).await;
        let granted = granted.unwrap_or_else(|error| panic!("after {after}: {error}"));
        assert_eq!(granted, 70.0, "after {after}");
        assert!(clock::now().since(before) < Duration::from_secs(5), "the witness waits after {after}");
        let status = self.house.page("/status").await.json();
        assert_eq!(status["status"]["resources_in_all"], 1, "after {after}: {status}");
        let resource = self.house.resource("db").await.unwrap();
        let kept = (&resource["clients"], &resource["wants"], &resource["leased"]);
        assert_eq!(kept, (&1.into(), &70.0.into(), &70.0.into()), "after {after}: {resource}");
    }

    async fn check_client(&mut self, request: GetCapacityRequest, wanted: Refusal<'_>) {
        let answer = self.server.get_capacity(request).await;
        check(answer.map(drop), wanted);
        self.check_undisturbed(wanted.message).await;
    }

    async fn check_resource(&mut self, resource: ResourceRequest, field: &str, found: &str, hope: &str) {
        let message = |place: usize| format!("resource[{place}].{field}: {found}; wanted {hope}");
        self.check_client(from("nobody", [resource.clone()]), invalid(&message(0))).await;
        self.check_part(resource, invalid(&message(1))).await;
    }

    /// The first question is in order, and answered: the other is refused, and spoils nothing.
    async fn check_part(&mut self, resource: ResourceRequest, wanted: Refusal<'_>) {
        let request = from("nobody", [ask("db", 0.0), resource]);
        let answer = self.server.get_capacity(request).await.expect(wanted.message).into_inner();
        let answered: Vec<&str> = answer.response.iter().map(|grant| grant.resource_id.as_str()).collect();
        assert_eq!(answered, ["db"], "{}", wanted.message);
        let [refused] = &answer.refused[..] else { panic!("one is refused: {answer:?}") };
        assert_eq!((refused.index, refused.code()), (1, i32::from(wanted.code)));
        assert_eq!(refused.reason(), wanted.message);
        let release = ReleaseCapacityRequest {
            client_id: Some("nobody".to_owned()),
            resource_id: vec!["db".to_owned()],
            ..ReleaseCapacityRequest::default()
        };
        self.server.release_capacity(release).await.expect(wanted.message);
        self.check_undisturbed(wanted.message).await;
    }

    async fn check_node(&mut self, wants: Vec<PriorityBandAggregate>, message: &str) {
        let resource = ServerCapacityResourceRequest {
            resource_id: Some("db".into()),
            wants,
            ..ServerCapacityResourceRequest::default()
        };
        let request = GetServerCapacityRequest {
            server_id: Some("leaf".into()),
            resource: vec![resource],
            ..GetServerCapacityRequest::default()
        };
        let answer = self.server.get_server_capacity(request).await;
        check(answer.map(drop), invalid(message));
        self.check_undisturbed(message).await;
    }
}

#[derive(Clone, Copy)]
struct Refusal<'a> {
    code: Code,
    message: &'a str,
}

fn invalid(message: &str) -> Refusal<'_> {
    Refusal { code: Code::InvalidArgument, message }
}

fn from(client: &str, resources: impl Into<Vec<ResourceRequest>>) -> GetCapacityRequest {
    GetCapacityRequest {
        client_id: Some(client.to_owned()),
        resource: resources.into(),
        ..GetCapacityRequest::default()
    }
}

#[track_caller]
fn check(answer: Result<(), Status>, wanted: Refusal<'_>) {
    let status = answer.expect_err(wanted.message);
    assert_eq!((status.code(), status.message()), (wanted.code, wanted.message));
    if wanted.code == Code::InvalidArgument {
        let details = status.get_details_bad_request().expect("the details name the field");
        let field = &details.field_violations[0].field;
        assert!(wanted.message.starts_with(&format!("{field}: ")), "{field:?} in the details of {status:?}");
    }
}

#[tokio::test]
async fn amounts_that_are_none_are_refused() {
    let mut scene = Scene::open().await;
    for (amount, found) in
        [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf"), (-0.5, "-0.5")]
    {
        let found = format!("is {found}");
        scene.check_resource(ask("db-2", amount), "wants", &found, AMOUNT).await;
        let has = ResourceRequest { has: Some(claim(amount)), ..ask("db-2", 1.0) };
        scene.check_resource(has, "has.capacity", &found, AMOUNT).await;
        let held = ResourceRequest { has: Some(claim(1.0)), held: Some(amount), ..ask("db-2", 1.0) };
        scene.check_resource(held, "held", &found, AMOUNT).await;
        let wants = PriorityBandAggregate { wants: Some(amount), ..band(0, 3) };
        scene.check_node(vec![wants], &format!("resource[0].wants[0].wants: {found}; wanted {AMOUNT}")).await;
    }
    scene.house.stop().await;
}

#[tokio::test]
async fn names_that_are_none_are_refused() {
    let mut scene = Scene::open().await;
    let long = "x".repeat(257);
    let names = [
        ("", "is empty".to_owned()),
        (&*long, format!("\"{}\"… is 257 bytes long", "x".repeat(40))),
        ("a\nb", r#""a\nb" contains the control character '\n'"#.to_owned()),
        ("a\u{0}", r#""a\0" contains the control character '\0'"#.to_owned()),
        ("\u{85}", r#""\u{85}" contains the control character '\u{85}'"#.to_owned()),
    ];
    for (name, found) in names {
        let message = format!("client_id: {found}; wanted {NAME}");
        scene.check_client(from(name, [ask("db", 10.0)]), invalid(&message)).await;
        scene.check_resource(ask(name, 10.0), "resource_id", &found, NAME).await;

        let request =
            ReleaseCapacityRequest { client_id: Some(name.into()), ..ReleaseCapacityRequest::default() };
        let answer = scene.server.release_capacity(request).await;
        check(answer.map(drop), invalid(&message));
        let request = GetServerCapacityRequest { server_id: Some(name.into()), ..Default::default() };
        let answer = scene.server.get_server_capacity(request).await;
        check(answer.map(drop), invalid(&message.replace("client_id", "server_id")));
        scene.check_undisturbed(&message).await;
    }
    // What a release may name is checked as well, but for the empty names that Doorman's clients send.
    let release = |name: &str| ReleaseCapacityRequest {
        client_id: Some("witness-2".into()),
        resource_id: vec![name.into()],
        incarnation: None,
        report_id: None,
    };
    let message = format!("resource_id[0]: \"a\\tb\" contains the control character '\\t'; wanted {NAME}");
    let answer = scene.server.release_capacity(release("a\tb")).await;
    check(answer.map(drop), invalid(&message));
    scene.server.release_capacity(release("")).await.unwrap();
    scene.check_undisturbed("releases of nothing").await;
    scene.house.stop().await;
}

#[tokio::test]
async fn a_resource_twice_in_one_request_is_refused() {
    let mut scene = Scene::open().await;
    let message = "resource[2].resource_id: is \"db-1\" for the second time; wanted each resource once";
    let request = from("nobody", [ask("db-1", 1.0), ask("db-2", 1.0), ask("db-1", 1.0)]);
    scene.check_client(request, invalid(message)).await;
    scene.house.stop().await;
}

fn band(priority: i64, subclients: i64) -> PriorityBandAggregate {
    PriorityBandAggregate {
        priority: Some(priority),
        num_clients: Some(subclients),
        wants: Some(10.0),
        bucket: Vec::new(),
    }
}

#[tokio::test]
async fn servers_that_stand_for_nobody_are_refused() {
    let mut scene = Scene::open().await;
    for count in [0, -1, i64::MIN, 1 << 32] {
        let message = format!("resource[0].wants[1].num_clients: is {count}; wanted {COUNT}");
        scene.check_node(vec![band(0, 3), band(1, count)], &message).await;
    }
    let message = "resource[0].wants[1].priority: is 7 for the second time; wanted each priority once";
    scene.check_node(vec![band(7, 3), band(7, 3)], message).await;
    scene.check_node(vec![], "resource[0].wants: is missing; wanted at least one priority band").await;
    scene.house.stop().await;
}

#[tokio::test]
async fn required_fields_that_are_absent_are_refused() {
    let mut scene = Scene::open().await;
    let is = "is missing";
    let nameless = GetCapacityRequest { client_id: None, ..from("", [ask("db", 10.0)]) };
    scene.check_client(nameless, invalid(&format!("client_id: {is}; wanted {NAME}"))).await;
    let whole = || ask("db-2", 10.0);
    scene.check_resource(ResourceRequest { resource_id: None, ..whole() }, "resource_id", is, NAME).await;
    scene.check_resource(ResourceRequest { priority: None, ..whole() }, "priority", is, PRIORITY).await;
    scene.check_resource(ResourceRequest { wants: None, ..whole() }, "wants", is, AMOUNT).await;

    let parts = [
        ("has.expiry_time", Lease { expiry_time: None, ..claim(1.0) }, "the expiry_time of the lease"),
        (
            "has.refresh_interval",
            Lease { refresh_interval: None, ..claim(1.0) },
            "the refresh_interval of the lease",
        ),
        ("has.capacity", Lease { capacity: None, ..claim(1.0) }, AMOUNT),
    ];
    for (field, has, hope) in parts {
        scene.check_resource(ResourceRequest { has: Some(has), ..whole() }, field, is, hope).await;
    }
    let bands = [
        ("priority", PriorityBandAggregate { priority: None, ..band(0, 1) }, PRIORITY),
        ("num_clients", PriorityBandAggregate { num_clients: None, ..band(0, 1) }, COUNT),
        ("wants", PriorityBandAggregate { wants: None, ..band(0, 1) }, AMOUNT),
    ];
    for (field, band, hope) in bands {
        scene.check_node(vec![band], &format!("resource[0].wants[0].{field}: {is}; wanted {hope}")).await;
    }

    let request = GetServerCapacityRequest::default();
    let answer = scene.server.get_server_capacity(request).await;
    check(answer.map(drop), invalid(&format!("server_id: {is}; wanted {NAME}")));
    let answer = scene.server.release_capacity(ReleaseCapacityRequest::default()).await;
    check(answer.map(drop), invalid(&format!("client_id: {is}; wanted {NAME}")));
    scene.check_undisturbed("requests without anything").await;
    scene.house.stop().await;
}

#[tokio::test]
async fn names_that_no_template_matches_are_not_found() {
    let mut scene = Scene::open().await;
    let message = |place: usize| {
        format!(
            "resource[{place}].resource_id: no template matches \"bd\"; \
             wanted a name that a template covers, or a catch-all \"*\""
        )
    };
    let [alone, second] = [message(0), message(1)];
    let not_found = |message| Refusal { code: Code::NotFound, message };
    scene.check_client(from("nobody", [ask("bd", 10.0)]), not_found(&alone)).await;
    scene.check_part(ask("bd", 10.0), not_found(&second)).await;
    scene.house.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_request_are_refused() {
    let mut scene = Scene::open().await;
    let broken: [(&str, &[u8]); 6] = [
        ("noise", b"\xff\xfe\xfd\xfc\xfb"),
        ("a name cut short", b"\x0a\x20abc"),
        ("a number for a name", b"\x08\x01"),
        ("a name that is not UTF-8", b"\x0a\x02\xc3\x28"),
        ("a resource that is not a message", b"\x0a\x01a\x12\x03\xff\xff\xff"),
        ("field number zero", b"\x02\x01a"),
    ];
    for method in ["GetCapacity", "GetServerCapacity", "ReleaseCapacity"] {
        for (what, bytes) in broken {
            let Err(status) = raw::call(&scene.channel, &format!("/doorman.Capacity/{method}"), bytes).await
            else {
                panic!("{method} takes {what}");
            };
            let refused = matches!(status.code(), Code::Internal | Code::InvalidArgument);
            assert!(refused && !status.message().is_empty(), "{method}, {what}: {status:?}");
            scene.check_undisturbed(what).await;
        }
    }
    // The same on a stream, in place of a hello and after one. What may be of a kind of a later version is passed over there.
    let hello = b"\x0a\x0c\x0a\x01a\x11\x01\0\0\0\0\0\0\0".as_slice();
    let garbage = [b"\x0a\xff".as_slice(), b"\x02\x01a"];
    for bytes in garbage.into_iter().chain([b"".as_slice(), b"\x7a\0"]) {
        let after = [hello, bytes];
        let after = garbage.contains(&bytes).then_some(after.as_slice());
        for messages in [Some([bytes].as_slice()), after].into_iter().flatten() {
            let status =
                raw::stream(&scene.channel, "/doorman.Capacity/Session", messages).await.unwrap_err();
            let refused = matches!(status.code(), Code::Internal | Code::InvalidArgument);
            assert!(refused && !status.message().is_empty(), "{messages:?}: {status:?}");
            scene.check_undisturbed("garbage on a stream").await;
        }
    }
    // Longer than the longest message.
    let status =
        raw::call(&scene.channel, "/doorman.Capacity/GetCapacity", &vec![b'x'; 5 << 20]).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    scene.check_undisturbed("five megabytes").await;

    let status = raw::call(&scene.channel, "/doorman.Capacity/GetEverything", b"").await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    raw::shout(scene.house.address(), &[0x16, 0x03, 0x01, 0x00, 0xff, b'\r', b'\n', b'\r', b'\n']).await;
    raw::shout(scene.house.http(), b"\0\0\0\0\r\n\r\n").await;
    scene.check_undisturbed("what is not even HTTP").await;
    // All this came over the connection that goes on.
    let request = from("somebody", [ask("db-1", 10.0)]);
    let answer = scene.server.get_capacity(request).await.unwrap().into_inner();
    assert_eq!(answer.response[0].gets.capacity(), 10.0);
    scene.house.stop().await;
}

#[tokio::test]
async fn huge_wants_are_legal_and_get_their_share() {
    let mut scene = Scene::open().await;
    let mut greedy = Holder::new("greedy", Nature::Knows, "db", f64::MAX);
    for _ in 0..3 {
        greedy.report(&mut scene.server).await.unwrap();
        scene.witness.report(&mut scene.witness_server).await.unwrap();
    }
    assert_eq!((greedy.capacity(), scene.witness.capacity()), (50.0, 50.0));
    scene.house.stop().await;
}

#[tokio::test]
async fn names_may_have_slashes_spaces_and_any_script() {
    let open = House::open(&everything(100.0, 60)).await;
    let mut server = open.capacity().await;
    for name in ["a/b/c", "/", "Größe 5%", "数据库", "?resource=db&holders=0", "\"quoted\\\"", "{}"] {
        let mut holder = Holder::new(format!("client of {name}"), Nature::Echoes, name, 30.0);
        for _ in 0..2 {
            assert_eq!(holder.report(&mut server).await.unwrap(), 30.0, "{name:?}");
        }
        assert_eq!(open.resource(name).await.expect(name)["holders"][0]["client"], holder.id, "{name:?}");
    }
    // A name is written into the figures as it has to be.
    assert_eq!(open.metric("lessor_leased{resource=\"a/b/c\"}").await, 30.0);
    assert_eq!(open.metric(r#"lessor_leased{resource="\"quoted\\\""}"#).await, 30.0);
    open.stop().await;
}
