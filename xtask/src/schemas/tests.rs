use serde_json::json;

use super::*;

fn shape(text: &str) -> Result<Value, String> {
    let types = Types::of_text(text);
    let found = types.in_crate("goodput_some", "It").unwrap();
    Shapes::new(&types).file(found, false)
}

#[test]
fn fields_as_serde_writes_them() {
    let found = shape(
        r#"
        /// Of words
        /// on two lines.
        pub struct It {
            pub schema: String,
            /// A number.
            pub n: Option<u32>,
            #[serde(default)]
            pub later: f64,
            #[serde(skip)]
            pub hidden: Anything,
            #[serde(rename = "kind")]
            pub of: Kind,
            #[serde(flatten)]
            pub inner: Inner,
            pub all: BTreeMap<String, Vec<Inner>>,
            pub pair: (bool, [f64; 2]),
            pub text: Text,
        }
        impl It { pub const SCHEMA: &'static str = "goodput.it/1"; }
        pub struct Inner { pub deep: bool }
        #[serde(rename_all = "snake_case")]
        pub enum Kind {
            /// The one.
            FirstOne,
            Other(u64),
        }
        pub struct Text(f64);
        impl Serialize for Text {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        "#,
    );
    let found = found.unwrap();
    assert_eq!(found["description"], "Of words on two lines.");
    assert_eq!(
        found["required"],
        json!(["schema", "n", "kind", "deep", "all", "pair", "text"]),
        "what older files may lack is not asked for"
    );
    let properties = &found["properties"];
    assert_eq!(properties["schema"]["const"], "goodput.it/1");
    assert_eq!(
        properties["n"],
        json!({"type": ["integer", "null"], "minimum": 0, "description": "A number."})
    );
    assert_eq!(properties["hidden"], Value::Null);
    assert_eq!(properties["deep"], json!({"type": "boolean"}));
    assert_eq!(properties["kind"], json!({"$ref": "#/$defs/Kind"}));
    assert_eq!(
        properties["all"]["additionalProperties"]["items"],
        json!({"$ref": "#/$defs/Inner"})
    );
    assert_eq!(properties["pair"]["prefixItems"][0], json!({"type": "boolean"}));
    let defined = &found["$defs"];
    assert_eq!(defined["Text"], json!({"type": "string"}));
    assert_eq!(
        defined["Kind"]["oneOf"],
        json!([
            {"const": "first_one", "description": "The one."},
            {
                "type": "object",
                "properties": {"other": {"type": "integer", "minimum": 0}},
                "required": ["other"],
            },
        ])
    );
}

#[test]
fn one_of_several_by_its_tag() {
    let choice = |told: &str| {
        let text = format!("#[serde({told})] pub enum It {{ No, Yes {{ at: u8 }} }}");
        shape(&text).unwrap()["oneOf"].clone()
    };
    let number = json!({"type": "integer", "minimum": 0});
    assert_eq!(
        choice(r#"tag = "kind", rename_all = "kebab-case""#)[1],
        json!({
            "type": "object",
            "properties": {"at": number, "kind": {"const": "yes"}},
            "required": ["at", "kind"],
        })
    );
    let adjacent = choice(r#"tag = "kind", content = "of""#);
    assert_eq!(adjacent[0]["required"], json!(["kind"]));
    assert_eq!(adjacent[1]["properties"]["of"]["properties"]["at"], number);
}

#[test]
fn what_is_not_known_is_refused() {
    for text in [
        "#[serde(untagged)] pub enum It { A(u8) }",
        "pub struct It { a: Unknown<u8> }",
        "pub struct It { #[serde(serialize_with = \"f\")] a: u8 }",
        "pub struct It(u8, u8);",
    ] {
        assert!(shape(text).is_err(), "{text}");
    }
}

#[test]
fn files_say_what_the_types_do() {
    assert_eq!(check(), Ok(()));
}
