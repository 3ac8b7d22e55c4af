//! Strangers who know the names of others: what those have stays theirs, and is granted to nobody else.

use lessor_proto::wire::{
    GetCapacityRequest, GetServerCapacityRequest, PriorityBandAggregate, ReleaseCapacityRequest,
    ServerCapacityResourceRequest,
};

use crate::house::holder::{Holder, Nature, ask, claim};
use crate::house::{House, everything};

const CAPACITY: f64 = 1000.0;
const VICTIM: f64 = 600.0;

/// A server that has granted so much to a victim of that nature, on a connection of its own.
async fn robbed(nature: Nature) -> (House, Holder) {
    let house = House::open(&everything(CAPACITY, 60)).await;
    let mut victim = Holder::new("victim", nature, "db", VICTIM);
    assert_eq!(victim.report(&mut house.capacity().await).await.unwrap(), VICTIM);
    (house, victim)
}

/// Newcomers get no more than the victim has left.
async fn leaves_the_victim_its_own(house: &House) {
    let mut newcomer = Holder::new("newcomer", Nature::Knows, "db", CAPACITY);
    let granted = newcomer.report(&mut house.capacity().await).await.unwrap();
    assert!(granted <= CAPACITY - VICTIM, "{granted} are granted of what the victim has");
    newcomer.release(&mut house.capacity().await).await.unwrap();
}

fn release(incarnation: Option<u64>) -> ReleaseCapacityRequest {
    ReleaseCapacityRequest {
        client_id: Some("victim".to_owned()),
        resource_id: vec!["db".to_owned()],
        incarnation,
        report_id: None,
    }
}

#[tokio::test]
async fn a_release_on_another_connection_frees_nothing() {
    for nature in [Nature::Echoes, Nature::Forgets] {
        let house = House::open(&everything(CAPACITY, 60)).await;
        let mut own = house.capacity().await;
        let mut victim = Holder::new("victim", nature, "db", VICTIM);
        assert_eq!(victim.report(&mut own).await.unwrap(), VICTIM);
        house.capacity().await.release_capacity(release(None)).await.unwrap();
        leaves_the_victim_its_own(&house).await;
        assert_eq!(victim.report(&mut own).await.unwrap(), VICTIM, "{nature:?}");
        // The one who has it is believed where it began.
        victim.release(&mut own).await.unwrap();
        let mut next = Holder::new("next", Nature::Knows, "db", CAPACITY);
        assert_eq!(next.report(&mut own).await.unwrap(), CAPACITY, "{nature:?}");
        house.stop().await;
    }
}

#[tokio::test]
async fn a_report_on_another_connection_promises_nothing() {
    for nature in [Nature::Echoes, Nature::Forgets] {
        let (house, mut victim) = robbed(nature).await;
        let mut stranger = house.capacity().await;
        for shown in [VICTIM, 0.0] {
            let mut resource = ask("db", 0.0);
            (resource.has, resource.held) = (Some(claim(shown)), Some(0.0));
            let lie = GetCapacityRequest {
                client_id: Some("victim".to_owned()),
                resource: vec![resource],
                ..GetCapacityRequest::default()
            };
            let answer = stranger.get_capacity(lie).await.unwrap().into_inner();
            let token = answer.response[0].gets.token.clone().unwrap_or_default();
            assert!(token.is_empty(), "the stranger is given the proof that it is the victim");
        }
        leaves_the_victim_its_own(&house).await;
        assert_eq!(victim.report(&mut house.capacity().await).await.unwrap(), VICTIM, "{nature:?}");
        house.stop().await;
    }
}

#[tokio::test]
async fn what_the_status_shows_of_a_life_gives_back_nothing() {
    let (house, mut victim) = robbed(Nature::Knows).await;
    let shown = house.resource("db").await.expect("it is held");
    let session = shown["holders"][0]["session"].as_str().expect("a life is shown");
    let incarnation = u64::from_str_radix(session, 16).unwrap();
    house.capacity().await.release_capacity(release(Some(incarnation))).await.unwrap();
    leaves_the_victim_its_own(&house).await;
    assert_eq!(victim.report(&mut house.capacity().await).await.unwrap(), VICTIM);
    house.stop().await;
}

/// The leader of a node in its epoch, which wants so much.
fn leader(line: Option<u64>, epoch: u64, wants: f64) -> GetServerCapacityRequest {
    let band = PriorityBandAggregate {
        priority: Some(0),
        num_clients: Some(1),
        wants: Some(wants),
        bucket: Vec::new(),
    };
    GetServerCapacityRequest {
        server_id: Some("paris".to_owned()),
        resource: vec![ServerCapacityResourceRequest {
            resource_id: Some("db".to_owned()),
            wants: vec![band],
            ..ServerCapacityResourceRequest::default()
        }],
        holder_epoch: Some(epoch),
        line,
        ..GetServerCapacityRequest::default()
    }
}

#[tokio::test]
async fn a_later_epoch_in_another_line_takes_nothing_from_a_leaf() {
    for line in [Some(77), None] {
        let house = House::open(&everything(CAPACITY, 60)).await;
        let mut server = house.capacity().await;
        let mut report = async |request| {
            let answer = server.get_server_capacity(request).await.unwrap().into_inner();
            answer.response.first().map(|response| response.gets.capacity())
        };
        assert_eq!(report(leader(line, 5, 505.0)).await, Some(505.0));
        for other in [Some(78), Some(0), None] {
            let posed = report(leader(other, u64::MAX, 4_000_000_000.0)).await;
            assert!(posed.is_none_or(|posed| posed <= CAPACITY - 505.0), "{posed:?}");
        }
        assert!(report(leader(line, 5, 505.0)).await >= Some(250.0), "{line:?}");
        house.stop().await;
    }
}
