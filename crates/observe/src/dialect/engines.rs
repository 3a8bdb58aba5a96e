//! The engines that are known. The order matters where one page has names of two: an engine's own
//! names say more than those of what it is run by.

use goodput_model::Signal::{
    self, AcceptedTokens, BatchSize, DecodeTime, DraftedTokens, E2e, GenerationSeconds,
    GenerationTokens, Itl, KvUsage, Preemptions, PrefillTime, PrefixHitRate, PrefixHits,
    PrefixQueries, PromptSeconds, PromptTokens, QueueTime, Rejections, RequestsEnded, Running,
    SpeculativeAcceptance, SpeculativeLength, StepTokens, Tpot, Ttft, Waiting,
};

use super::{EngineNames, FigureSource, Labels, Parts, SeriesRef};

type Pick = &'static [(&'static str, &'static str)];
type Sum = &'static [SeriesRef<'static>];

/// All of them.
pub(crate) static DIALECTS: [EngineNames; 8] = [
    EngineNames { name: "vllm", places: VLLM },
    EngineNames { name: "sglang", places: SGLANG },
    EngineNames { name: "tgi", places: TGI },
    EngineNames { name: "tensorrt-llm", places: TENSORRT_LLM },
    EngineNames { name: "llama.cpp", places: LLAMACPP },
    EngineNames { name: "lmdeploy", places: LMDEPLOY },
    EngineNames { name: "dynamo", places: DYNAMO },
    EngineNames { name: "triton", places: TRITON },
];

const fn series_named(name: &'static str) -> SeriesRef<'static> {
    series_with_labels(name, &[])
}

const fn series_with_labels(name: &'static str, labels: Pick) -> SeriesRef<'static> {
    SeriesRef { name, labels: Labels::Known(labels), is_minus: false }
}

const fn subtracted_series(name: &'static str) -> SeriesRef<'static> {
    SeriesRef { name, labels: Labels::Known(&[]), is_minus: true }
}

const fn source(signal: Signal, parts: Sum) -> FigureSource<'static> {
    scaled_source(signal, parts, 1.0)
}

const fn scaled_source(signal: Signal, parts: Sum, scale: f64) -> FigureSource<'static> {
    FigureSource { signal, parts: Parts::Known(parts), count: None, scale }
}

/// A distribution of microseconds of which only sum and number are told.
const fn mean_us_source(
    signal: Signal,
    sum: Sum,
    count: SeriesRef<'static>,
) -> FigureSource<'static> {
    FigureSource { signal, parts: Parts::Known(sum), count: Some(count), scale: 1e-6 }
}

static VLLM: &[FigureSource<'static>] = &[
    source(Running, &[series_named("vllm:num_requests_running")]),
    // Sequences swapped out are gone from its newer versions.
    source(
        Waiting,
        &[series_named("vllm:num_requests_waiting"), series_named("vllm:num_requests_swapped")],
    ),
    source(KvUsage, &[series_named("vllm:kv_cache_usage_perc")]),
    source(KvUsage, &[series_named("vllm:gpu_cache_usage_perc")]),
    source(PrefixHitRate, &[series_named("vllm:gpu_prefix_cache_hit_rate")]),
    source(SpeculativeAcceptance, &[series_named("vllm:spec_decode_draft_acceptance_rate")]),
    source(PromptTokens, &[series_named("vllm:prompt_tokens_total")]),
    source(GenerationTokens, &[series_named("vllm:generation_tokens_total")]),
    source(PrefixQueries, &[series_named("vllm:prefix_cache_queries_total")]),
    source(PrefixQueries, &[series_named("vllm:gpu_prefix_cache_queries_total")]),
    source(PrefixHits, &[series_named("vllm:prefix_cache_hits_total")]),
    source(PrefixHits, &[series_named("vllm:gpu_prefix_cache_hits_total")]),
    source(Preemptions, &[series_named("vllm:num_preemptions_total")]),
    source(RequestsEnded, &[series_named("vllm:request_success_total")]),
    source(Rejections, &[series_named("vllm:admission_rejections_total")]),
    source(DraftedTokens, &[series_named("vllm:spec_decode_num_draft_tokens_total")]),
    source(AcceptedTokens, &[series_named("vllm:spec_decode_num_accepted_tokens_total")]),
    source(Ttft, &[series_named("vllm:time_to_first_token_seconds")]),
    source(Itl, &[series_named("vllm:inter_token_latency_seconds")]),
    // Despite its name it was one value per token.
    source(Itl, &[series_named("vllm:time_per_output_token_seconds")]),
    source(Tpot, &[series_named("vllm:request_time_per_output_token_seconds")]),
    source(E2e, &[series_named("vllm:e2e_request_latency_seconds")]),
    source(QueueTime, &[series_named("vllm:request_queue_time_seconds")]),
    source(QueueTime, &[series_named("vllm:time_in_queue_requests")]),
    source(PrefillTime, &[series_named("vllm:request_prefill_time_seconds")]),
    source(DecodeTime, &[series_named("vllm:request_decode_time_seconds")]),
    source(StepTokens, &[series_named("vllm:iteration_tokens_total")]),
];

/// In addition to the totals of its queues, it has one series per priority.
const TOTAL: Pick = &[("priority", "")];

static SGLANG: &[FigureSource<'static>] = &[
    source(Running, &[series_with_labels("sglang:num_running_reqs", TOTAL)]),
    // The last four are the queues of servers that split prefill from decoding.
    source(
        Waiting,
        &[
            series_with_labels("sglang:num_queue_reqs", TOTAL),
            series_with_labels("sglang:num_grammar_queue_reqs", TOTAL),
            series_with_labels("sglang:num_prefill_bootstrap_queue_reqs", TOTAL),
            series_with_labels("sglang:num_prefill_prealloc_queue_reqs", TOTAL),
            series_with_labels("sglang:num_decode_prealloc_queue_reqs", TOTAL),
            series_with_labels("sglang:num_decode_transfer_queue_reqs", TOTAL),
        ],
    ),
    source(KvUsage, &[series_named("sglang:token_usage")]),
    source(PrefixHitRate, &[series_named("sglang:cache_hit_rate")]),
    source(SpeculativeAcceptance, &[series_named("sglang:spec_accept_rate")]),
    source(SpeculativeLength, &[series_named("sglang:spec_accept_length")]),
    source(PromptTokens, &[series_named("sglang:prompt_tokens_total")]),
    source(GenerationTokens, &[series_named("sglang:generation_tokens_total")]),
    source(PrefixQueries, &[series_named("sglang:prompt_tokens_total")]),
    source(PrefixHits, &[series_named("sglang:cached_tokens_total")]),
    source(Preemptions, &[series_named("sglang:num_retracted_requests_total")]),
    source(RequestsEnded, &[series_named("sglang:num_requests_total")]),
    source(Ttft, &[series_named("sglang:time_to_first_token_seconds")]),
    source(Itl, &[series_named("sglang:inter_token_latency_seconds")]),
    source(Tpot, &[series_named("sglang:time_per_output_token_seconds")]),
    source(E2e, &[series_named("sglang:e2e_request_latency_seconds")]),
    source(QueueTime, &[series_named("sglang:queue_time_seconds")]),
];

static TGI: &[FigureSource<'static>] = &[
    source(Running, &[series_named("tgi_batch_current_size")]),
    source(Waiting, &[series_named("tgi_queue_size")]),
    source(PromptTokens, &[series_named("tgi_request_input_length_sum")]),
    source(GenerationTokens, &[series_named("tgi_request_generated_tokens_sum")]),
    source(
        RequestsEnded,
        &[
            series_named("tgi_request_success"),
            series_with_labels("tgi_request_failure", &[("err", "generation")]),
            series_with_labels("tgi_request_failure", &[("err", "incomplete")]),
            series_with_labels("tgi_request_failure", &[("err", "dropped")]),
        ],
    ),
    source(Rejections, &[series_with_labels("tgi_request_failure", &[("err", "overloaded")])]),
    source(
        PromptSeconds,
        &[series_with_labels("tgi_batch_inference_duration_sum", &[("method", "prefill")])],
    ),
    source(
        GenerationSeconds,
        &[series_with_labels("tgi_batch_inference_duration_sum", &[("method", "decode")])],
    ),
    source(Tpot, &[series_named("tgi_request_mean_time_per_token_duration")]),
    source(E2e, &[series_named("tgi_request_duration")]),
    source(QueueTime, &[series_named("tgi_request_queue_duration")]),
];

/// As `trtllm-serve` writes them.
static TENSORRT_LLM: &[FigureSource<'static>] = &[
    source(Running, &[series_named("trtllm_num_requests_running")]),
    source(Waiting, &[series_named("trtllm_num_requests_waiting")]),
    source(BatchSize, &[series_named("trtllm_num_scheduled_requests")]),
    source(KvUsage, &[series_named("trtllm_kv_cache_utilization")]),
    source(PrefixHitRate, &[series_named("trtllm_kv_cache_hit_rate")]),
    source(SpeculativeLength, &[series_named("trtllm_spec_decode_acceptance_length")]),
    source(PromptTokens, &[series_named("trtllm_prompt_tokens_total")]),
    source(GenerationTokens, &[series_named("trtllm_generation_tokens_total")]),
    source(PrefixQueries, &[series_named("trtllm_prompt_tokens_total")]),
    source(PrefixHits, &[series_named("trtllm_prompt_cached_tokens_total")]),
    source(RequestsEnded, &[series_named("trtllm_request_success_total")]),
    source(RequestsEnded, &[series_named("trtllm_num_requests_completed_total")]),
    source(
        Rejections,
        &[
            series_with_labels("trtllm_request_error_total", &[("http_code", "429")]),
            series_with_labels("trtllm_request_error_total", &[("http_code", "503")]),
        ],
    ),
    source(DraftedTokens, &[series_named("trtllm_spec_decode_num_draft_tokens_total")]),
    source(DraftedTokens, &[series_named("trtllm_spec_decode_drafted_tokens_total")]),
    source(AcceptedTokens, &[series_named("trtllm_spec_decode_num_accepted_tokens_total")]),
    source(AcceptedTokens, &[series_named("trtllm_spec_decode_accepted_tokens_total")]),
    source(Ttft, &[series_named("trtllm_time_to_first_token_seconds")]),
    source(Tpot, &[series_named("trtllm_time_per_output_token_seconds")]),
    source(E2e, &[series_named("trtllm_e2e_request_latency_seconds")]),
    source(QueueTime, &[series_named("trtllm_request_queue_time_seconds")]),
    source(PrefillTime, &[series_named("trtllm_request_prefill_time_seconds")]),
    source(DecodeTime, &[series_named("trtllm_request_decode_time_seconds")]),
];

/// It counts tokens from the cache apart from those that it computed.
const LLAMACPP_PROMPT: Sum = &[
    series_named("llamacpp:prompt_tokens_total"),
    series_named("llamacpp:prompt_tokens_cached_total"),
];

static LLAMACPP: &[FigureSource<'static>] = &[
    source(Running, &[series_named("llamacpp:requests_processing")]),
    source(Waiting, &[series_named("llamacpp:requests_deferred")]),
    source(KvUsage, &[series_named("llamacpp:kv_cache_usage_ratio")]),
    source(PromptTokens, LLAMACPP_PROMPT),
    source(GenerationTokens, &[series_named("llamacpp:tokens_predicted_total")]),
    source(PrefixQueries, LLAMACPP_PROMPT),
    source(PrefixHits, &[series_named("llamacpp:prompt_tokens_cached_total")]),
    source(PromptSeconds, &[series_named("llamacpp:prompt_seconds_total")]),
    source(GenerationSeconds, &[series_named("llamacpp:tokens_predicted_seconds_total")]),
    source(DraftedTokens, &[series_named("llamacpp:spec_decode_num_draft_tokens_total")]),
    source(AcceptedTokens, &[series_named("llamacpp:spec_decode_num_accepted_tokens_total")]),
];

static LMDEPLOY: &[FigureSource<'static>] = &[
    source(Running, &[series_named("lmdeploy:num_requests_running")]),
    source(
        Waiting,
        &[
            series_named("lmdeploy:num_requests_waiting"),
            series_named("lmdeploy:num_api_requests_waiting"),
        ],
    ),
    source(KvUsage, &[series_named("lmdeploy:gpu_cache_usage_perc")]),
    source(PrefixHitRate, &[series_named("lmdeploy:prefix_cache_hit_rate")]),
    source(PromptTokens, &[series_named("lmdeploy:prompt_tokens_total")]),
    source(GenerationTokens, &[series_named("lmdeploy:generation_tokens_total")]),
    // Both count when a request ends.
    source(PrefixQueries, &[series_named("lmdeploy:request_prompt_tokens_sum")]),
    source(PrefixHits, &[series_named("lmdeploy:cached_tokens_total")]),
    source(RequestsEnded, &[series_named("lmdeploy:request_success_total")]),
    source(DraftedTokens, &[series_named("lmdeploy:spec_decode_num_draft_tokens_total")]),
    source(AcceptedTokens, &[series_named("lmdeploy:spec_decode_num_accepted_tokens_total")]),
    source(Ttft, &[series_named("lmdeploy:time_to_first_token_seconds")]),
    source(Itl, &[series_named("lmdeploy:iter_token_latency")]),
    source(Itl, &[series_named("lmdeploy:time_per_output_token_seconds")]),
    source(E2e, &[series_named("lmdeploy:e2e_request_latency_seconds")]),
    source(QueueTime, &[series_named("lmdeploy:request_queue_time_seconds")]),
    source(PrefillTime, &[series_named("lmdeploy:request_prefill_time_seconds")]),
    source(DecodeTime, &[series_named("lmdeploy:request_decode_time_seconds")]),
];

const DYNAMO_QUEUED: &str = "dynamo_frontend_queued_requests";
const GENERATE: Pick = &[("dynamo_endpoint", "generate")];

/// The frontend's page, and those of workers that show no names of their engine.
static DYNAMO: &[FigureSource<'static>] = &[
    // What the frontend has includes what still waits for its first token.
    source(
        Running,
        &[series_named("dynamo_frontend_active_requests"), subtracted_series(DYNAMO_QUEUED)],
    ),
    source(
        Running,
        &[series_named("dynamo_frontend_inflight_requests"), subtracted_series(DYNAMO_QUEUED)],
    ),
    source(Running, &[series_with_labels("dynamo_component_inflight_requests", GENERATE)]),
    source(Waiting, &[series_named(DYNAMO_QUEUED)]),
    source(KvUsage, &[series_named("dynamo_component_gpu_cache_usage_percent")]),
    source(KvUsage, &[series_named("dynamo_component_kvstats_gpu_cache_usage_percent")]),
    source(PromptTokens, &[series_named("dynamo_frontend_input_sequence_tokens_sum")]),
    source(GenerationTokens, &[series_named("dynamo_frontend_output_tokens_total")]),
    source(GenerationTokens, &[series_named("dynamo_frontend_output_sequence_tokens_sum")]),
    source(PrefixQueries, &[series_named("dynamo_frontend_input_sequence_tokens_sum")]),
    source(PrefixHits, &[series_named("dynamo_frontend_cached_tokens_sum")]),
    source(RequestsEnded, &[series_named("dynamo_frontend_requests_total")]),
    source(RequestsEnded, &[series_with_labels("dynamo_component_requests_total", GENERATE)]),
    source(Rejections, &[series_named("dynamo_frontend_model_rejection_total")]),
    source(Ttft, &[series_named("dynamo_frontend_time_to_first_token_seconds")]),
    source(Itl, &[series_named("dynamo_frontend_inter_token_latency_seconds")]),
    source(E2e, &[series_named("dynamo_frontend_request_duration_seconds")]),
    source(E2e, &[series_with_labels("dynamo_component_request_duration_seconds", GENERATE)]),
];

/// The names that models have in the examples of TensorRT-LLM's backend: what clients ask, and the
/// engine behind it.
const ENSEMBLE: Pick = &[("model", "ensemble")];
const SCRIPT: Pick = &[("model", "tensorrt_llm_bls")];
const ENGINE: Pick = &[("model", "tensorrt_llm")];
const ALL: Pick = &[];
const SUCCESS: &str = "nv_inference_request_success";
const FAILURE: &str = "nv_inference_request_failure";
const DURATION: &str = "nv_inference_request_duration_us";
const QUEUED: &str = "nv_inference_queue_duration_us";
const TRITON_REQUESTS: &str = "nv_trt_llm_request_metrics";

static TRITON: &[FigureSource<'static>] = &[
    // What is active and not scheduled waits.
    source(Running, &[series_with_labels(TRITON_REQUESTS, &[("request_type", "scheduled")])]),
    source(Waiting, &[series_with_labels(TRITON_REQUESTS, &[("request_type", "waiting")])]),
    source(Waiting, &[series_named("nv_inference_pending_request_count")]),
    source(
        KvUsage,
        &[series_with_labels(
            "nv_trt_llm_kv_cache_block_metrics",
            &[("kv_cache_block_type", "fraction")],
        )],
    ),
    // One request passes several models: adding those up would count it several times.
    source(
        RequestsEnded,
        &[series_with_labels(SUCCESS, ENSEMBLE), series_with_labels(FAILURE, ENSEMBLE)],
    ),
    source(
        RequestsEnded,
        &[series_with_labels(SUCCESS, SCRIPT), series_with_labels(FAILURE, SCRIPT)],
    ),
    source(
        RequestsEnded,
        &[series_with_labels(SUCCESS, ENGINE), series_with_labels(FAILURE, ENGINE)],
    ),
    source(RequestsEnded, &[series_with_labels(SUCCESS, ALL), series_with_labels(FAILURE, ALL)]),
    source(Rejections, &[series_with_labels(FAILURE, &[("reason", "REJECTED")])]),
    scaled_source(
        Ttft,
        &[series_with_labels("nv_inference_first_response_histogram_ms", ENSEMBLE)],
        1e-3,
    ),
    scaled_source(
        Ttft,
        &[series_with_labels("nv_inference_first_response_histogram_ms", SCRIPT)],
        1e-3,
    ),
    scaled_source(
        Ttft,
        &[series_with_labels("nv_inference_first_response_histogram_ms", ENGINE)],
        1e-3,
    ),
    scaled_source(
        Ttft,
        &[series_with_labels("nv_inference_first_response_histogram_ms", ALL)],
        1e-3,
    ),
    mean_us_source(
        E2e,
        &[series_with_labels(DURATION, ENSEMBLE)],
        series_with_labels(SUCCESS, ENSEMBLE),
    ),
    mean_us_source(
        E2e,
        &[series_with_labels(DURATION, SCRIPT)],
        series_with_labels(SUCCESS, SCRIPT),
    ),
    mean_us_source(
        E2e,
        &[series_with_labels(DURATION, ENGINE)],
        series_with_labels(SUCCESS, ENGINE),
    ),
    mean_us_source(E2e, &[series_with_labels(DURATION, ALL)], series_with_labels(SUCCESS, ALL)),
    mean_us_source(
        QueueTime,
        &[series_with_labels(QUEUED, ENGINE)],
        series_with_labels(SUCCESS, ENGINE),
    ),
    mean_us_source(QueueTime, &[series_with_labels(QUEUED, ALL)], series_with_labels(SUCCESS, ALL)),
];
