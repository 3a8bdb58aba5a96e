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

const fn part(name: &'static str) -> SeriesRef<'static> {
    picked(name, &[])
}

const fn picked(name: &'static str, labels: Pick) -> SeriesRef<'static> {
    SeriesRef { name, labels: Labels::Known(labels), is_minus: false }
}

const fn minus(name: &'static str) -> SeriesRef<'static> {
    SeriesRef { name, labels: Labels::Known(&[]), is_minus: true }
}

const fn at(signal: Signal, parts: Sum) -> FigureSource<'static> {
    scaled(signal, parts, 1.0)
}

const fn scaled(signal: Signal, parts: Sum, scale: f64) -> FigureSource<'static> {
    FigureSource { signal, parts: Parts::Known(parts), count: None, scale }
}

/// A distribution of microseconds of which only sum and number are told.
const fn mean_us(signal: Signal, sum: Sum, count: SeriesRef<'static>) -> FigureSource<'static> {
    FigureSource { signal, parts: Parts::Known(sum), count: Some(count), scale: 1e-6 }
}

static VLLM: &[FigureSource<'static>] = &[
    at(Running, &[part("vllm:num_requests_running")]),
    // Sequences swapped out are gone from its newer versions.
    at(Waiting, &[part("vllm:num_requests_waiting"), part("vllm:num_requests_swapped")]),
    at(KvUsage, &[part("vllm:kv_cache_usage_perc")]),
    at(KvUsage, &[part("vllm:gpu_cache_usage_perc")]),
    at(PrefixHitRate, &[part("vllm:gpu_prefix_cache_hit_rate")]),
    at(SpeculativeAcceptance, &[part("vllm:spec_decode_draft_acceptance_rate")]),
    at(PromptTokens, &[part("vllm:prompt_tokens_total")]),
    at(GenerationTokens, &[part("vllm:generation_tokens_total")]),
    at(PrefixQueries, &[part("vllm:prefix_cache_queries_total")]),
    at(PrefixQueries, &[part("vllm:gpu_prefix_cache_queries_total")]),
    at(PrefixHits, &[part("vllm:prefix_cache_hits_total")]),
    at(PrefixHits, &[part("vllm:gpu_prefix_cache_hits_total")]),
    at(Preemptions, &[part("vllm:num_preemptions_total")]),
    at(RequestsEnded, &[part("vllm:request_success_total")]),
    at(Rejections, &[part("vllm:admission_rejections_total")]),
    at(DraftedTokens, &[part("vllm:spec_decode_num_draft_tokens_total")]),
    at(AcceptedTokens, &[part("vllm:spec_decode_num_accepted_tokens_total")]),
    at(Ttft, &[part("vllm:time_to_first_token_seconds")]),
    at(Itl, &[part("vllm:inter_token_latency_seconds")]),
    // Despite its name it was one value per token.
    at(Itl, &[part("vllm:time_per_output_token_seconds")]),
    at(Tpot, &[part("vllm:request_time_per_output_token_seconds")]),
    at(E2e, &[part("vllm:e2e_request_latency_seconds")]),
    at(QueueTime, &[part("vllm:request_queue_time_seconds")]),
    at(QueueTime, &[part("vllm:time_in_queue_requests")]),
    at(PrefillTime, &[part("vllm:request_prefill_time_seconds")]),
    at(DecodeTime, &[part("vllm:request_decode_time_seconds")]),
    at(StepTokens, &[part("vllm:iteration_tokens_total")]),
];

/// In addition to the totals of its queues, it has one series per priority.
const TOTAL: Pick = &[("priority", "")];

static SGLANG: &[FigureSource<'static>] = &[
    at(Running, &[picked("sglang:num_running_reqs", TOTAL)]),
    // The last four are the queues of servers that split prefill from decoding.
    at(
        Waiting,
        &[
            picked("sglang:num_queue_reqs", TOTAL),
            picked("sglang:num_grammar_queue_reqs", TOTAL),
            picked("sglang:num_prefill_bootstrap_queue_reqs", TOTAL),
            picked("sglang:num_prefill_prealloc_queue_reqs", TOTAL),
            picked("sglang:num_decode_prealloc_queue_reqs", TOTAL),
            picked("sglang:num_decode_transfer_queue_reqs", TOTAL),
        ],
    ),
    at(KvUsage, &[part("sglang:token_usage")]),
    at(PrefixHitRate, &[part("sglang:cache_hit_rate")]),
    at(SpeculativeAcceptance, &[part("sglang:spec_accept_rate")]),
    at(SpeculativeLength, &[part("sglang:spec_accept_length")]),
    at(PromptTokens, &[part("sglang:prompt_tokens_total")]),
    at(GenerationTokens, &[part("sglang:generation_tokens_total")]),
    at(PrefixQueries, &[part("sglang:prompt_tokens_total")]),
    at(PrefixHits, &[part("sglang:cached_tokens_total")]),
    at(Preemptions, &[part("sglang:num_retracted_requests_total")]),
    at(RequestsEnded, &[part("sglang:num_requests_total")]),
    at(Ttft, &[part("sglang:time_to_first_token_seconds")]),
    at(Itl, &[part("sglang:inter_token_latency_seconds")]),
    at(Tpot, &[part("sglang:time_per_output_token_seconds")]),
    at(E2e, &[part("sglang:e2e_request_latency_seconds")]),
    at(QueueTime, &[part("sglang:queue_time_seconds")]),
];

static TGI: &[FigureSource<'static>] = &[
    at(Running, &[part("tgi_batch_current_size")]),
    at(Waiting, &[part("tgi_queue_size")]),
    at(PromptTokens, &[part("tgi_request_input_length_sum")]),
    at(GenerationTokens, &[part("tgi_request_generated_tokens_sum")]),
    at(
        RequestsEnded,
        &[
            part("tgi_request_success"),
            picked("tgi_request_failure", &[("err", "generation")]),
            picked("tgi_request_failure", &[("err", "incomplete")]),
            picked("tgi_request_failure", &[("err", "dropped")]),
        ],
    ),
    at(Rejections, &[picked("tgi_request_failure", &[("err", "overloaded")])]),
    at(PromptSeconds, &[picked("tgi_batch_inference_duration_sum", &[("method", "prefill")])]),
    at(GenerationSeconds, &[picked("tgi_batch_inference_duration_sum", &[("method", "decode")])]),
    at(Tpot, &[part("tgi_request_mean_time_per_token_duration")]),
    at(E2e, &[part("tgi_request_duration")]),
    at(QueueTime, &[part("tgi_request_queue_duration")]),
];

/// As `trtllm-serve` writes them.
static TENSORRT_LLM: &[FigureSource<'static>] = &[
    at(Running, &[part("trtllm_num_requests_running")]),
    at(Waiting, &[part("trtllm_num_requests_waiting")]),
    at(BatchSize, &[part("trtllm_num_scheduled_requests")]),
    at(KvUsage, &[part("trtllm_kv_cache_utilization")]),
    at(PrefixHitRate, &[part("trtllm_kv_cache_hit_rate")]),
    at(SpeculativeLength, &[part("trtllm_spec_decode_acceptance_length")]),
    at(PromptTokens, &[part("trtllm_prompt_tokens_total")]),
    at(GenerationTokens, &[part("trtllm_generation_tokens_total")]),
    at(PrefixQueries, &[part("trtllm_prompt_tokens_total")]),
    at(PrefixHits, &[part("trtllm_prompt_cached_tokens_total")]),
    at(RequestsEnded, &[part("trtllm_request_success_total")]),
    at(RequestsEnded, &[part("trtllm_num_requests_completed_total")]),
    at(
        Rejections,
        &[
            picked("trtllm_request_error_total", &[("http_code", "429")]),
            picked("trtllm_request_error_total", &[("http_code", "503")]),
        ],
    ),
    at(DraftedTokens, &[part("trtllm_spec_decode_num_draft_tokens_total")]),
    at(DraftedTokens, &[part("trtllm_spec_decode_drafted_tokens_total")]),
    at(AcceptedTokens, &[part("trtllm_spec_decode_num_accepted_tokens_total")]),
    at(AcceptedTokens, &[part("trtllm_spec_decode_accepted_tokens_total")]),
    at(Ttft, &[part("trtllm_time_to_first_token_seconds")]),
    at(Tpot, &[part("trtllm_time_per_output_token_seconds")]),
    at(E2e, &[part("trtllm_e2e_request_latency_seconds")]),
    at(QueueTime, &[part("trtllm_request_queue_time_seconds")]),
    at(PrefillTime, &[part("trtllm_request_prefill_time_seconds")]),
    at(DecodeTime, &[part("trtllm_request_decode_time_seconds")]),
];

/// It counts tokens from the cache apart from those that it computed.
const LLAMACPP_PROMPT: Sum =
    &[part("llamacpp:prompt_tokens_total"), part("llamacpp:prompt_tokens_cached_total")];

static LLAMACPP: &[FigureSource<'static>] = &[
    at(Running, &[part("llamacpp:requests_processing")]),
    at(Waiting, &[part("llamacpp:requests_deferred")]),
    at(KvUsage, &[part("llamacpp:kv_cache_usage_ratio")]),
    at(PromptTokens, LLAMACPP_PROMPT),
    at(GenerationTokens, &[part("llamacpp:tokens_predicted_total")]),
    at(PrefixQueries, LLAMACPP_PROMPT),
    at(PrefixHits, &[part("llamacpp:prompt_tokens_cached_total")]),
    at(PromptSeconds, &[part("llamacpp:prompt_seconds_total")]),
    at(GenerationSeconds, &[part("llamacpp:tokens_predicted_seconds_total")]),
    at(DraftedTokens, &[part("llamacpp:spec_decode_num_draft_tokens_total")]),
    at(AcceptedTokens, &[part("llamacpp:spec_decode_num_accepted_tokens_total")]),
];

static LMDEPLOY: &[FigureSource<'static>] = &[
    at(Running, &[part("lmdeploy:num_requests_running")]),
    at(
        Waiting,
        &[part("lmdeploy:num_requests_waiting"), part("lmdeploy:num_api_requests_waiting")],
    ),
    at(KvUsage, &[part("lmdeploy:gpu_cache_usage_perc")]),
    at(PrefixHitRate, &[part("lmdeploy:prefix_cache_hit_rate")]),
    at(PromptTokens, &[part("lmdeploy:prompt_tokens_total")]),
    at(GenerationTokens, &[part("lmdeploy:generation_tokens_total")]),
    // Both count when a request ends.
    at(PrefixQueries, &[part("lmdeploy:request_prompt_tokens_sum")]),
    at(PrefixHits, &[part("lmdeploy:cached_tokens_total")]),
    at(RequestsEnded, &[part("lmdeploy:request_success_total")]),
    at(DraftedTokens, &[part("lmdeploy:spec_decode_num_draft_tokens_total")]),
    at(AcceptedTokens, &[part("lmdeploy:spec_decode_num_accepted_tokens_total")]),
    at(Ttft, &[part("lmdeploy:time_to_first_token_seconds")]),
    at(Itl, &[part("lmdeploy:iter_token_latency")]),
    at(Itl, &[part("lmdeploy:time_per_output_token_seconds")]),
    at(E2e, &[part("lmdeploy:e2e_request_latency_seconds")]),
    at(QueueTime, &[part("lmdeploy:request_queue_time_seconds")]),
    at(PrefillTime, &[part("lmdeploy:request_prefill_time_seconds")]),
    at(DecodeTime, &[part("lmdeploy:request_decode_time_seconds")]),
];

const DYNAMO_QUEUED: &str = "dynamo_frontend_queued_requests";
const GENERATE: Pick = &[("dynamo_endpoint", "generate")];

/// The frontend's page, and those of workers that show no names of their engine.
static DYNAMO: &[FigureSource<'static>] = &[
    // What the frontend has includes what still waits for its first token.
    at(Running, &[part("dynamo_frontend_active_requests"), minus(DYNAMO_QUEUED)]),
    at(Running, &[part("dynamo_frontend_inflight_requests"), minus(DYNAMO_QUEUED)]),
    at(Running, &[picked("dynamo_component_inflight_requests", GENERATE)]),
    at(Waiting, &[part(DYNAMO_QUEUED)]),
    at(KvUsage, &[part("dynamo_component_gpu_cache_usage_percent")]),
    at(KvUsage, &[part("dynamo_component_kvstats_gpu_cache_usage_percent")]),
    at(PromptTokens, &[part("dynamo_frontend_input_sequence_tokens_sum")]),
    at(GenerationTokens, &[part("dynamo_frontend_output_tokens_total")]),
    at(GenerationTokens, &[part("dynamo_frontend_output_sequence_tokens_sum")]),
    at(PrefixQueries, &[part("dynamo_frontend_input_sequence_tokens_sum")]),
    at(PrefixHits, &[part("dynamo_frontend_cached_tokens_sum")]),
    at(RequestsEnded, &[part("dynamo_frontend_requests_total")]),
    at(RequestsEnded, &[picked("dynamo_component_requests_total", GENERATE)]),
    at(Rejections, &[part("dynamo_frontend_model_rejection_total")]),
    at(Ttft, &[part("dynamo_frontend_time_to_first_token_seconds")]),
    at(Itl, &[part("dynamo_frontend_inter_token_latency_seconds")]),
    at(E2e, &[part("dynamo_frontend_request_duration_seconds")]),
    at(E2e, &[picked("dynamo_component_request_duration_seconds", GENERATE)]),
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
    at(Running, &[picked(TRITON_REQUESTS, &[("request_type", "scheduled")])]),
    at(Waiting, &[picked(TRITON_REQUESTS, &[("request_type", "waiting")])]),
    at(Waiting, &[part("nv_inference_pending_request_count")]),
    at(
        KvUsage,
        &[picked("nv_trt_llm_kv_cache_block_metrics", &[("kv_cache_block_type", "fraction")])],
    ),
    // One request passes several models: adding those up would count it several times.
    at(RequestsEnded, &[picked(SUCCESS, ENSEMBLE), picked(FAILURE, ENSEMBLE)]),
    at(RequestsEnded, &[picked(SUCCESS, SCRIPT), picked(FAILURE, SCRIPT)]),
    at(RequestsEnded, &[picked(SUCCESS, ENGINE), picked(FAILURE, ENGINE)]),
    at(RequestsEnded, &[picked(SUCCESS, ALL), picked(FAILURE, ALL)]),
    at(Rejections, &[picked(FAILURE, &[("reason", "REJECTED")])]),
    scaled(Ttft, &[picked("nv_inference_first_response_histogram_ms", ENSEMBLE)], 1e-3),
    scaled(Ttft, &[picked("nv_inference_first_response_histogram_ms", SCRIPT)], 1e-3),
    scaled(Ttft, &[picked("nv_inference_first_response_histogram_ms", ENGINE)], 1e-3),
    scaled(Ttft, &[picked("nv_inference_first_response_histogram_ms", ALL)], 1e-3),
    mean_us(E2e, &[picked(DURATION, ENSEMBLE)], picked(SUCCESS, ENSEMBLE)),
    mean_us(E2e, &[picked(DURATION, SCRIPT)], picked(SUCCESS, SCRIPT)),
    mean_us(E2e, &[picked(DURATION, ENGINE)], picked(SUCCESS, ENGINE)),
    mean_us(E2e, &[picked(DURATION, ALL)], picked(SUCCESS, ALL)),
    mean_us(QueueTime, &[picked(QUEUED, ENGINE)], picked(SUCCESS, ENGINE)),
    mean_us(QueueTime, &[picked(QUEUED, ALL)], picked(SUCCESS, ALL)),
];
