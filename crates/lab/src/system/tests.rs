//! Answers of engines, shortened where they are long, and answers of no known engine.

use serde_json::json;

use super::*;

fn page(name: &'static str, body: Value) -> FactsPage {
    FactsPage { name, body }
}

fn found(pages: &[FactsPage]) -> Vec<String> {
    merge_pages(pages, "m").iter().map(|(name, value)| format!("{name}={value}")).collect()
}

#[test]
fn sglang_shows_its_settings_and_its_keys_are_left_out() {
    let server = json!({
        "model_path": "/models/m", "tokenizer_path": "/models/m", "dtype": "auto",
        "quantization": "fp8", "context_length": null, "tp_size": 8, "pp_size": 1, "dp_size": 2,
        "max_running_requests": 256, "max_prefill_tokens": 16384, "max_total_num_tokens": 1_000_000,
        "kv_cache_dtype": "fp8_e4m3", "attention_backend": "fa3", "disable_radix_cache": true,
        "speculative_algorithm": "EAGLE", "mem_fraction_static": 0.85, "disable_cuda_graph": false,
        "chunked_prefill_size": 8192, "api_key": "s3cret", "admin_api_key": "s3cret",
        "hf_token": "s3cret", "ssl_keyfile_password": "s3cret", "log_level": "info",
        "internal_states": [{"last_gen_throughput": 1.0, "api_key": "s3cret"}], "version": "0.5.3",
    });
    let mut many = server.clone();
    let models = json!({"data": [{"id": "other", "owned_by": "sglang", "max_model_len": 1},
        {"id": "m", "owned_by": "sglang", "root": "m", "max_model_len": 32768}]});
    let expected = vec![
        "attention_backend=fa3",
        "data_parallel=2",
        "engine=sglang",
        "engine_flags=chunked_prefill_size=8192 mem_fraction_static=0.85",
        "engine_version=0.5.3",
        "kv_cache_dtype=fp8_e4m3",
        "kv_cache_tokens=1000000",
        "log_level=info",
        "max_batched_tokens=16384",
        "max_model_len=32768",
        "max_num_seqs=256",
        "model_path=/models/m",
        "owned_by=sglang",
        "pipeline_parallel=1",
        "prefix_caching=false",
        "quantization=fp8",
        "speculative=EAGLE",
        "tensor_parallel=8",
    ];
    // The server's settings come before the list, which knows the length all the same.
    let pages = [page("server_info", server), page("models", models.clone())];
    assert_eq!(found(&pages), expected);
    // A dump of hundreds of settings: only what we know.
    for n in 0..400 {
        many[format!("setting_{n}")] = json!(n);
    }
    assert_eq!(found(&[page("server_info", many), page("models", models)]), expected);
}

#[test]
fn vllm_tells_more_in_its_development_mode() {
    let version = || page("version", json!({"version": "0.32.0"}));
    let models = || {
        let entry = json!({"id": "m", "object": "model", "created": 1, "owned_by": "vllm",
            "root": "/models/m", "max_model_len": 4096, "permission": [{"id": "x"}]});
        page("models", json!({"object": "list", "data": [entry]}))
    };
    let plain = [
        "engine=vllm",
        "engine_version=0.32.0",
        "max_model_len=4096",
        "model_path=/models/m",
        "owned_by=vllm",
    ];
    assert_eq!(found(&[version(), models()]), plain);
    let config = json!({
        "model_config": {"model": "org/m", "dtype": "torch.bfloat16", "quantization": null,
            "max_model_len": 4096, "enforce_eager": true, "hf_token": "s3cret"},
        "cache_config": {"cache_dtype": "auto", "enable_prefix_caching": true, "block_size": 16},
        "parallel_config": {"tensor_parallel_size": 2, "pipeline_parallel_size": 1},
        "scheduler_config": {"max_num_seqs": 128, "max_num_batched_tokens": 8192},
        "speculative_config": {"method": "ngram", "draft_model_config": {"dtype": "torch.float16"}},
    });
    let environment = json!({"nvidia_driver_version": "570.1", "pip_version": "25",
        "nvidia_gpu_models": "GPU 0: NVIDIA H200\nGPU 1: NVIDIA H200"});
    let info = json!({"vllm_config": config, "vllm_env": {"VLLM_API_KEY": "s3cret"},
        "system_env": environment});
    let mut expected = vec![
        "driver=570.1",
        "dtype=bfloat16",
        "engine_flags=block_size=16 enforce_eager=true",
        "gpu=GPU 0: NVIDIA H200 GPU 1: NVIDIA H200",
        "max_batched_tokens=8192",
        "max_num_seqs=128",
        "pipeline_parallel=1",
        "prefix_caching=true",
        "speculative=ngram",
        "tensor_parallel=2",
    ];
    expected.extend(plain.iter().filter(|fact| !fact.starts_with("model_path")));
    expected.push("model_path=org/m");
    expected.sort_unstable();
    assert_eq!(found(&[version(), page("server_info", info), models()]), expected);
}

#[test]
fn tgi_and_llama_cpp_are_known_by_what_they_say() {
    let tgi = json!({"model_id": "org/m", "model_sha": "f00d", "max_concurrent_requests": 128,
        "max_input_tokens": 1024, "max_total_tokens": 2048, "router": "text-generation-router",
        "version": "3.3.6", "docker_label": null});
    assert_eq!(
        found(&[page("info", tgi)]),
        [
            "engine=tgi",
            "engine_version=3.3.6",
            "max_concurrent_requests=128",
            "max_input_tokens=1024",
            "max_model_len=2048",
            "model_path=org/m",
            "model_revision=f00d",
            "router=text-generation-router",
        ]
    );
    let props = json!({"default_generation_settings": {"n_ctx": 2048, "params": {"top_k": 40}},
        "total_slots": 8, "model_path": "m.gguf", "build_info": "b10984-543158132",
        "chat_template": "x".repeat(201), "bos_token": "<s>"});
    let models = json!({"data": [{"id": "rand75m", "owned_by": "llamacpp",
        "meta": {"n_ctx": 2048, "n_ctx_train": 8192, "ftype": "F16"}}]});
    let expected = [
        "engine=llama.cpp",
        "engine_version=b10984-543158132",
        "max_model_len=2048",
        "max_num_seqs=8",
        "model_path=m.gguf",
    ];
    assert_eq!(found(&[page("props", props.clone())]), expected);
    let mut expected = expected.to_vec();
    expected.extend(["owned_by=llamacpp", "quantization=F16"]);
    assert_eq!(found(&[page("props", props), page("models", models)]), expected);
}

#[test]
fn rubbish_stays_small_and_keys_stay_outside() {
    let mut deep = json!({"version": "too deep", "tp_size": 9});
    for _ in 0..100 {
        deep = json!({ "in": deep });
    }
    let wide: serde_json::Map<_, _> = (0..39).map(|n| (format!("f{n:02}"), json!(n))).collect();
    let huge = json!({"list": vec![1; 100_000], "nested": [[1]], "text": "x".repeat(201),
        "short": ["a", "b"], "model_path": "y".repeat(300)});
    let pages = [
        page("version", deep),
        page("info", Value::Object(wide)),
        page("props", huge),
        page("models", json!({"data": []})),
        page("model_info", json!("text")),
    ];
    let facts = merge_pages(&pages, "m");
    assert_eq!(facts.len(), 40);
    assert_eq!(facts["model_path"].chars().count(), LONGEST);
    assert!(!facts.contains_key("tensor_parallel") && !facts.contains_key("text"));
    let keys = json!({
        "a": "sk-abc", "b": "Bearer abc", "c": "https://me:pw@host/x", "d": "hf_abcdef",
        "e": "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE", "f": ["fine", "sk-abc"], "my_tokens": "abc",
        "commit": "0025436eab0556737d615b36a4dd3e1e26e82f3d", "max_tokens": 7,
        "inside": {"secret": 1, "auth": {"x": "y"}},
    });
    assert_eq!(
        found(&[page("info", keys)]),
        ["commit=0025436eab0556737d615b36a4dd3e1e26e82f3d", "max_tokens=7"]
    );
}
