//! What the servers behind the sides say of themselves, side by side, and what of it casts doubt on
//! a comparison: a difference between engines says little if one of them was tuned in a way
//! that the comparison is not about.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::{Caveat, CaveatCode, Severity, is_setting_meant};
use serde::{Deserialize, Serialize};

use super::Design;

/// Settings of which only some sides speak, at most this many are named in one caveat.
const MOST_NAMED: usize = 12;

/// Settings that follow from others and vary from start to start: worth knowing only.
const DERIVED: [&str; 2] = ["kv_cache_tokens", "model_path"];

/// Settings that only a page with the settings of an engine states. A side that states one of them
/// and not another has the default there.
const OF_PAGES: [&str; 6] = [
    "async_scheduling",
    "block_size",
    "gpu_memory_utilization",
    "max_waiting_tokens",
    "mem_fraction_static",
    "stream_interval",
];

/// One setting of the servers, over all sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSetting {
    /// Its name: `max_num_seqs`, `engine_version`, or one that the user chose. Foreign text.
    pub name: String,
    /// The value on each side; none where it is not stated. Foreign text.
    pub values: Vec<Option<String>>,
    /// Whether the sides agree.
    pub agreement: SettingAgreement,
}

/// Whether sides agree in a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingAgreement {
    /// All state the same.
    Same,
    /// It differs, and is what the comparison is about (`--under-test`).
    UnderTest,
    /// It differs.
    Differs,
    /// It differs, and follows from other settings.
    Derived,
    /// Not every side states it, so nothing is known about it.
    Unknown,
}

/// Names under which servers state what goes by another name where it is set.
const STATED_AS: [(&str, &str); 4] = [
    ("chunked_prefill", "enable_chunked_prefill"),
    ("max_num_batched_tokens", "max_batched_tokens"),
    ("slots", "max_num_seqs"),
    ("tp", "tensor_parallel"),
];

/// Settings that this comparison is about: those that the user names, and those that its sides vary.
pub(super) fn meant(design: &Design) -> Vec<String> {
    let keys = design.varied.iter().flat_map(|varied| varied.split(','));
    let keys = keys.filter_map(|one| Some(one.split_once('=')?.0.trim()));
    let stated = |key: &str| {
        let name = STATED_AS.iter().find(|(set, _)| *set == key).map_or(key, |(_, name)| name);
        name.to_owned()
    };
    design.under_test.iter().cloned().chain(keys.map(stated)).collect()
}

/// The settings of all sides, by name. `under_test`: names of settings, or of groups of them.
pub(crate) fn server_settings(
    sides: &[BTreeMap<String, String>],
    under_test: &[String],
) -> Vec<ServerSetting> {
    let names: BTreeSet<&String> = sides.iter().flat_map(BTreeMap::keys).collect();
    let one = |name: &String| {
        let values: Vec<Option<String>> =
            sides.iter().map(|side| side.get(name).cloned()).collect();
        let stated: BTreeSet<String> =
            values.iter().flatten().map(|value| normalized_value(name, value)).collect();
        let is_missing = values.iter().any(Option::is_none);
        // A page of settings leaves out what is off.
        let has_defaults = sides
            .iter()
            .zip(&values)
            .all(|(side, value)| value.is_some() || has_server_facts(side));
        let agreement = if !is_missing && stated.len() < 2 {
            SettingAgreement::Same
        } else if is_missing && !(has_defaults && is_flag(name)) && stated.len() < 2 {
            SettingAgreement::Unknown
        } else if under_test.iter().any(|asked| is_setting_meant(asked, name)) {
            SettingAgreement::UnderTest
        } else if DERIVED.contains(&name.as_str()) {
            SettingAgreement::Derived
        } else {
            SettingAgreement::Differs
        };
        ServerSetting { name: name.clone(), values, agreement }
    };
    names.into_iter().map(one).collect()
}

fn has_server_facts(side: &BTreeMap<String, String>) -> bool {
    OF_PAGES.iter().any(|name| side.contains_key(*name))
}

/// Whether a setting is an engine's own flag, which is left out of the facts where it is off.
fn is_flag(name: &str) -> bool {
    const FLAGS: [&str; 11] = [
        "async_scheduling",
        "chunked_prefill_size",
        "disable_cuda_graph",
        "enable_chunked_prefill",
        "enable_dp_attention",
        "enable_hierarchical_cache",
        "enable_torch_compile",
        "enforce_eager",
        "log_requests",
        "quantization",
        "speculative",
    ];
    FLAGS.contains(&name)
}

/// A value without what does not matter: `True` and `on` are one, as are `256` and `256.0`.
fn normalized_value(name: &str, value: &str) -> String {
    let small = value.trim().to_lowercase();
    match small.as_str() {
        "on" | "yes" | "enabled" => return "true".to_owned(),
        "off" | "no" | "disabled" => return "false".to_owned(),
        _ => {}
    }
    // 0.30 is not 0.3 there.
    let is_version = name.contains("version") || name.contains("revision") || name == "driver";
    let number = small.parse::<f64>().ok().filter(|number| number.is_finite() && !is_version);
    number.map_or(small, |number| number.to_string())
}

/// A caveat for each setting that differs and is not under test. `names`: of the sides.
pub(super) fn difference_caveats(settings: &[ServerSetting], names: &[String]) -> Vec<Caveat> {
    let differs = |setting: &&ServerSetting| setting.agreement == SettingAgreement::Differs;
    let one = |setting: &ServerSetting| {
        let advice = format!(
            "make them equal, or add --under-test {} if that is what is compared",
            setting.name
        );
        setting_caveat(Severity::Warn, setting_text(setting, names)).advise(advice)
    };
    settings.iter().filter(differs).map(one).collect()
}

/// What to know in addition: what is under test, what follows from other settings, and what is
/// unknown.
pub(super) fn setting_notes(
    settings: &[ServerSetting],
    names: &[String],
    under_test: &[String],
) -> Vec<Caveat> {
    let all = |agreement: SettingAgreement| {
        let own = settings.iter().filter(|setting| setting.agreement == agreement);
        let own: Vec<String> = own.map(|setting| setting_text(setting, names)).collect();
        (!own.is_empty()).then(|| own.join("; "))
    };
    let tested = all(SettingAgreement::UnderTest).map(|text| format!("under test: {text}"));
    let derived = all(SettingAgreement::Derived);
    let derived = derived.map(|text| format!("differs with other settings: {text}"));
    let told = [
        tested,
        derived,
        unknown_settings_text(settings, names),
        unchanged_under_test_text(settings, under_test),
    ];
    told.into_iter().flatten().map(|message| setting_caveat(Severity::Info, message)).collect()
}

fn setting_caveat(severity: Severity, message: String) -> Caveat {
    Caveat::new(CaveatCode::ServerSettingsDiffer, severity, message)
}

/// ``A `max_num_seqs` 256, B default``
fn setting_text(setting: &ServerSetting, names: &[String]) -> String {
    let mut values = names.iter().zip(&setting.values);
    let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "default".to_owned());
    let first = values.next();
    let first = first.map(|(side, value)| format!("{side} `{}` {}", setting.name, word(value)));
    let others = values.map(|(side, value)| format!("{side} {}", word(value)));
    first.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// What only some sides state; nothing where no side states anything.
fn unknown_settings_text(settings: &[ServerSetting], names: &[String]) -> Option<String> {
    let open = |setting: &&ServerSetting| setting.agreement == SettingAgreement::Unknown;
    let open: Vec<&ServerSetting> = settings.iter().filter(open).collect();
    let silent = |side: usize| {
        open.iter().any(|setting| setting.values.get(side).is_some_and(Option::is_none))
    };
    let silent = names.iter().enumerate().filter(|(side, _)| silent(*side));
    let silent: Vec<&str> = silent.map(|(_, name)| name.as_str()).collect();
    let shown: Vec<String> =
        open.iter().take(MOST_NAMED).map(|setting| format!("`{}`", setting.name)).collect();
    let rest = open.len().saturating_sub(MOST_NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let verb = if silent.len() == 1 { "does" } else { "do" };
    (!open.is_empty()).then(|| {
        format!(
            "{} {verb} not state {}{more}: whether the servers are set up alike there is unknown; \
             state it with --meta NAME.SETTING=VALUE",
            silent.join(" and "),
            shown.join(", ")
        )
    })
}

/// What is called under test and does not differ.
fn unchanged_under_test_text(settings: &[ServerSetting], under_test: &[String]) -> Option<String> {
    let is_idle = |name: &&String| {
        !settings.iter().any(|setting| {
            setting.agreement == SettingAgreement::UnderTest
                && is_setting_meant(name, &setting.name)
        })
    };
    let idle: Vec<&str> = under_test.iter().filter(is_idle).map(String::as_str).collect();
    (!idle.is_empty()).then(|| {
        format!(
            "no difference is known in what is under test: {}; state it with --meta \
             NAME.SETTING=VALUE",
            idle.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn two(under_test: &[&str]) -> (Vec<ServerSetting>, Vec<Caveat>) {
        let sides = [
            side(&[
                ("engine", "vllm"),
                ("engine_version", "0.30"),
                ("max_num_seqs", "256"),
                ("prefix_caching", "True"),
                ("block_size", "16"),
                ("enforce_eager", "true"),
                ("dtype", "fp8"),
                ("kv_cache_tokens", "1000"),
            ]),
            side(&[
                ("engine", "vllm"),
                ("engine_version", "0.3"),
                ("max_num_seqs", "1024"),
                ("prefix_caching", "on"),
                ("block_size", "16.0"),
                ("kv_cache_tokens", "1001"),
            ]),
        ];
        let under_test: Vec<String> = under_test.iter().map(|name| (*name).to_owned()).collect();
        let names = ["A".to_owned(), "B".to_owned()];
        let settings = server_settings(&sides, &under_test);
        let mut caveats = difference_caveats(&settings, &names);
        caveats.extend(setting_notes(&settings, &names, &under_test));
        (settings, caveats)
    }

    fn warned(caveats: &[Caveat]) -> Vec<&str> {
        let all = caveats.iter().filter(|caveat| caveat.severity == Severity::Warn);
        all.map(|caveat| caveat.message.as_str()).collect()
    }

    #[test]
    fn a_setting_that_differs_is_named_with_both_values() {
        let (settings, caveats) = two(&[]);
        let of = |name: &str| settings.iter().find(|one| one.name == name).unwrap().agreement;
        assert_eq!(of("prefix_caching"), SettingAgreement::Same);
        assert_eq!(of("block_size"), SettingAgreement::Same);
        assert_eq!(of("dtype"), SettingAgreement::Unknown);
        assert_eq!(of("kv_cache_tokens"), SettingAgreement::Derived);
        let expected = [
            "A `enforce_eager` true, B default",
            "A `engine_version` 0.30, B 0.3",
            "A `max_num_seqs` 256, B 1024",
        ];
        assert_eq!(warned(&caveats), expected);
        let told = caveats.iter().find(|caveat| caveat.message.contains("`dtype`")).unwrap();
        assert!(told.message.starts_with("B does not state `dtype`: "), "{}", told.message);
        assert_eq!(told.severity, Severity::Info);
    }

    #[test]
    fn what_is_under_test_is_no_doubt() {
        let (_, caveats) = two(&["engine", "MAX_NUM_SEQS", "tensor_parallel"]);
        assert_eq!(warned(&caveats), ["A `enforce_eager` true, B default"]);
        let messages: Vec<&str> = caveats.iter().map(|caveat| caveat.message.as_str()).collect();
        let tested = "under test: A `engine_version` 0.30, B 0.3; A `max_num_seqs` 256, B 1024";
        assert!(messages.contains(&tested), "{messages:?}");
        assert!(messages.iter().any(|text| text.contains("under test: tensor_parallel;")));
    }

    #[test]
    fn what_is_varied_is_under_test() {
        let varied = ["", "tp=2,precision=fp8", "chunked_prefill=off"].map(str::to_owned).to_vec();
        let design = Design { varied, under_test: vec!["engine".to_owned()], ..Design::default() };
        let all = meant(&design);
        assert_eq!(all, ["engine", "tensor_parallel", "precision", "enable_chunked_prefill"]);
        let base = |more: &[(&str, &str)]| {
            let mut all = side(&[("block_size", "16"), ("max_num_seqs", "48")]);
            all.extend(side(more));
            all
        };
        let sides = [
            base(&[("tensor_parallel", "1"), ("enable_chunked_prefill", "true")]),
            base(&[
                ("tensor_parallel", "2"),
                ("quantization", "fp8"),
                ("enable_chunked_prefill", "true"),
            ]),
            base(&[("tensor_parallel", "1")]),
        ];
        let settings = server_settings(&sides, &all);
        let of = |name: &str| settings.iter().find(|one| one.name == name).unwrap().agreement;
        // Not in FP8, and without chunks, a page leaves the flag out.
        for name in ["tensor_parallel", "quantization", "enable_chunked_prefill"] {
            assert_eq!(of(name), SettingAgreement::UnderTest, "{name}");
        }
        assert_eq!(of("max_num_seqs"), SettingAgreement::Same);
        assert_eq!(difference_caveats(&settings, &[]), vec![]);
    }

    #[test]
    fn servers_that_say_nothing_raise_no_doubt() {
        let settings = server_settings(&[side(&[]), side(&[])], &[]);
        assert_eq!(
            (difference_caveats(&settings, &[]), setting_notes(&settings, &[], &[])),
            (vec![], vec![])
        );
    }
}
