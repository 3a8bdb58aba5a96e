//! What serde was told about a type, a field or a variant, and the words above it.

use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta};

/// What serde was told.
#[derive(Default)]
pub(super) struct SerdeAttributes {
    rename: Option<String>,
    rename_all: Option<String>,
    /// A name of the type that stands for it: `into`.
    pub(super) is_text: bool,
    pub(super) tag: Option<String>,
    pub(super) content: Option<String>,
    pub(super) flatten: bool,
    pub(super) skip: bool,
    pub(super) transparent: bool,
    /// It may be absent, in this file or in one of an older version.
    pub(super) may_miss: bool,
}

impl SerdeAttributes {
    /// Fails at what is not known here, so that a schema never leaves something out in silence.
    pub(super) fn parse(attributes: &[Attribute]) -> Result<Self, String> {
        let mut told = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("serde")) {
            let read = attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                let text = if meta.input.peek(syn::Token![=]) {
                    meta.value()?.parse::<LitStr>()?.value()
                } else {
                    String::new()
                };
                match &name[..] {
                    "rename" => told.rename = Some(text),
                    "rename_all" => told.rename_all = Some(text),
                    "tag" => told.tag = Some(text),
                    "content" => told.content = Some(text),
                    // Spans of time are the only things that are written by another's function.
                    "into" | "with" => told.is_text = true,
                    "flatten" => told.flatten = true,
                    "skip" => told.skip = true,
                    "transparent" => told.transparent = true,
                    "default" | "skip_serializing_if" => told.may_miss = true,
                    "try_from" | "deny_unknown_fields" => {}
                    _ => return Err(meta.error("no schema is known for this")),
                }
                Ok(())
            });
            read.map_err(|error| error.to_string())?;
        }
        Ok(told)
    }

    /// The name in the file of something called so in the source.
    pub(super) fn name(&self, given: &str, all: &SerdeAttributes) -> String {
        match (&self.rename, all.rename_all.as_deref()) {
            (Some(name), _) => name.clone(),
            (None, Some("snake_case")) => words(given, '_'),
            (None, Some("kebab-case")) => words(given, '-'),
            _ => given.to_owned(),
        }
    }
}

fn words(name: &str, between: char) -> String {
    let mut text = String::new();
    for (place, letter) in name.chars().enumerate() {
        if place > 0 && letter.is_uppercase() {
            text.push(between);
        }
        text.extend(if letter == '_' { between } else { letter }.to_lowercase());
    }
    text
}

/// The words above something, as one line.
pub(super) fn said(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(it) if it.path.is_ident("doc") => match &it.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    // Names of our types in links mean nothing to who reads the file.
    lines.collect::<Vec<_>>().join(" ").trim().replace("[`", "`").replace("`]", "`")
}
