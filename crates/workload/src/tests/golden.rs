//! The same plan gives the same bytes on every machine.

use goodput_dataset::Loaded;
use goodput_dataset::{DatasetEntry, DatasetTurn};
use goodput_model::{DatasetPlan, SourcePlan};

use super::*;

/// Every preset and every shape, by name.
fn shapes() -> Vec<(String, WorkloadPlan)> {
    let mut plans: Vec<(String, WorkloadPlan)> = PRESETS
        .iter()
        .map(|name| ((*name).to_owned(), WorkloadPlan::new(find_preset(name).unwrap())))
        .collect();
    let shared = [
        ("system", None),
        ("groups", Some(SharedPlan::Groups { groups: 8, tokens: 256, zipf: 1.2 })),
        ("hit rate", Some(SharedPlan::HitRate { share: 0.7, groups: 3 })),
        ("tiling", Some(SharedPlan::Tiling { contexts: 5, tokens: 300 })),
        ("repeat", Some(SharedPlan::Repeat { prompts: 10 })),
    ];
    for (name, shared) in shared {
        let mut class = with_prefix(0, 64, shared);
        class.source = find_preset("chat").unwrap().source;
        plans.push((name.to_owned(), WorkloadPlan::new(class)));
    }
    let mut mix = WorkloadPlan::new(ClassPlan { share: 0.7, ..find_preset("chat").unwrap() });
    mix.classes.push(ClassPlan { share: 0.3, ..find_preset("agent").unwrap() });
    plans.push(("mix".to_owned(), mix));
    plans
}

#[test]
fn golden_hashes() {
    let found: Vec<(String, String)> = shapes()
        .into_iter()
        .map(|(name, plan)| {
            let hash = Workload::new(&plan, &Setting::new(42)).unwrap().hash();
            (name, hash[..16].to_owned())
        })
        .collect();
    let found: Vec<(&str, &str)> = found.iter().map(|(n, h)| (n.as_str(), h.as_str())).collect();
    assert_eq!(found, GOLDEN);
}
const GOLDEN: [(&str, &str); 13] = [
    ("chat", "e9702f50dc2dea4d"),
    ("short_chat", "99a2eafdd7724c80"),
    ("code_generation", "75591d0077780a42"),
    ("long_context_qa", "c3c9bceef701f65a"),
    ("summarization", "0563c4f441806f8b"),
    ("multi_turn", "7f627743bec57e5f"),
    ("agent", "4dedaec3a6e52716"),
    ("system", "35e3e419b9a026c5"),
    ("groups", "11a880d8522d2d3c"),
    ("hit rate", "92b3f5973ef881ee"),
    ("tiling", "9a2510fa52c7e5e7"),
    ("repeat", "c1586afe1bec22c1"),
    ("mix", "a221c7952a9c7250"),
];

#[test]
fn the_hash_knows_the_seed_the_lengths_and_the_file_but_not_its_place() {
    let plan = WorkloadPlan::new(fixed(50, 9));
    let hash = |plan: &WorkloadPlan, seed| Workload::new(plan, &Setting::new(seed)).unwrap().hash();
    assert_eq!(hash(&plan, 1), hash(&plan, 1));
    assert_ne!(hash(&plan, 1), hash(&plan, 2));
    assert_ne!(hash(&plan, 1), hash(&WorkloadPlan::new(fixed(50, 10)), 1));
    let of_file = |file: &str, sha256: &str| {
        let data = DatasetPlan { file: file.to_owned(), ..DatasetPlan::default() };
        let plan =
            WorkloadPlan::new(ClassPlan { source: SourcePlan::Dataset(data), ..fixed(1, 1) });
        let turn = DatasetTurn {
            messages: vec![Message::text(Role::User, "Hello")],
            ..DatasetTurn::default()
        };
        let entries = vec![DatasetEntry { turns: vec![turn], ..DatasetEntry::default() }];
        let loaded = Loaded { entries, sha256: sha256.to_owned(), ..Loaded::default() };
        Workload::build(&plan, &Setting::new(1), vec![Material::Entries(loaded)]).unwrap().hash()
    };
    assert_eq!(of_file("here/s.json", "aa"), of_file("there/s.json", "aa"));
    assert_ne!(of_file("here/s.json", "aa"), of_file("here/s.json", "bb"));
}

#[test]
fn sessions_are_the_same_in_any_order_and_from_any_clone() {
    for (name, plan) in shapes() {
        let workload = Workload::new(&plan, &Setting::new(4)).unwrap();
        let forward: Vec<Option<Session>> = (0..12).map(|n| workload.session(n)).collect();
        let again = Workload::new(&plan, &Setting::new(4)).unwrap().clone();
        for number in (0..12).rev() {
            assert_eq!(again.session(number), forward[number as usize], "{name}");
        }
    }
}

#[test]
fn a_workload_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    shared(&build(fixed(9, 9)));
}
