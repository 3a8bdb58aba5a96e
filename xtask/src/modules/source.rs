//! Which top-level module uses which, from the tokens of the source: comments and texts are not
//! among these, and what is built for tests only is left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Graph;

/// Words that begin an item, whose end is a brace or a semicolon and not a comma.
const ITEMS: [&str; 11] =
    ["const", "enum", "extern", "fn", "impl", "mod", "static", "struct", "trait", "type", "union"];

/// The modules of the crate with this root file.
pub(super) fn graph(root: &Path) -> Result<Graph, String> {
    let folder = root.parent().unwrap_or(root);
    let mut top = Scan::default();
    top.scan(read(root)?, 0);
    let mut graph = Graph::new();
    for (name, body) in &top.modules {
        let mut inside = Scan::default();
        inside.follow(body.clone(), &folder.join(name), 1)?;
        let owner = |used: &String| {
            let is_module = top.modules.iter().any(|(module, _)| module == used);
            let module = if is_module { Some(used) } else { top.exports.get(used) };
            module.filter(|module| *module != name).cloned()
        };
        graph.entry(name.clone()).or_default().extend(inside.from_root.iter().filter_map(owner));
    }
    Ok(graph)
}

fn read(path: &Path) -> Result<TokenStream, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    text.parse().map_err(|error| failed(&error))
}

/// What was found in the tokens of one module.
#[derive(Default)]
struct Scan {
    /// Names taken from the root of the crate.
    from_root: Vec<String>,
    /// Modules declared here, with their body where it stands in the same file.
    modules: Vec<(String, Option<TokenStream>)>,
    /// What the root offers under a name of its own, with the module that it is from.
    exports: BTreeMap<String, String>,
}

impl Scan {
    /// A module at `path` (without `.rs`), `depth` levels below the root, and all modules in it.
    fn follow(
        &mut self,
        body: Option<TokenStream>,
        path: &Path,
        depth: usize,
    ) -> Result<(), String> {
        let tokens = match body {
            Some(tokens) => tokens,
            None => read(&file_of(path))?,
        };
        self.modules.clear();
        self.scan(tokens, depth);
        for (name, body) in std::mem::take(&mut self.modules) {
            self.follow(body, &path.join(name), depth + 1)?;
        }
        Ok(())
    }

    fn scan(&mut self, tokens: TokenStream, depth: usize) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while !rest.is_empty() {
            rest = self.step(rest, depth);
        }
    }

    /// Takes what stands first, and gives what follows it.
    fn step<'a>(&mut self, tokens: &'a [TokenTree], depth: usize) -> &'a [TokenTree] {
        match tokens {
            [TokenTree::Punct(sign), TokenTree::Group(attribute), rest @ ..]
                if sign.as_char() == '#' =>
            {
                if is_for_tests(&attribute.stream()) {
                    after_item(rest)
                } else {
                    rest
                }
            }
            // A visibility names a module and does not use it.
            [TokenTree::Ident(word), TokenTree::Group(group), rest @ ..]
                if word == "pub" && group.delimiter() == Delimiter::Parenthesis =>
            {
                rest
            }
            [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(end), rest @ ..]
                if word == "mod" && end.as_char() == ';' =>
            {
                self.modules.push((name.to_string(), None));
                rest
            }
            [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Group(body), rest @ ..]
                if word == "mod" =>
            {
                self.modules.push((name.to_string(), Some(body.stream())));
                rest
            }
            [TokenTree::Ident(word), rest @ ..] if word == "use" && depth == 0 => {
                self.export(rest);
                rest
            }
            [TokenTree::Ident(word), rest @ ..] if word == "crate" || word == "super" => {
                let ups = if word == "crate" { depth } else { 1 };
                self.path(rest, ups, depth);
                rest
            }
            [TokenTree::Group(group), rest @ ..] => {
                self.scan(group.stream(), depth);
                rest
            }
            [_, rest @ ..] => rest,
            [] => tokens,
        }
    }

    /// What follows `ups` steps up from a module at `depth`.
    fn path(&mut self, tokens: &[TokenTree], ups: usize, depth: usize) {
        let Some(tokens) = after_colons(tokens) else { return };
        self.branch(tokens, ups, depth);
    }

    fn branch(&mut self, tokens: &[TokenTree], ups: usize, depth: usize) {
        match tokens {
            [TokenTree::Ident(word), rest @ ..] if word == "super" => {
                self.path(rest, ups + 1, depth);
            }
            [TokenTree::Ident(name), ..] if ups == depth => self.from_root.push(name.to_string()),
            [TokenTree::Group(group), ..] if group.delimiter() == Delimiter::Brace => {
                for branch in branches(group.stream()) {
                    self.branch(&branch, ups, depth);
                }
            }
            _ => {}
        }
    }

    /// `use module::{Name, inner::Other}` in the root: both names are of `module`.
    fn export(&mut self, tokens: &[TokenTree]) {
        let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ';');
        let tokens = tokens.split(is_end).next().unwrap_or_default();
        match tokens {
            [TokenTree::Ident(word), rest @ ..] if word == "crate" || word == "self" => {
                self.export(after_colons(rest).unwrap_or_default());
            }
            [TokenTree::Ident(module), rest @ ..] => {
                for name in leaves(rest) {
                    self.exports.insert(name, module.to_string());
                }
            }
            [TokenTree::Group(group)] => {
                for branch in branches(group.stream()) {
                    self.export(&branch);
                }
            }
            _ => {}
        }
    }
}

/// `path.rs`, or `path/mod.rs`.
fn file_of(path: &Path) -> PathBuf {
    let file = path.with_extension("rs");
    if file.exists() { file } else { path.join("mod.rs") }
}

/// `cfg(test)`, alone or with other conditions.
fn is_for_tests(attribute: &TokenStream) -> bool {
    let mut tokens = attribute.clone().into_iter();
    let is_cfg = matches!(tokens.next(), Some(TokenTree::Ident(word)) if word == "cfg");
    let names = |stream: TokenStream, wanted: &str| {
        stream.into_iter().any(|token| matches!(token, TokenTree::Ident(word) if word == wanted))
    };
    let condition = tokens.next();
    match condition {
        Some(TokenTree::Group(group)) if is_cfg => {
            let inner = group.stream().into_iter().any(
                |token| matches!(token, TokenTree::Group(parts) if names(parts.stream(), "test")),
            );
            names(group.stream(), "test") || (inner && names(group.stream(), "all"))
        }
        _ => false,
    }
}

/// What stands after the item, field or statement at the beginning.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let is_use = tokens.iter().take(3).any(|token| is_word(token, &["use"]));
    let mut is_item = is_use;
    for (place, token) in tokens.iter().enumerate() {
        is_item |= is_word(token, &ITEMS);
        let ends = match token {
            TokenTree::Punct(sign) => sign.as_char() == ';' || (sign.as_char() == ',' && !is_item),
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !is_use,
            _ => false,
        };
        if ends {
            return &tokens[place + 1..];
        }
    }
    &[]
}

fn is_word(token: &TokenTree, words: &[&str]) -> bool {
    matches!(token, TokenTree::Ident(word) if words.iter().any(|wanted| word == wanted))
}

fn after_colons(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    match tokens {
        [TokenTree::Punct(first), TokenTree::Punct(second), rest @ ..]
            if first.as_char() == ':' && second.as_char() == ':' =>
        {
            Some(rest)
        }
        _ => None,
    }
}

/// The parts of `{a, b::c}`.
fn branches(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
    tokens.split(is_comma).map(<[TokenTree]>::to_vec).collect()
}

/// The names that a tree of a `use` brings.
fn leaves(tokens: &[TokenTree]) -> Vec<String> {
    match tokens.last() {
        Some(TokenTree::Ident(name)) => vec![name.to_string()],
        Some(TokenTree::Group(group)) => {
            branches(group.stream()).iter().flat_map(|branch| leaves(branch)).collect()
        }
        _ => Vec::new(),
    }
}
