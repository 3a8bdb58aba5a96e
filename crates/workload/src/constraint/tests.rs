use proptest::prelude::*;

use super::*;

fn plan(kind: &str, text: Option<&str>) -> StructuredPlan {
    StructuredPlan { share: 1.0, kind: kind.to_owned(), text: text.map(str::to_owned) }
}

fn checker(kind: &str, text: Option<&str>) -> Checker {
    Checker::new(&build_constraint(&plan(kind, text)).unwrap()).unwrap()
}

fn refused(kind: &str, text: &str) -> String {
    let error = build_constraint(&plan(kind, Some(text))).unwrap_err();
    assert!(!error.hint.is_empty());
    error.to_string()
}

#[test]
fn built_in_constraints_are_what_they_say() {
    for kind in ConstraintKind::ALL {
        assert_eq!(build_constraint(&plan(kind.name(), None)).unwrap().kind(), kind);
    }
    let ticket = |priority: &str, end: &str| {
        format!(
            r#" {{"title": "No sound", "category": "bug", "priority": {priority}, "tags": ["audio"],
            "customer": {{"name": "A", "is_member": true}}}}{end}"#
        )
    };
    let json = checker("json", None);
    assert_eq!(json.check(&ticket("3", "\n")), Some(true));
    assert_eq!(json.check(&ticket("6", "")), Some(false));
    assert_eq!(json.check(&ticket("3", "```")), Some(false), "text after it");
    assert_eq!(json.check(&format!("Here: {}", ticket("3", ""))), Some(false), "text before it");
    assert_eq!(json.check(ticket("3", "").trim_end_matches('}')), Some(false), "cut");
    assert_eq!(json.check("{}"), Some(false));
    let regex = checker("regex", None);
    assert_eq!(regex.check("2024-02-29T23:59:59Z"), Some(true));
    assert_eq!(regex.check("2024-13-29T23:59:59Z"), Some(false));
    assert_eq!(regex.check("2024-02-29T23:59:59Z\n"), Some(false));
    assert_eq!(regex.check("on 2024-02-29T23:59:59Z"), Some(false));
    let choice = checker("choice", None);
    assert_eq!(choice.check("neutral"), Some(true));
    assert_eq!(choice.check("Neutral"), Some(false));
    assert_eq!(choice.check(" neutral"), Some(false));
    assert_eq!(checker("grammar", None).check("1 + 2"), None);
}

#[test]
fn expressions_match_the_whole_answer() {
    // Alternatives and flags stay inside.
    assert_eq!(checker("regex", Some("a|ab")).check("ab"), Some(true));
    assert_eq!(checker("regex", Some("a|ab")).check("abc"), Some(false));
    assert_eq!(checker("regex", Some("(?m)^a$")).check("a\nb"), Some(false));
    assert_eq!(checker("regex", Some("(?s).*")).check("a\nb"), Some(true));
    assert_eq!(checker("regex", Some("a$|b")).check("bc"), Some(false));
}

#[test]
fn choices_are_lines() {
    let built = build_constraint(&plan("choice", Some(" yes\r\nno \n\n"))).unwrap();
    assert_eq!(*built, Constraint::Choice(vec!["yes".to_owned(), "no".to_owned()]));
}

#[test]
fn wrong_constraints_are_refused() {
    assert!(refused("xml", "x").contains("`xml` is not a kind of constraint"));
    assert!(refused("json", "{\"type\": ").contains("json: EOF while parsing"));
    assert!(refused("json", r#"{"type": "strange"}"#).contains("strange"));
    assert!(refused("json", r#"{"$ref": "https://example.org/x.json"}"#).contains("json: "));
    assert!(refused("json", "\n").contains("is empty"));
    assert!(refused("regex", "(a").contains("unclosed group"));
    assert!(refused("regex", "a)|(b").contains("unopened group"));
    assert!(refused("regex", "(?=a)").contains("look-around"));
    assert!(refused("choice", " \n ").contains("is empty"));
    assert!(refused("choice", "a\nb\na").contains("a duplicate choice"));
    let long = refused("json", &"\u{1b}".repeat(200));
    assert!(!long.contains('\u{1b}') && long.len() < 200, "{long}");
    assert!(Checker::new(&Constraint::Choice(Vec::new())).is_err());
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let list =
        r##"{"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["value"]}"##;
    let list = checker("json", Some(list));
    assert_eq!(list.check(r#"{"value": 1, "next": {"value": 2}}"#), Some(true));
    assert_eq!(list.check(r#"{"value": 1, "next": {}}"#), Some(false));
    for endless in [r##"{"$ref": "#"}"##, r##"{"allOf": [{"$ref": "#"}]}"##] {
        if let Ok(built) = build_constraint(&plan("json", Some(endless))) {
            let _ = Checker::new(&built).unwrap().check("{}");
        }
    }
    let deep = "{\"next\":".repeat(10_000);
    assert_eq!(list.check(&deep), Some(false));
}

proptest! {
    #[test]
    fn any_answer_and_any_text_get_a_word(answer: String, text: String) {
        for kind in ConstraintKind::ALL {
            let built_in = checker(kind.name(), None).check(&answer);
            prop_assert_eq!(built_in.is_none(), kind == ConstraintKind::Grammar);
            if let Ok(own) = build_constraint(&plan(kind.name(), Some(&text))) {
                let _ = Checker::new(&own).unwrap().check(&answer);
            }
        }
    }
}
