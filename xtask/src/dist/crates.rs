//! `cargo xtask dist --check`: whether the crates can be published.

/// Without dependencies among ours: they build from what is published alone.
const LEAVES: [&str; 4] = ["goodput-document", "goodput-files", "goodput-model", "goodput-sim"];

/// Does everything but the upload of each crate, and builds the leaves from their packages.
pub(super) fn check() -> Result<(), String> {
    let words = ["--locked", "--allow-dirty", "--quiet"];
    let publish = ["publish", "--workspace", "--dry-run", "--no-verify"];
    crate::cargo(&[&publish[..], &words].concat(), &[])?;
    let leaves: Vec<&str> = LEAVES.into_iter().flat_map(|leaf| ["--package", leaf]).collect();
    crate::cargo(&[&["package"][..], &words, &leaves].concat(), &[])
}

#[cfg(test)]
mod tests {
    use std::fs;

    /// What crates.io requires or shows, and every dependency by version.
    #[test]
    fn published_crates_describe_themselves() {
        let mut published = 0;
        for entry in fs::read_dir(crate::dist::root().join("crates")).unwrap() {
            let folder = entry.unwrap().path();
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            let manifest: toml::Table = manifest.parse().unwrap();
            let package = manifest["package"].as_table().unwrap();
            if package.get("publish").and_then(toml::Value::as_bool) == Some(false) {
                continue;
            }
            published += 1;
            let name = folder.display();
            for key in ["description", "license", "rust-version"] {
                assert!(package.contains_key(key), "{name}: {key}");
            }
            for key in ["keywords", "categories"] {
                let words = package[key].as_array().unwrap().len();
                assert!((1..=5).contains(&words), "{name}: {key}");
            }
            let readme = package.get("readme").and_then(toml::Value::as_str);
            assert!(folder.join(readme.unwrap_or("README.md")).exists(), "{name}: readme");
            let license = fs::read_to_string(folder.join("LICENSE")).unwrap();
            assert!(license.contains("Apache License"), "{name}: LICENSE");
        }
        assert!(published > 20, "{published}");
    }
}
