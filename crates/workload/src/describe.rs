//! A workload in one line for people.

use goodput_model::{
    ClassPlan, DatasetPlan, PrefixPlan, SessionPlan, SharedPlan, SourcePlan, TracePlan,
    WorkloadPlan,
};

/// One line for people.
pub fn describe_workload(plan: &WorkloadPlan) -> String {
    let total: f64 = plan.classes.iter().map(|class| class.share).sum();
    let is_mix = plan.classes.len() > 1;
    let class = |class: &ClassPlan| {
        let share = if is_mix { percent_text(class.share / total) + " " } else { String::new() };
        let mut line = format!("{share}{}: {}", class.name, source_text(&class.source));
        let model = class.model.as_ref().map(|model| format!("model {model}"));
        let images = class.images.as_ref().map(|images| match &images.folder {
            Some(folder) => format!("{} images of {folder}", images.count),
            None => format!("{} images of {}x{}", images.count, images.width, images.height),
        });
        let structured = class.structured.as_ref().map(|structured| {
            format!("{} under a {} constraint", percent_text(structured.share), structured.kind)
        });
        let prefix = class.prefix.as_ref().and_then(prefix_text);
        let session = class.session.as_ref().map(session_text);
        for detail in [session, prefix, images, structured, model].into_iter().flatten() {
            line.push_str(", ");
            line.push_str(&detail);
        }
        line
    };
    plan.classes.iter().map(class).collect::<Vec<_>>().join("; ")
}

fn percent_text(share: f64) -> String {
    format!("{}%", (share * 1_000.0).round() / 10.0)
}

fn source_text(source: &SourcePlan) -> String {
    match source {
        SourcePlan::Synthetic { input, output } => format!("input {input}, output {output}"),
        SourcePlan::Pairs { file } => format!("pairs of lengths from {file}"),
        SourcePlan::Dataset(data) => dataset_text(data),
        SourcePlan::Trace(plan) => trace_text(plan),
        SourcePlan::Frozen { file, .. } => format!("sessions of {file}"),
    }
}

fn dataset_text(data: &DatasetPlan) -> String {
    let order = if data.in_order { "in order" } else { "at random" };
    let format = data.format.as_ref().map_or(String::new(), |format| format!(" ({format})"));
    let count = data.sample.map_or(String::new(), |sample| format!("{sample} "));
    format!("{count}entries of {}{format} {order}", data.file)
}

fn trace_text(plan: &TracePlan) -> String {
    let format = plan.format.as_ref().map_or(String::new(), |format| format!(" ({format})"));
    let cut = match (plan.start_s, plan.length_s) {
        (0.0, None) => String::new(),
        (start, None) => format!(" from {start} s"),
        (start, Some(length)) => format!(" from {start} s for {length} s"),
    };
    format!("trace {}{format}{cut}", plan.file)
}

fn session_text(plan: &SessionPlan) -> String {
    let tools = plan.tools.as_ref().map_or(String::new(), |tools| {
        let parallel = match tools.fan_out {
            0 => String::new(),
            others => format!(" with {others} in parallel"),
        };
        format!(", {} tool calls per turn{parallel}, each after {}", tools.calls, tools.delay)
    });
    format!("{} turns, think time {}{tools}", plan.turns, plan.think)
}

fn prefix_text(plan: &PrefixPlan) -> Option<String> {
    let system =
        (plan.system_tokens > 0).then(|| format!("system prompt of {} tokens", plan.system_tokens));
    let shared = plan.shared.map(|shared| match shared {
        SharedPlan::Groups { groups, tokens, zipf } => {
            let popularity =
                if zipf == 0.0 { String::new() } else { format!(" with Zipf exponent {zipf}") };
            format!("{groups} groups{popularity} that share {tokens} tokens")
        }
        SharedPlan::HitRate { share, groups } => {
            format!("{} of each prompt shared in {groups} groups", percent_text(share))
        }
        SharedPlan::Tiling { contexts, tokens } => {
            format!("{contexts} contexts of {tokens} tokens in turn")
        }
        SharedPlan::Repeat { prompts } => format!("{prompts} different prompts"),
    });
    let details: Vec<String> = [system, shared].into_iter().flatten().collect();
    (!details.is_empty()).then(|| details.join(", "))
}
