//! The bill of materials, in CycloneDX 1.6.

use serde_json::{Value, json};

use super::Release;
use super::archive::sha256;
use super::packages::{Package, PackageId, Packages};

/// The file's text.
pub(super) fn text(release: &Release, packages: &Packages) -> Result<String, String> {
    let is_program = |package: &&Package| package.name == "goodput";
    let program = packages.values().find(is_program).ok_or("`goodput` is not a package")?;
    let mut main = component(program, "application");
    main["hashes"] = json!([{"alg": "SHA-256", "content": sha256(&release.program)}]);
    let others = packages.values().filter(|package| !is_program(package));
    let dependency = |(id, package): (&PackageId, &Package)| {
        let needs: Vec<String> = package.needs.iter().map(purl).collect();
        json!({"ref": purl(id), "dependsOn": needs})
    };
    let property =
        |name: &str, value: &str| json!({"name": format!("goodput:{name}"), "value": value});
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": humantime::format_rfc3339_seconds(release.instant()).to_string(),
            "component": main,
            "properties": [
                property("target", &release.target),
                property("features", &release.features),
                property("commit", &release.commit),
            ],
        },
        "components": others.map(|package| component(package, "library")).collect::<Vec<_>>(),
        "dependencies": packages.iter().map(dependency).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&document)
        .map(|text| text + "\n")
        .map_err(|error| format!("cannot write the bill of materials: {error}"))
}

fn component(package: &Package, kind: &str) -> Value {
    let Package { name, version, license, repository, checksum, is_linked, .. } = package;
    let purl = purl(&(name.clone(), version.clone()));
    let mut component = json!({
        "type": kind,
        "bom-ref": purl,
        "name": name,
        "version": version,
        // What ran only during the build is not in the program.
        "scope": if *is_linked { "required" } else { "excluded" },
        "licenses": [{"expression": license}],
        "purl": purl,
    });
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if !repository.is_empty() {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// A package URL. Of the characters in names and versions, only `+` has to be written out.
fn purl((name, version): &PackageId) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn components_and_their_dependencies_are_stated() {
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let package = |id: &PackageId, is_linked: bool, needs: &[&PackageId]| Package {
            name: id.0.clone(),
            version: id.1.clone(),
            license: "MIT".to_owned(),
            checksum: (id.0 != "goodput").then(|| "0".repeat(64)),
            is_linked,
            needs: needs.iter().map(|&id| id.clone()).collect::<BTreeSet<_>>(),
            ..Package::default()
        };
        let (main, a, b) = (id("goodput", "0.1.0"), id("a", "1.0.0+x"), id("b", "2.0.0"));
        let packages = [
            (main.clone(), package(&main, true, &[&a, &b])),
            (a.clone(), package(&a, true, &[])),
            (b.clone(), package(&b, false, &[])),
        ];
        let release = Release::of_tests();
        let text = text(&release, &packages.into_iter().collect()).unwrap();
        let bom: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(bom["metadata"]["timestamp"], "2026-09-21T14:13:20Z");
        let main = &bom["metadata"]["component"];
        assert_eq!(main["hashes"][0]["content"], sha256(&release.program));
        let components: Vec<_> = bom["components"].as_array().unwrap().iter().collect();
        let facts = |name: &str| components.iter().map(|one| one[name].clone()).collect::<Vec<_>>();
        assert_eq!(facts("purl"), ["pkg:cargo/a@1.0.0%2Bx", "pkg:cargo/b@2.0.0"]);
        assert_eq!(facts("scope"), ["required", "excluded"]);
        let depends = bom["dependencies"].as_array().unwrap();
        let main = depends.iter().find(|one| one["ref"] == "pkg:cargo/goodput@0.1.0").unwrap();
        assert_eq!(main["dependsOn"], json!(["pkg:cargo/a@1.0.0%2Bx", "pkg:cargo/b@2.0.0"]));
    }
}
