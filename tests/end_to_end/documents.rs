//! What the APIs say of themselves.

use likewise_tests::Api;
use reqwest::Method;
use serde_json::Value;

const WRITE: &str = include_str!("../../services/write-api/openapi.json");
const READ: &str = include_str!("../../services/read-api/openapi.json");

#[tokio::test]
async fn the_served_documents_are_the_committed_ones() {
    let api = Api::new();
    for (target, committed) in [("W/openapi.json", WRITE), ("R/openapi.json", READ)] {
        let served = api.call(Method::GET, target, &[]).await;
        assert_eq!(served.status, 200, "{target}");
        let committed: Value = serde_json::from_str(committed).expect("JSON");
        assert!(served.json == committed, "{target} is not the committed document");
        assert_eq!(served.json["openapi"], "3.1.0");
    }
}

#[tokio::test]
async fn the_page_of_the_document_needs_no_other_server() {
    let api = Api::new();
    for target in ["W/docs/", "R/docs/"] {
        let page = api.call(Method::GET, target, &[]).await;
        assert_eq!((page.status.as_u16(), page.content_type.as_str()), (200, "text/html"));
        for part in ["swagger-ui-bundle.js", "swagger-initializer.js", "swagger-ui.css"] {
            assert!(page.text.contains(&format!("./{part}")), "{}", page.text);
            let part = api.call(Method::GET, &format!("{target}{part}"), &[]).await;
            assert_eq!(part.status, 200);
        }
        assert!(!page.text.contains("://"), "{}", page.text);
    }
}
