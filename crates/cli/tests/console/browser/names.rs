//! Hostile names: whatever clients call themselves and their resources is text.

use super::{Browser, Look};
use crate::api::FAIR;
use crate::house::House;
use crate::house::holder::{Holder, Nature};

const IMAGE: &str = "<img src=x onerror=\"window.hacked=1\">";
const SCRIPT: &str = "</script><script>window.hacked=1</script>";

#[tokio::test]
async fn whatever_clients_call_themselves_is_text() {
    let Some(browser) = Browser::open().await else { return };
    let house = House::open(FAIR).await;
    let mut capacity = house.capacity().await;
    // Marks that turn what stands beside them around, as many as a name may have.
    let turned = "\u{202e}".repeat(80) + "desrever";
    for resource in [IMAGE, SCRIPT, "javascript:alert(1)", "../../status?x=1#y"] {
        for id in [IMAGE, SCRIPT, &turned] {
            let mut holder = Holder::new(id, Nature::Knows, resource, 60.0);
            holder.report(&mut capacity).await.expect("it is served");
        }
    }
    let look = Look { width: 1280, is_dark: false };
    let (origin, encoded) = (
        format!("http://{}", house.http()),
        IMAGE.replace('<', "%3C").replace('"', "%22").replace(' ', "%20"),
    );
    for hash in
        ["#/tree", &format!("#/r/{encoded}"), "#/findings", "#/domains", "#/r/%3Cscript%3E", "#/r/%E0%A4%A"]
    {
        browser.visit(&format!("{origin}/{hash}"), look).await;
        browser.until("it is live", "return document.body.dataset.state === 'live'").await;
        if hash.starts_with("#/r/%3Cimg") {
            browser
                .until(
                    "holders are shown",
                    "return document.querySelectorAll('[aria-label=Holders] tbody tr').length === 3",
                )
                .await;
            let names = browser.run("return [...document.querySelectorAll('[aria-label=Holders] tbody th')].map((cell) => cell.textContent).join('\\n')").await;
            let names = names.as_str().expect("text");
            assert!(names.contains(IMAGE) && names.contains(SCRIPT), "{names}");
            assert!(!names.contains('\u{202e}') && names.contains("desrever"), "{names:?}");
        }
        let state = browser.run("return [window.hacked ?? 0, document.images.length, document.scripts.length, location.origin]").await;
        // The one picture is the sign in the head of the page.
        assert_eq!(state, serde_json::json!([0, 1, 1, origin]), "{hash}");
    }
    browser.close().await;
    house.stop().await;
}
