//! A folder of images with captions.

use std::fs;

use serde_json::{Value, json};

use super::{ALONE, bodies, saying, with_file};
use crate::support::mock::records;
use crate::support::number;

/// Two pictures of one pixel.
const GRAY: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|byte| LETTERS.bytes().position(|letter| letter == byte));
    let (mut bits, mut held, mut bytes) = (0, 0, Vec::new());
    for digit in digits {
        (bits, held) = (bits << 6 | digit, held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    bytes
}

#[test]
fn images_of_a_folder_travel_with_their_captions() {
    let session = with_file("pictures/a.png", base64(GRAY));
    fs::write(session.path("pictures/b.png"), base64(RED)).unwrap();
    fs::write(session.path("pictures/b.txt"), "What is this red thing?\n").unwrap();
    let captions = json!({"file": "a.png", "caption": "A gray dot"}).to_string();
    fs::write(session.path("pictures/captions.jsonl"), captions).unwrap();
    let server = saying(|_| "a dot".to_owned());
    let args = ["--dataset", "pictures", "--num-requests", "3", "--max-tokens", "5"];
    let (outcome, summary) = session.measure(&server.url(), &[&ALONE[..], &args].concat());
    outcome.assert_finished("images");
    let expected = [("A gray dot", GRAY), ("What is this red thing?", RED), ("A gray dot", GRAY)];
    for (place, (body, (caption, image))) in bodies(&server).iter().zip(expected).enumerate() {
        let url = format!("data:image/png;base64,{image}");
        let text = body["messages"][0]["content"][0]["text"].as_str().unwrap();
        // What is shown again has a nonce in front.
        assert!(text.ends_with(caption), "{text}");
        assert_eq!(text == caption, place < 2, "{text}");
        let content = json!([{"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": url}}]);
        assert_eq!(body["messages"], json!([{"role": "user", "content": content}]));
        assert_eq!(body["max_tokens"], 5);
    }
    assert_eq!(number(&summary, "requests.ok"), 3.0);
    let records = records(&session.path("out/requests.log"));
    assert!(records.iter().all(|record| record.planned.images == 1));
    let shown = session.run(&["workload", "show", "pictures", "--num-requests", "7", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap()["images"], 7);
    // A file that is not a complete image stops the run, or is left out and counted.
    fs::write(session.path("pictures/c.png"), &base64(RED)[..50]).unwrap();
    let broken = session.run(&["workload", "show", "pictures", "--num-requests", "3"]);
    assert_eq!(broken.code, Some(2));
    assert!(broken.stderr.contains("pictures/c.png: truncated"), "{}", broken.stderr);
    assert!(broken.stderr.contains("--skip-invalid"), "{}", broken.stderr);
    let args = ["workload", "show", "pictures", "--num-requests", "3", "--skip-invalid", "--json"];
    let shown: Value = serde_json::from_str(&session.run(&args).stdout).unwrap();
    let note = "pictures: 1 images left out: truncated: its end is missing (1)";
    assert_eq!((&shown["images"], &shown["notes"][0]), (&json!(3), &json!(note)));
}
