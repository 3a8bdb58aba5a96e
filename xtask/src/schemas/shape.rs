//! From a type to its JSON Schema.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use syn::{Fields, GenericArgument, PathArguments, Type, Variant};

use super::serde::{SerdeAttributes, said};
use super::types::{Form, Found, Types};

/// Those that a macro makes or that are written by hand: what they are in a file.
const BY_HAND: [(&str, &str, &str); 3] = [
    ("CaveatCode", r#"{"type": "string"}"#, ""),
    ("Signal", r#"{"type": "string"}"#, ""),
    ("Slices", r#"{"type": "object"}"#, "Slice"),
];

/// A schema being built: the types that it has met so far.
pub(super) struct Shapes<'a> {
    types: &'a Types,
    /// By name: where the type stands, and its schema.
    met: BTreeMap<String, (Vec<String>, Value)>,
}

impl<'a> Shapes<'a> {
    pub(super) fn new(types: &'a Types) -> Self {
        Self { types, met: BTreeMap::new() }
    }

    /// The schema of a file that holds this type, or a list of such.
    pub(super) fn file(mut self, found: &Found, is_list: bool) -> Result<Value, String> {
        let mut shape = self.shape(found)?;
        let name = self.types.format(found).map_or_else(String::new, str::to_owned);
        if let Some(schema) = shape.pointer_mut("/properties/schema") {
            *schema = json!({"const": name, "description": "The format of this file."});
        }
        let mut file = Map::new();
        file.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        if is_list {
            file.insert("type".to_owned(), "array".into());
            file.insert("items".to_owned(), shape);
        } else if let Value::Object(shape) = shape {
            file.extend(shape);
        }
        let defined = self.met.into_iter().map(|(name, (_, shape))| (name, shape));
        let defined: Map<String, Value> = defined.collect();
        if !defined.is_empty() {
            file.insert("$defs".to_owned(), defined.into());
        }
        Ok(file.into())
    }

    /// A reference to a type, which is described once.
    fn reference(&mut self, found: &Found) -> Result<Value, String> {
        let last = found.module.last().cloned().unwrap_or_default();
        let is_other = |met: &(Vec<String>, Value)| met.0 != found.module;
        let is_taken = self.met.get(&found.name).is_some_and(is_other);
        let name = if is_taken { format!("{last}.{}", found.name) } else { found.name.clone() };
        match self.met.get(&name) {
            Some(met) if is_other(met) => return Err(format!("two types are named {name}")),
            Some(_) => {}
            None => {
                // First the name: a type may hold itself.
                self.met.insert(name.clone(), (found.module.clone(), Value::Null));
                let shape = self.shape(found)?;
                self.met.insert(name.clone(), (found.module.clone(), shape));
            }
        }
        Ok(json!({"$ref": format!("#/$defs/{name}")}))
    }

    fn shape(&mut self, found: &Found) -> Result<Value, String> {
        let told = SerdeAttributes::parse(&found.attributes)?;
        let mut shape = match &found.form {
            Form::Text => json!({"type": "string"}),
            _ if told.is_text => json!({"type": "string"}),
            Form::Alias(ty) => self.type_schema(ty, &found.module)?,
            Form::Struct(Fields::Named(fields)) => {
                let mut object = ObjectSchema::default();
                for field in &fields.named {
                    self.field(field, &told, &found.module, &mut object)?;
                }
                object.into_value()
            }
            Form::Struct(Fields::Unnamed(fields)) if fields.unnamed.len() == 1 => {
                match fields.unnamed.first() {
                    Some(field) => self.type_schema(&field.ty, &found.module)?,
                    None => Value::Null,
                }
            }
            Form::Struct(_) => return Err(format!("{}: no schema for a tuple", found.name)),
            Form::Enum(variants) => self.choice(variants, &told, &found.module)?,
        };
        describe(&mut shape, &said(&found.attributes));
        Ok(shape)
    }

    fn field(
        &mut self,
        field: &syn::Field,
        all: &SerdeAttributes,
        module: &[String],
        object: &mut ObjectSchema,
    ) -> Result<(), String> {
        let told = SerdeAttributes::parse(&field.attrs)?;
        if told.skip {
            return Ok(());
        }
        let mut shape = if told.is_text {
            let is_option = inner(&field.ty, "Option").is_some();
            if is_option { json!({"type": ["string", "null"]}) } else { json!({"type": "string"}) }
        } else if told.flatten {
            return self.flat(&field.ty, module, object);
        } else {
            self.type_schema(&field.ty, module)?
        };
        describe(&mut shape, &said(&field.attrs));
        let given = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        let name = told.name(given.trim_start_matches("r#"), all);
        object.add(name, shape, told.may_miss || all.may_miss);
        Ok(())
    }

    /// The fields of another, as if they were its own.
    fn flat(
        &mut self,
        ty: &Type,
        module: &[String],
        object: &mut ObjectSchema,
    ) -> Result<(), String> {
        if let Type::Path(path) = ty
            && let Some(found) = self.types.resolve(&path.path, module)?
            && let Form::Struct(fields) = &found.form
        {
            let told = SerdeAttributes::parse(&found.attributes)?;
            for field in fields {
                self.field(field, &told, &found.module, object)?;
            }
            return Ok(());
        }
        let map = self.type_schema(ty, module)?;
        object.others = map.get("additionalProperties").cloned();
        Ok(())
    }

    fn choice(
        &mut self,
        variants: &[Variant],
        all: &SerdeAttributes,
        module: &[String],
    ) -> Result<Value, String> {
        let mut choices = Vec::new();
        for variant in variants {
            let told = SerdeAttributes::parse(&variant.attrs)?;
            if told.skip {
                continue;
            }
            let name = told.name(&variant.ident.to_string(), all);
            let mut choice = self.variant(variant, &name, all, module)?;
            describe(&mut choice, &said(&variant.attrs));
            choices.push(choice);
        }
        Ok(json!({"oneOf": choices}))
    }

    fn variant(
        &mut self,
        variant: &Variant,
        name: &str,
        all: &SerdeAttributes,
        module: &[String],
    ) -> Result<Value, String> {
        // What it holds, if anything; the names of its fields stay as they are.
        let plain = SerdeAttributes::default();
        let mut fields = ObjectSchema::default();
        let held = match &variant.fields {
            Fields::Unit => None,
            Fields::Named(named) => {
                for field in &named.named {
                    self.field(field, &plain, module, &mut fields)?;
                }
                Some(fields.clone().into_value())
            }
            Fields::Unnamed(unnamed) => match unnamed.unnamed.first() {
                Some(field) if unnamed.unnamed.len() == 1 => {
                    Some(self.type_schema(&field.ty, module)?)
                }
                _ => return Err(format!("no schema for several values of {name}")),
            },
        };
        let is_unnamed = matches!(variant.fields, Fields::Unnamed(_));
        let mut object = ObjectSchema::default();
        match (&all.tag, &all.content, held) {
            (None, _, None) => return Ok(json!({"const": name})),
            (None, _, Some(held)) => object.add(name.to_owned(), held, false),
            (Some(tag), Some(content), held) => {
                object.add(tag.clone(), json!({"const": name}), false);
                if let Some(held) = held {
                    object.add(content.clone(), held, false);
                }
            }
            (Some(_), None, _) if is_unnamed => return Err(format!("no schema for {name}")),
            (Some(tag), None, _) => {
                fields.add(tag.clone(), json!({"const": name}), false);
                object = fields;
            }
        }
        Ok(object.into_value())
    }

    /// The schema of a type as it is named in a module.
    fn type_schema(&mut self, ty: &Type, module: &[String]) -> Result<Value, String> {
        let path = match ty {
            Type::Path(path) => &path.path,
            Type::Reference(to) => return self.type_schema(&to.elem, module),
            Type::Array(array) => {
                return Ok(
                    json!({"type": "array", "items": self.type_schema(&array.elem, module)?}),
                );
            }
            Type::Tuple(tuple) => {
                let parts: Result<Vec<Value>, String> =
                    tuple.elems.iter().map(|part| self.type_schema(part, module)).collect();
                let parts = parts?;
                let n = parts.len();
                return Ok(
                    json!({"type": "array", "prefixItems": parts, "minItems": n, "maxItems": n}),
                );
            }
            _ => return Err("no schema for a type of this form".to_owned()),
        };
        let last = path.segments.last().ok_or("a type without a name")?;
        let name = last.ident.to_string();
        if let Some((_, shape, of)) = BY_HAND.iter().find(|(by_hand, ..)| *by_hand == name) {
            let mut shape: Value = serde_json::from_str(shape).map_err(|e| e.to_string())?;
            if let Some(found) = self.types.resolve(path, module)?.filter(|_| !of.is_empty()) {
                let of: Type = syn::parse_str(of).map_err(|error| error.to_string())?;
                let module = found.module.clone();
                shape["additionalProperties"] = self.type_schema(&of, &module)?;
            }
            return Ok(shape);
        }
        if let Some(found) = self.types.resolve(path, module)? {
            return self.reference(found);
        }
        let arguments = arguments(&last.arguments);
        match (&name[..], &arguments[..]) {
            ("bool", []) => Ok(json!({"type": "boolean"})),
            ("String" | "str" | "PathBuf", []) => Ok(json!({"type": "string"})),
            ("f64" | "f32", []) => Ok(json!({"type": "number"})),
            ("u8" | "u16" | "u32" | "u64" | "usize", []) => {
                Ok(json!({"type": "integer", "minimum": 0}))
            }
            ("i32" | "i64", []) => Ok(json!({"type": "integer"})),
            ("Box" | "Cow" | "Arc", [of]) => self.type_schema(of, module),
            ("Vec" | "BTreeSet", [of]) => {
                Ok(json!({"type": "array", "items": self.type_schema(of, module)?}))
            }
            // Names in JSON are text, whatever they are here.
            ("BTreeMap", [_, of]) => {
                Ok(json!({"type": "object", "additionalProperties": self.type_schema(of, module)?}))
            }
            ("Option", [of]) => Ok(or_null(self.type_schema(of, module)?)),
            _ => Err(format!("no schema for {name}, in {}", module.join("::"))),
        }
    }
}

fn or_null(mut shape: Value) -> Value {
    if let Some(Value::String(kind)) = shape.get("type") {
        shape["type"] = json!([kind, "null"]);
        return shape;
    }
    json!({"anyOf": [shape, {"type": "null"}]})
}

fn describe(shape: &mut Value, words: &str) {
    if !words.is_empty() {
        shape["description"] = words.into();
    }
}

fn arguments(arguments: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(all) = arguments else { return Vec::new() };
    let types = all.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}

/// What is inside of a type of this name.
fn inner<'t>(ty: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    arguments(&last.arguments).first().copied()
}

/// An object being built. Properties that it does not name are allowed: fields are added over time.
#[derive(Default, Clone)]
struct ObjectSchema {
    properties: Map<String, Value>,
    required: Vec<Value>,
    others: Option<Value>,
}

impl ObjectSchema {
    fn add(&mut self, name: String, shape: Value, may_miss: bool) {
        if !may_miss {
            self.required.push(name.clone().into());
        }
        self.properties.insert(name, shape);
    }

    fn into_value(self) -> Value {
        let mut value = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            value["required"] = self.required.into();
        }
        if let Some(others) = self.others {
            value["additionalProperties"] = others;
        }
        value
    }
}
