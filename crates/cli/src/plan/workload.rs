//! What to send.

use std::path::Path;

use goodput_dataset::{FileKind, file_kind, frozen};
use goodput_model::{
    ClassPlan, ConstraintDialect, DatasetPlan, Delay, History, ImagesPlan, LengthDistribution,
    OutputLength, PrefixPlan, SessionPlan, SharedPlan, SourcePlan, StructuredPlan, ToolsPlan,
    TracePlan, WorkloadPlan, closest_name, parse_weight,
};
use goodput_record::read_workload;
use goodput_workload::{PRESETS, find_preset};

use crate::args::{
    DataArgs, HistoryName, OutputName, SessionArgs, ShapeArgs, StructuredDialectName, TraceArgs,
    WorkloadArgs,
};
use crate::error::Failed;

/// The workload that the flags describe.
pub(crate) fn resolve_workload(args: &WorkloadArgs) -> Result<WorkloadPlan, Failed> {
    let mut plan = base_workload(args)?;
    let is_described = args.mix.is_none() && is_description(&args.workload);
    for class in &mut plan.classes {
        apply_flags(class, args)?;
    }
    refuse_unused(&plan, args)?;
    let is_generated = |class: &ClassPlan| {
        let is_file = matches!(class.source, SourcePlan::Dataset(_) | SourcePlan::Frozen { .. });
        let is_captioned = class.images.as_ref().is_some_and(|images| images.folder.is_some());
        !is_file && !is_captioned
    };
    plan.output = match args.output_length {
        Some(OutputName::Exact) => OutputLength::Exact,
        Some(OutputName::Limit) => OutputLength::Limit,
        None if args.ignore_eos => OutputLength::Exact,
        // A file of classes says itself.
        None if !is_described && plan.classes.iter().all(is_generated) => OutputLength::Exact,
        None => plan.output,
    };
    plan.tokenizer = args.tokenizer.clone().or(plan.tokenizer);
    plan.count_with = args.count_with.clone().or(plan.count_with);
    plan.session_header = args.session.session_header.clone().or(plan.session_header);
    plan.skip_invalid |= args.data.skip_invalid;
    plan.cache_block = args.shape.cache_block.unwrap_or(plan.cache_block);
    plan.reset_cache |= args.shape.cache.as_deref() == Some("reset");
    if let Some(dialect) = args.shape.structured_dialect {
        plan.constraints = match dialect {
            StructuredDialectName::ResponseFormat => ConstraintDialect::ResponseFormat,
            StructuredDialectName::StructuredOutputs => ConstraintDialect::StructuredOutputs,
            StructuredDialectName::Guided => ConstraintDialect::Guided,
            StructuredDialectName::Sglang => ConstraintDialect::Sglang,
            StructuredDialectName::Llamacpp => ConstraintDialect::Llamacpp,
        };
    }
    Ok(plan)
}

/// The classes before single flags change them.
fn base_workload(args: &WorkloadArgs) -> Result<WorkloadPlan, Failed> {
    let named = |name: &str, source| {
        let mut class =
            ClassPlan::synthetic(name, LengthDistribution::Fixed(1), LengthDistribution::Fixed(1));
        class.source = source;
        WorkloadPlan::new(class)
    };
    if let Some(mix) = &args.mix {
        return parse_mix(mix);
    }
    if let Some(file) = &args.trace.trace {
        return Ok(named(&file_stem(file), SourcePlan::Trace(trace_plan(file, &args.trace))));
    }
    if let Some(folder) =
        args.data.dataset.as_ref().filter(|file| is_image_folder(file, &args.data))
    {
        return Ok(captioned_images(folder, args.max_tokens));
    }
    if let Some(file) = &args.data.dataset {
        let source = SourcePlan::Dataset(dataset_plan(file, &args.data, args));
        return Ok(named(&file_stem(file), source));
    }
    if let Some(file) = &args.lengths {
        return Ok(named(&file_stem(file), SourcePlan::Pairs { file: file.clone() }));
    }
    let name = args.workload.as_str();
    if is_description(name) {
        return read_workload(Path::new(name), find_preset).map_err(|error| {
            Failed::usage(error.to_string()).hint("docs/workloads.md has an example")
        });
    }
    if !is_frozen(name) {
        return known_preset(name).map(WorkloadPlan::new);
    }
    let header = frozen::read_header(Path::new(name)).map_err(|error| {
        Failed::usage(error.to_string()).or_hint(
            error.hint().unwrap_or("read other files with --dataset or --trace".to_owned()),
        )
    })?;
    let mut plan =
        named(&file_stem(name), SourcePlan::Frozen { file: name.to_owned(), sha256: None });
    // Bodies are as they were made.
    if header.facts.get("output").is_some_and(|output| output == "exact") {
        plan.output = OutputLength::Exact;
    }
    let dialect = header.facts.get("constraints").map(String::as_str);
    plan.constraints = dialect.and_then(ConstraintDialect::from_name).unwrap_or_default();
    Ok(plan)
}

/// Whether this is a file that describes a workload: by its name, or by what it holds.
pub(crate) fn is_description(name: &str) -> bool {
    let path = Path::new(name);
    has_extension(path, "toml") || (is_other_file(name) && read_workload(path, find_preset).is_ok())
}

/// Whether this is a frozen workload, likewise.
fn is_frozen(name: &str) -> bool {
    let path = Path::new(name);
    let holds_one = || matches!(file_kind(path), Ok(FileKind::Frozen));
    has_extension(path, "jsonl") || (is_other_file(name) && holds_one())
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

/// Whether the name is a file that is not a workload; a preset takes precedence over a file of its
/// name.
fn is_other_file(name: &str) -> bool {
    find_preset(name).is_none() && Path::new(name).is_file()
}

fn known_preset(name: &str) -> Result<ClassPlan, Failed> {
    find_preset(name).ok_or_else(|| {
        let failed = Failed::usage(format!("no workload is named `{name}`"));
        match closest_name(name, PRESETS) {
            Some(near) => failed.hint(format!("did you mean `{near}`?")),
            None => failed.hint(format!(
                "presets: {}; or name a .toml file, or a .jsonl file from `goodput workload make`",
                PRESETS.join(", ")
            )),
        }
    })
}

/// `chat=70%,long_context_qa=30%`
fn parse_mix(text: &str) -> Result<WorkloadPlan, Failed> {
    let wrong = || {
        Failed::usage(format!("`{text}` is not a mix"))
            .hint("write --mix chat=70%,long_context_qa=30%")
    };
    let class = |part: &str| {
        let (name, share) = part.split_once('=').ok_or_else(wrong)?;
        let share = parse_weight(share).filter(|share| *share > 0.0).ok_or_else(wrong)?;
        Ok(ClassPlan { share, ..known_preset(name.trim())? })
    };
    let classes = text.split(',').map(class).collect::<Result<Vec<_>, Failed>>()?;
    let mut names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(
            Failed::usage(format!("`{twice}` appears twice in the mix")).hint("give it one share")
        );
    }
    let first = classes.first().cloned().ok_or_else(wrong)?;
    Ok(WorkloadPlan { name: "mix".to_owned(), classes, ..WorkloadPlan::new(first) })
}

/// Whether a dataset is images: a folder, or tables in Parquet with pictures.
fn is_image_folder(file: &str, args: &DataArgs) -> bool {
    let is_there = || Path::new(file).is_dir() || goodput_dataset::has_pictures(Path::new(file));
    args.dataset_format.as_deref() == Some("images")
        || (args.dataset_format.is_none() && is_there())
}

/// Images of a folder or of tables, asked about with their text.
fn captioned_images(folder: &str, output: Option<LengthDistribution>) -> WorkloadPlan {
    let output = output.unwrap_or(LengthDistribution::Fixed(CAPTION_ANSWER));
    let mut class = ClassPlan::synthetic(&file_stem(folder), LengthDistribution::Fixed(64), output);
    class.images = Some(ImagesPlan::captioned(folder));
    WorkloadPlan::new(class)
}

/// Tokens of an answer about an image, when nothing is said.
const CAPTION_ANSWER: u32 = 100;

/// The name of a file without folder and extension.
fn file_stem(file: &str) -> String {
    let name = Path::new(file).file_stem().and_then(|name| name.to_str()).unwrap_or("file");
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = name.chars().filter(is_plain).take(40).collect();
    if plain.is_empty() { "file".to_owned() } else { plain }
}

fn trace_plan(file: &str, args: &TraceArgs) -> TracePlan {
    TracePlan {
        file: file.to_owned(),
        format: args.trace_format.clone(),
        start_s: args.trace_start.map_or(0.0, |time| time.as_secs_f64()),
        length_s: args.trace_length.map(|time| time.as_secs_f64()),
        block_tokens: args.block_tokens,
        sha256: None,
        log: args.log.to_plan(),
    }
}

fn dataset_plan(file: &str, data: &DataArgs, args: &WorkloadArgs) -> DatasetPlan {
    // What vLLM leaves out of ShareGPT.
    let usual = |limit: u32| data.filter_lengths.then_some(limit);
    let session = &args.session;
    DatasetPlan {
        file: file.to_owned(),
        format: data.dataset_format.clone(),
        prompt_column: data.prompt_column.clone(),
        output_column: data.output_column.clone(),
        sample: data.sample,
        in_order: data.in_order,
        output: args.max_tokens,
        min_input: data.min_input.or(usual(4)),
        max_input: data.max_input.or(usual(1024)),
        min_output: data.min_output.or(usual(4)),
        max_total: data.max_total.or(usual(2048)),
        turns: match session.turns {
            Some(LengthDistribution::Fixed(turns)) => Some(turns),
            Some(_) => None,
            // Single prompts unless conversations were asked for.
            None => Some(1),
        },
        think: session.turn_pause,
        history: history_or_default(session.history),
        sha256: None,
    }
}

fn history_or_default(asked: Option<HistoryName>) -> History {
    match asked {
        Some(HistoryName::Dataset) => History::Dataset,
        Some(HistoryName::Server) | None => History::Server,
    }
}

/// Flags that would change nothing are mistakes.
fn refuse_unused(plan: &WorkloadPlan, args: &WorkloadArgs) -> Result<(), Failed> {
    let asked = &args.session;
    let is_frozen = |class: &ClassPlan| matches!(class.source, SourcePlan::Frozen { .. });
    let shape = &args.shape;
    let changes = [
        args.input_tokens.is_some() || args.max_tokens.is_some() || asked.turns.is_some(),
        shape.images.is_some() || shape.image_dir.is_some() || shape.structured.is_some(),
        shape.system_tokens.is_some() || shape.prefix_tokens.is_some(),
        shape.cache.as_deref().is_some_and(|state| state != "reset"),
    ];
    if changes.contains(&true) && plan.classes.iter().any(is_frozen) {
        return Err(Failed::usage(
            "a frozen workload is sent as it is: these flags would have no effect",
        )
        .hint(
            "remove the flags for lengths, turns, cache, images, and constraints, or make another \
             file",
        ));
    }
    if args.data.dataset.is_some() {
        refuse_unused_session_flags(asked)?;
    } else if has_data_flags(&args.data) {
        return Err(Failed::usage("a flag for datasets is given without a dataset")
            .hint("name one with --dataset"));
    }
    let trace = &args.trace;
    let of_trace = trace.trace_format.is_some()
        || trace.trace_start.is_some()
        || trace.trace_length.is_some()
        || trace.block_tokens.is_some()
        || !trace.log.to_plan().is_default();
    if of_trace && trace.trace.is_none() {
        return Err(Failed::usage("a flag for traces is given without a trace")
            .hint("name one with --trace"));
    }
    let is_captioned = |class: &ClassPlan| {
        let has_folder = class.images.as_ref().is_some_and(|images| images.folder.is_some());
        has_folder && class.prefix.as_ref().is_some_and(|prefix| prefix.shared.is_some())
    };
    if plan.classes.iter().any(is_captioned) {
        return Err(Failed::usage(
            "the prompts of an image folder are its captions, which share no prefix",
        )
        .hint("remove the flags for cache state and prefix groups; --system-tokens still works"));
    }
    let is_talk = |class: &ClassPlan| {
        class.session.is_some() || matches!(class.source, SourcePlan::Dataset(_))
    };
    let of_turns =
        asked.turn_pause.is_some() || asked.turn_input.is_some() || asked.history.is_some();
    if of_turns && !plan.classes.iter().any(is_talk) {
        return Err(Failed::usage("a flag for turns is given without turns")
            .hint("add --turns 4, or --workload multi_turn"));
    }
    let has_tools = |class: &ClassPlan| class.session.as_ref().is_some_and(|s| s.tools.is_some());
    let of_tools = asked.tool_calls.is_some()
        || asked.fan_out.is_some()
        || asked.tool_delay.is_some()
        || asked.tool_result.is_some()
        || asked.tool_role;
    if of_tools && !plan.classes.iter().any(has_tools) {
        return Err(Failed::usage("a flag for tools is given without tool calls")
            .hint("add --tool-calls 2, or --workload agent"));
    }
    Ok(())
}

fn has_data_flags(data: &DataArgs) -> bool {
    let limits = [data.min_input, data.max_input, data.min_output, data.max_total];
    let names = [&data.dataset_format, &data.prompt_column, &data.output_column];
    limits.iter().any(Option::is_some)
        || names.iter().any(|name| name.is_some())
        || data.sample.is_some()
        || data.in_order
        || data.filter_lengths
}

fn refuse_unused_session_flags(asked: &SessionArgs) -> Result<(), Failed> {
    if !matches!(asked.turns, None | Some(LengthDistribution::Fixed(_))) {
        return Err(Failed::usage("the conversations of a dataset have their own turns")
            .hint("--turns N plays at most N of them"));
    }
    if asked.turn_input.is_some() || asked.tool_calls.is_some() || asked.fan_out.is_some() {
        return Err(Failed::usage("the turns of a dataset have their own text and tools")
            .hint("remove --turn-input, --tool-calls, and --fan-out"));
    }
    if asked.turns.is_none() && (asked.turn_pause.is_some() || asked.history.is_some()) {
        return Err(Failed::usage("a dataset is sent as single prompts unless --turns is given")
            .hint("add --turns 4"));
    }
    Ok(())
}

/// Changes a class by the flags that were typed.
fn apply_flags(class: &mut ClassPlan, args: &WorkloadArgs) -> Result<(), Failed> {
    if let SourcePlan::Synthetic { input, output } = &mut class.source {
        *input = args.input_tokens.unwrap_or(*input);
        *output = args.max_tokens.unwrap_or(*output);
    }
    if !matches!(class.source, SourcePlan::Dataset(_) | SourcePlan::Trace(_)) {
        class.session = session_plan(class.session.take(), &args.session);
    }
    match prefix_plan(&args.shape)? {
        Some(prefix) => class.prefix = Some(prefix),
        // What was said outright undoes what a file says.
        None if args.shape.cache.is_some() => class.prefix = None,
        None => {}
    }
    if let Some(images) = images_plan(&args.shape)? {
        class.images = Some(images);
    }
    if let Some(structured) = structured_plan(&args.shape)? {
        class.structured = Some(structured);
    }
    Ok(())
}

fn session_plan(preset: Option<SessionPlan>, args: &SessionArgs) -> Option<SessionPlan> {
    let has_tools = args.tool_calls.is_some() || args.fan_out.is_some();
    let base = preset.or_else(|| {
        (args.turns.is_some() || has_tools).then_some(SessionPlan {
            turns: LengthDistribution::Fixed(1),
            think: Delay::Fixed(std::time::Duration::ZERO),
            turn_input: None,
            history: History::Server,
            tools: None,
        })
    })?;
    let tools = match (base.tools, has_tools) {
        (None, false) => None,
        (tools, _) => {
            let tools = tools.unwrap_or(ToolsPlan {
                calls: LengthDistribution::Fixed(1),
                delay: Delay::Fixed(std::time::Duration::from_secs(1)),
                result: LengthDistribution::Fixed(200),
                fan_out: 0,
                tool_role: false,
            });
            Some(ToolsPlan {
                calls: args.tool_calls.unwrap_or(tools.calls),
                delay: args.tool_delay.unwrap_or(tools.delay),
                result: args.tool_result.unwrap_or(tools.result),
                fan_out: args.fan_out.unwrap_or(tools.fan_out),
                tool_role: args.tool_role || tools.tool_role,
            })
        }
    };
    Some(SessionPlan {
        turns: args.turns.unwrap_or(base.turns),
        think: args.turn_pause.unwrap_or(base.think),
        turn_input: args.turn_input.or(base.turn_input),
        history: args.history.map_or(base.history, |asked| history_or_default(Some(asked))),
        tools,
    })
}

fn prefix_plan(args: &ShapeArgs) -> Result<Option<PrefixPlan>, Failed> {
    let shared = match args.cache.as_deref() {
        None => args.prefix_tokens.map(|tokens| SharedPlan::Groups {
            groups: args.prefix_groups.unwrap_or(1),
            tokens,
            zipf: args.prefix_zipf,
        }),
        Some("cold" | "reset") => None,
        Some(text) => Some(SharedPlan::from_cache_state(text).ok_or_else(|| {
            Failed::usage(format!("`{text}` is not a state of the cache")).hint(
                "write cold, reset, warm[=PROMPTS], hit=70%[:GROUPS], or tiling=CONTEXTS:TOKENS",
            )
        })?),
    };
    let system_tokens = args.system_tokens.unwrap_or(0);
    let is_shaped = system_tokens > 0 || shared.is_some();
    Ok(is_shaped.then_some(PrefixPlan { system_tokens, shared }))
}

fn images_plan(args: &ShapeArgs) -> Result<Option<ImagesPlan>, Failed> {
    let text = match (&args.images, &args.image_dir) {
        (None, None) => return Ok(None),
        (Some(text), _) => text.as_str(),
        (None, Some(_)) => "1",
    };
    ImagesPlan::from_shorthand(text, args.image_dir.as_deref()).map(Some).ok_or_else(|| {
        Failed::usage(format!("`{text}` does not describe images")).hint(
            "write 1, 2:640x480, or 1:1024x1024:png; at most 64 images and 22 million pixels in \
             total",
        )
    })
}

fn structured_plan(args: &ShapeArgs) -> Result<Option<StructuredPlan>, Failed> {
    let Some(text) = &args.structured else { return Ok(None) };
    let (kind, share) = text.split_once(':').unwrap_or((text, "100%"));
    let is_known = matches!(kind, "json" | "regex" | "choice" | "grammar");
    let share = parse_weight(share).filter(|share| is_known && *share <= 1.0).ok_or_else(|| {
        Failed::usage(format!("`{text}` is not a constraint on answers"))
            .hint("write json, regex, choice, or grammar, optionally with a share, as in json:50%")
    })?;
    let read = |path: &std::path::PathBuf| {
        goodput_files::read_text(path, goodput_files::MOST_SMALL)
            .map_err(|error| Failed::usage(format!("cannot read `{}`: {error}", path.display())))
    };
    let text = args.structured_file.as_ref().map(read).transpose()?;
    Ok(Some(StructuredPlan { share, kind: kind.to_owned(), text }))
}
