//! The types of our crates as they stand in the source, and what a name means in which module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, Item, Lit, Type, UseTree, Variant};

/// What serde writes for a type.
pub(super) enum Form {
    /// An object, or what a single field without a name is.
    Struct(Fields),
    /// One of several.
    Enum(Vec<Variant>),
    /// Another by a name of its own.
    Alias(Box<Type>),
    /// Text of its own making.
    Text,
}

/// A type, where it stands, and what stands above it.
pub(super) struct Found {
    pub(super) module: Vec<String>,
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) form: Form,
}

/// All types of some crates.
#[derive(Default)]
pub(super) struct Types {
    all: Vec<Found>,
    /// By module and name: the path that a `use` gives it.
    uses: BTreeMap<(Vec<String>, String), Vec<String>>,
    /// By module and name: its `SCHEMA`.
    formats: BTreeMap<(Vec<String>, String), String>,
    /// Those that are written as text by hand.
    texts: BTreeSet<(Vec<String>, String)>,
}

impl Types {
    /// Reads the sources of these crates (`model` for `goodput-model`).
    pub(super) fn read(crates: &Path, names: &[&str]) -> Result<Self, String> {
        let mut types = Self::default();
        for name in names {
            let source = crates.join(name).join("src");
            let mut files = Vec::new();
            files_below(&source, &mut files)?;
            for file in files {
                let inside = file.strip_prefix(&source).unwrap_or(&file);
                types.read_file(&file, &module_of(name, inside))?;
            }
        }
        types.settle();
        Ok(types)
    }

    fn read_file(&mut self, path: &Path, module: &[String]) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
        self.read_text(&text, module).map_err(|error| failed(&error))
    }

    /// The types of one text, which need nothing from elsewhere.
    #[cfg(test)]
    pub(super) fn of_text(text: &str) -> Self {
        let mut types = Self::default();
        types.read_text(text, &["goodput_some".to_owned()]).unwrap();
        types.settle();
        types
    }

    /// Texts are known only when all is read.
    fn settle(&mut self) {
        for found in &mut self.all {
            if self.texts.contains(&(found.module.clone(), found.name.clone())) {
                found.form = Form::Text;
            }
        }
    }

    fn read_text(&mut self, text: &str, module: &[String]) -> syn::Result<()> {
        for item in syn::parse_file(text)?.items {
            self.read_item(item, module);
        }
        Ok(())
    }

    fn read_item(&mut self, item: Item, module: &[String]) {
        let (name, attributes, form) = match item {
            Item::Struct(it) => (it.ident, it.attrs, Form::Struct(it.fields)),
            Item::Enum(it) => (it.ident, it.attrs, Form::Enum(it.variants.into_iter().collect())),
            Item::Type(it) => (it.ident, it.attrs, Form::Alias(it.ty)),
            Item::Use(it) => return self.read_use(&it.tree, &mut Vec::new(), module),
            Item::Impl(it) => return self.read_impl(&it, module),
            // `serde_as_text!(Rate, Arrivals)` names types that are written as text.
            Item::Macro(it) if it.mac.path.is_ident("serde_as_text") => {
                let names = it.mac.tokens.into_iter().map(|token| token.to_string());
                return self.texts.extend(names.map(|name| (module.to_vec(), name)));
            }
            _ => return,
        };
        let (module, name) = (module.to_vec(), name.to_string());
        self.all.push(Found { module, name, attributes, form });
    }

    fn read_use(&mut self, tree: &UseTree, path: &mut Vec<String>, module: &[String]) {
        let mut keep = |name: &syn::Ident, known_as: &syn::Ident| {
            let full = path.iter().cloned().chain([name.to_string()]).collect();
            self.uses.insert((module.to_vec(), known_as.to_string()), full);
        };
        match tree {
            UseTree::Path(it) => {
                path.push(it.ident.to_string());
                self.read_use(&it.tree, path, module);
                path.pop();
            }
            UseTree::Name(it) => keep(&it.ident, &it.ident),
            UseTree::Rename(it) => keep(&it.ident, &it.rename),
            UseTree::Group(it) => {
                for tree in &it.items {
                    self.read_use(tree, path, module);
                }
            }
            UseTree::Glob(_) => {}
        }
    }

    /// The name of a format, and texts that are made by hand (`collect_str`).
    fn read_impl(&mut self, item: &syn::ItemImpl, module: &[String]) {
        let Type::Path(of) = &*item.self_ty else { return };
        let Some(name) = of.path.segments.last().map(|last| last.ident.to_string()) else { return };
        let of_trait = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of_trait.is_some_and(|last| last.ident == "Serialize") && writes_text(item) {
            self.texts.insert((module.to_vec(), name.clone()));
        }
        for item in &item.items {
            if let syn::ImplItem::Const(it) = item
                && it.ident == "SCHEMA"
                && let syn::Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) = &it.expr
            {
                self.formats.insert((module.to_vec(), name.clone()), text.value());
            }
        }
    }

    /// The format that a type names in its first field, if it does.
    pub(super) fn format(&self, found: &Found) -> Option<&str> {
        let place = (found.module.clone(), found.name.clone());
        self.formats.get(&place).map(String::as_str)
    }

    /// The type of this name in this crate, wherever it stands there.
    pub(super) fn in_crate(&self, of: &str, name: &str) -> Result<&Found, String> {
        self.one(&[of.to_owned(), name.to_owned()])
    }

    /// What a path means in a module; none if it is not a type of this workspace.
    pub(super) fn resolve(
        &self,
        path: &syn::Path,
        module: &[String],
    ) -> Result<Option<&Found>, String> {
        let mut path: Vec<String> =
            path.segments.iter().map(|part| part.ident.to_string()).collect();
        if let [name] = &path[..] {
            if let Some(here) = self.all.iter().find(|it| it.module == module && it.name == *name) {
                return Ok(Some(here));
            }
            match self.uses.get(&(module.to_vec(), name.clone())) {
                Some(used) => path.clone_from(used),
                None => return Ok(None),
            }
        }
        if path.first().is_some_and(|first| first == "std") {
            return Ok(None);
        }
        self.one(&absolute(&path, module)).map(Some)
    }

    /// The type of a path. Where the path leads through what another module hands on, its name in the
    /// crate must be enough.
    fn one(&self, path: &[String]) -> Result<&Found, String> {
        let (Some(of), Some(name)) = (path.first(), path.last()) else {
            return Err("a path without a name".to_owned());
        };
        let named = |it: &&Found| it.name == *name && it.module.first() == Some(of);
        let all: Vec<&Found> = self.all.iter().filter(named).collect();
        let module = path.get(..path.len() - 1).unwrap_or_default();
        // Where it stands, or below: `crate::server::Summary` may be of `server::summary`.
        let exact = all.iter().find(|it| it.module == module).copied();
        let is_below = |it: &&Found| it.module.starts_with(module);
        let below: Vec<&Found> = all.iter().copied().filter(is_below).collect();
        match (exact, &below[..], &all[..]) {
            (Some(it), _, _) => Ok(it),
            (None, [it], _) | (None, [], [it]) => Ok(*it),
            (None, [], []) => Err(format!("unknown type {}", path.join("::"))),
            _ => Err(format!("{} may be one of several types", path.join("::"))),
        }
    }
}

fn writes_text(item: &syn::ItemImpl) -> bool {
    item.items.iter().any(|item| {
        let syn::ImplItem::Fn(it) = item else { return false };
        let [syn::Stmt::Expr(syn::Expr::MethodCall(call), _)] = &it.block.stmts[..] else {
            return false;
        };
        call.method == "collect_str"
    })
}

fn absolute(path: &[String], module: &[String]) -> Vec<String> {
    let mut place = module.to_vec();
    let mut parts = path.iter().peekable();
    match parts.peek().map(|first| first.as_str()) {
        Some(first) if first.starts_with("goodput_") => place.clear(),
        Some("crate") => {
            place.truncate(1);
            parts.next();
        }
        Some("self") => {
            parts.next();
        }
        _ => {}
    }
    while parts.next_if(|part| *part == "super").is_some() {
        place.pop();
    }
    place.extend(parts.cloned());
    place
}

/// `goodput_stats::summary::client` of `summary/client.rs`.
fn module_of(name: &str, inside: &Path) -> Vec<String> {
    let mut module = vec![format!("goodput_{name}")];
    let parts = inside.with_extension("");
    let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
    module.extend(parts.filter(|part| part != "mod" && part != "lib"));
    module
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    for path in entries {
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            files_below(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
