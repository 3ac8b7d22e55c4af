//! Handshakes: who is let in, and what the others are told.

use lessor_client::Tls;
use rcgen::{ExtendedKeyUsagePurpose, SerialNumber, date_time_ymd};

use crate::house::{House, connect, eventually, leased, tls};
use crate::pki::Authority;

const WEB: &str = "spiffe://acme/ns/shop/sa/web";

#[tokio::test]
async fn a_client_with_a_certificate_is_served() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let house = House::open(&servers.server(&["localhost"]), &clients).await;
    for names in [vec![WEB], vec![WEB, "web.shop"], vec!["web.shop", "other.shop"]] {
        let client = connect(&house.address(), tls(&servers, &clients.client(&names))).await.unwrap();
        let mut db = client.rate("db").wants(10.0).open().unwrap();
        leased(&mut db).await;
        client.close().await;
    }
}

#[tokio::test]
async fn a_client_is_refused_and_both_ends_say_why() {
    let (servers, clients, strangers) = (Authority::new(), Authority::new(), Authority::new());
    let house = House::open(&servers.server(&["localhost"]), &clients).await;
    let revoked = clients.client_with(&[WEB], |params| params.serial_number = Some(SerialNumber::from(7)));
    house.files.put("crl.pem", &clients.revoked(&[7]));
    eventually("the list is in force", async || {
        connect(&house.address(), tls(&servers, &revoked)).await.is_err()
    })
    .await;
    let expired = clients.client_with(&[WEB], |params| params.not_after = date_time_ymd(2020, 1, 1));
    let wrong_use = clients.client_with(&[WEB], |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let two = clients.client(&[WEB, "spiffe://acme/ns/shop/sa/db"]);
    let cases = [
        ("none", Tls::ca(servers.pem.as_str()), "the server wants a certificate"),
        ("foreign", tls(&servers, &strangers.client(&[WEB])), "does not believe the authority"),
        ("revoked", tls(&servers, &revoked), "is revoked"),
        ("wrong use", tls(&servers, &wrong_use), "the server refuses the own certificate"),
        ("two URIs", tls(&servers, &two), "the server refuses the own certificate"),
        ("no name", tls(&servers, &clients.client(&[])), "the server refuses the own certificate"),
        ("user", tls(&servers, &clients.client(&["uid:0"])), "the server refuses the own certificate"),
        ("plain", tls(&servers, &clients.client(&["plain"])), "the server refuses the own certificate"),
    ];
    for (case, tls, told) in cases {
        let before = house.handshakes("refused");
        let fault = connect(&house.address(), tls).await.expect_err(case);
        assert!(fault.contains(told), "{case}: {fault}");
        assert!(house.handshakes("refused") > before, "{case} is counted");
    }
    let fault = connect(&house.address(), tls(&servers, &expired)).await.expect_err("it has ended");
    assert!(
        fault.contains("ended on 2020-01-01") && fault.contains("a certificate that is valid"),
        "{fault}"
    );
}

#[tokio::test]
async fn a_client_believes_only_the_server_that_it_means() {
    let (servers, strangers) = (Authority::new(), Authority::new());
    let own = servers.server(&["spiffe://acme/ns/lessor/root"]);
    let house = House::open(&own, &servers).await;
    let me = servers.client(&[WEB]);
    let told = async |tls: Tls| connect(&house.address(), tls).await.err().unwrap_or_default();

    let fault = told(tls(&strangers, &me)).await;
    assert!(fault.contains("of an authority that is not believed"), "{fault}");
    let fault = told(tls(&servers, &me)).await;
    assert!(fault.contains("the server's certificate: certificate not valid for name"), "{fault}");
    let fault = told(tls(&servers, &me).server("spiffe://acme/ns/other/*")).await;
    let wanted = "is that of spiffe://acme/ns/lessor/root, wanted spiffe://acme/ns/other/*";
    assert!(fault.contains(wanted), "{fault}");
    assert_eq!(told(tls(&servers, &me).server("spiffe://acme/ns/lessor/*")).await, "");
    // A client of the same authority is no server.
    let house = House::open(&servers.client(&["spiffe://acme/ns/lessor/root"]), &servers).await;
    let fault = connect(&house.address(), tls(&servers, &me).server("*")).await.expect_err("no server");
    assert!(fault.contains("the server's certificate: "), "{fault}");
}

#[tokio::test]
async fn plain_and_tls_are_told_apart() {
    let servers = Authority::new();
    let house = House::open(&servers.server(&["localhost"]), &servers).await;
    let address = house.server.address().to_string();
    let fault = lessor_client::Client::builder(&address).connect().await.expect_err("it is TLS").to_string();
    assert!(fault.contains("the server speaks TLS; wanted https://"), "{fault}");
    assert_eq!(house.handshakes("plain"), 1);

    let house = House::open_with(house.files, |options| options.tls = None).await;
    let fault = connect(&house.address(), tls(&servers, &servers.client(&[WEB]))).await.expect_err("plain");
    assert!(fault.contains("the server does not speak TLS; wanted http://"), "{fault}");
}
