//! The names of every engine, by pages of theirs.

use super::*;

const LLAMACPP: &str = include_str!("../../../tests/pages/llamacpp.txt");

#[test]
fn every_value_of_vllms_page() {
    let mut follower = fresh("vllm:num_requests_running 0\n");
    let reading = follower.read(VLLM);
    assert_eq!(follower.engine(), "vllm");
    assert_eq!((reading.resets, reading.malformed), (0, 0));
    assert_shown(
        &reading,
        &[
            ("running", "0"),
            ("waiting", "0"),
            ("kv_usage", "0"),
            ("prompt_tokens", "51"),
            ("generation_tokens", "31"),
            ("prefix_queries", "51"),
            ("prefix_hits", "0"),
            ("preemptions", "0"),
            ("requests_ended", "4"),
            ("rejections", "0"),
            // 1.0806350708007812 on the page: the same double.
            ("ttft", "n=4 sum=1.0806350708007813 of 23 1<=0.08"),
            ("itl", "n=27 sum=1.4121781719998125 of 20 8<=0.025"),
            ("tpot", "n=4 sum=0.2250499515832985 of 20 1<=0.025"),
            ("e2e", "n=4 sum=2.480645179748535 of 22 1<=0.3"),
            ("queue_time", "n=4 sum=0.0001387719996728265 of 22 4<=0.3"),
            ("prefill_time", "n=4 sum=0.9007663270001558 of 22 3<=0.3"),
            ("decode_time", "n=4 sum=1.4121781719998125 of 22 2<=0.3"),
            ("step_tokens", "n=31 sum=82 of 14 27<=1"),
        ],
    );
    let Some(SignalValue::Buckets(ttft)) = reading.values.get(&Signal::Ttft) else { panic!() };
    assert_eq!(ttft.bounds[7..13], [0.1, 0.25, 0.5, 0.75, 1.0, 2.5]);
    assert_eq!(ttft.cumulative[7..13], [1.0, 2.0, 3.0, 4.0, 4.0, 4.0]);
    assert_eq!(ttft.bounds[22], f64::INFINITY);
    // The first look of all is the beginning.
    let first = EndpointFollower::new(None).read(VLLM);
    assert_eq!(number(&first, Signal::PromptTokens), Some(0.0));
    let Some(SignalValue::Buckets(ttft)) = first.values.get(&Signal::Ttft) else { panic!() };
    assert_eq!((ttft.count, ttft.sum, ttft.cumulative[22]), (0.0, 0.0, 0.0));
}

#[test]
fn every_value_of_llamacpps_page() {
    let mut follower = fresh("llamacpp:requests_processing 0\n");
    let reading = follower.read(LLAMACPP);
    assert_eq!((follower.engine(), reading.malformed), ("llama.cpp", 0));
    assert_shown(
        &reading,
        &[
            ("running", "0"),
            ("waiting", "0"),
            // 17 computed and 13 from the cache.
            ("prompt_tokens", "30"),
            ("generation_tokens", "22"),
            ("prefix_queries", "30"),
            ("prefix_hits", "13"),
            ("drafted_tokens", "0"),
            ("accepted_tokens", "0"),
            ("prompt_seconds", "3.13493"),
            ("generation_seconds", "12.6514"),
        ],
    );
}

#[test]
fn sglang() {
    let mut follower = fresh("sglang:num_running_reqs 0\n");
    let mut page = String::from(
        "sglang:num_running_reqs{model_name=\"m\",priority=\"\",tp_rank=\"0\"} 5.0\n\
         sglang:num_running_reqs{model_name=\"m\",priority=\"1\",tp_rank=\"0\"} 3.0\n\
         sglang:num_queue_reqs{model_name=\"m\"} 2.0\nsglang:num_grammar_queue_reqs{model_name=\"m\"} 1.0\n\
         sglang:token_usage 0.25\nsglang:cache_hit_rate 0.5\nsglang:spec_accept_rate 0.75\n\
         sglang:spec_accept_length 0.0\nsglang:prompt_tokens_total{is_streaming=\"true\"} 100\n\
         sglang:prompt_tokens_total{is_streaming=\"false\"} 20\nsglang:generation_tokens_total 7\n\
         sglang:cached_tokens_total{cache_source=\"device\"} 30\nsglang:cached_tokens_total{cache_source=\"host\"} 10\n\
         sglang:num_retracted_requests_total 2\nsglang:num_requests_total 9\nsglang:gen_throughput 900\n",
    );
    page += &histogram("sglang:time_to_first_token_seconds", "a=\"1\"", "0.1", (1, 3, 0.5));
    page += &histogram("sglang:inter_token_latency_seconds", "", "0.01", (2, 2, 0.01));
    page += &histogram("sglang:queue_time_seconds", "", "0.0", (0, 3, 0.25));
    assert_shown(
        &follower.read(&page),
        &[
            ("running", "5"),
            ("waiting", "3"),
            ("kv_usage", "0.25"),
            ("prefix_hit_rate", "0.5"),
            ("speculative_acceptance", "0.75"),
            ("prompt_tokens", "120"),
            ("generation_tokens", "7"),
            ("prefix_queries", "120"),
            ("prefix_hits", "40"),
            ("preemptions", "2"),
            ("requests_ended", "9"),
            ("ttft", "n=3 sum=0.5 of 2 1<=0.1"),
            ("itl", "n=2 sum=0.01 of 2 2<=0.01"),
            ("queue_time", "n=3 sum=0.25 of 2 3<=inf"),
        ],
    );
    assert_eq!(follower.engine(), "sglang");
}

#[test]
fn tgi() {
    let mut follower = fresh("tgi_queue_size 0\n");
    let mut page = String::from(
        "tgi_batch_current_size 4\ntgi_queue_size 9\ntgi_request_count 20\ntgi_request_success 11\n\
         tgi_request_failure{err=\"overloaded\"} 5\ntgi_request_failure{err=\"dropped\"} 1\n\
         tgi_request_failure{err=\"validation\"} 3\ntgi_batch_inference_duration_sum{method=\"prefill\"} 1.5\n\
         tgi_batch_inference_duration_sum{method=\"decode\"} 4.5\n",
    );
    page += &histogram("tgi_request_input_length", "", "64", (1, 11, 640.0));
    page += &histogram("tgi_request_generated_tokens", "", "64", (11, 11, 66.0));
    page += &histogram("tgi_request_mean_time_per_token_duration", "", "0.1", (11, 11, 0.5));
    page += &histogram("tgi_request_duration", "", "1", (10, 11, 5.0));
    page += &histogram("tgi_request_queue_duration", "", "1", (11, 11, 0.125));
    assert_shown(
        &follower.read(&page),
        &[
            ("running", "4"),
            ("waiting", "9"),
            ("prompt_tokens", "640"),
            ("generation_tokens", "66"),
            ("requests_ended", "12"),
            ("rejections", "5"),
            ("prompt_seconds", "1.5"),
            ("generation_seconds", "4.5"),
            ("tpot", "n=11 sum=0.5 of 2 11<=0.1"),
            ("e2e", "n=11 sum=5 of 2 10<=1"),
            ("queue_time", "n=11 sum=0.125 of 2 11<=1"),
        ],
    );
}

#[test]
fn tensorrt_llm() {
    let mut follower = fresh("trtllm_num_requests_running 0\n");
    let mut page = String::from(
        "trtllm_num_requests_running{engine_type=\"trtllm\"} 6\ntrtllm_num_requests_waiting 1\n\
         trtllm_num_scheduled_requests 5\ntrtllm_kv_cache_utilization 0.5\ntrtllm_kv_cache_hit_rate 0.25\n\
         trtllm_prompt_tokens_total 40\ntrtllm_generation_tokens_total 50\ntrtllm_prompt_cached_tokens_total 8\n\
         trtllm_request_success_total{finished_reason=\"stop\"} 3\ntrtllm_num_requests_completed_total 4\n\
         trtllm_request_error_total{http_code=\"503\"} 2\ntrtllm_request_error_total{http_code=\"400\"} 7\n\
         trtllm_spec_decode_num_draft_tokens_total 12\ntrtllm_spec_decode_num_accepted_tokens_total 9\n\
         trtllm_spec_decode_acceptance_length 2.5\n",
    );
    page += &histogram("trtllm_time_to_first_token_seconds", "", "1", (3, 3, 0.75));
    page += &histogram("trtllm_time_per_output_token_seconds", "", "1", (3, 3, 0.25));
    assert_shown(
        &follower.read(&page),
        &[
            ("running", "6"),
            ("waiting", "1"),
            ("batch_size", "5"),
            ("kv_usage", "0.5"),
            ("prefix_hit_rate", "0.25"),
            ("speculative_length", "2.5"),
            ("prompt_tokens", "40"),
            ("generation_tokens", "50"),
            ("prefix_queries", "40"),
            ("prefix_hits", "8"),
            ("requests_ended", "3"),
            ("rejections", "2"),
            ("drafted_tokens", "12"),
            ("accepted_tokens", "9"),
            ("ttft", "n=3 sum=0.75 of 2 3<=1"),
            ("tpot", "n=3 sum=0.25 of 2 3<=1"),
        ],
    );
    assert_eq!(follower.engine(), "tensorrt-llm");
}

#[test]
fn triton() {
    let mut follower = fresh("nv_inference_pending_request_count 0\n");
    let page = "nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"scheduled\"} 6\n\
        nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"waiting\"} 3\n\
        nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"max\"} 512\n\
        nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\",model=\"tensorrt_llm\"} 0.4875\n\
        nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"used\",model=\"tensorrt_llm\"} 99\n\
        nv_inference_request_success{model=\"ensemble\",version=\"1\"} 4\n\
        nv_inference_request_success{model=\"tensorrt_llm\",version=\"1\"} 5\n\
        nv_inference_request_failure{model=\"ensemble\",reason=\"REJECTED\",version=\"1\"} 2\n\
        nv_inference_request_duration_us{model=\"ensemble\",version=\"1\"} 8000000\n\
        nv_inference_request_duration_us{model=\"tensorrt_llm\",version=\"1\"} 1\n\
        nv_inference_queue_duration_us{model=\"ensemble\",version=\"1\"} 77\n\
        nv_inference_queue_duration_us{model=\"tensorrt_llm\",version=\"1\"} 500000\n";
    let page = page.to_owned()
        + &histogram(
            "nv_inference_first_response_histogram_ms",
            "model=\"x\"",
            "100",
            (1, 4, 500.0),
        );
    assert_shown(
        &follower.read(&page),
        &[
            ("running", "6"),
            ("waiting", "3"),
            ("kv_usage", "0.4875"),
            ("requests_ended", "6"),
            ("rejections", "2"),
            ("ttft", "n=4 sum=0.5 of 2 1<=0.1"),
            ("e2e", "n=4 sum=8 of 0"),
            ("queue_time", "n=5 sum=0.5 of 0"),
        ],
    );
    assert_eq!(follower.engine(), "triton");
}

#[test]
fn dynamo() {
    let mut follower = fresh("dynamo_frontend_inflight_requests 0\n");
    let mut page = String::from(
        "dynamo_frontend_inflight_requests{model=\"m\"} 7\ndynamo_frontend_queued_requests{model=\"m\"} 2\n\
         dynamo_component_gpu_cache_usage_percent 0.5\ndynamo_frontend_output_tokens_total 90\n\
         dynamo_frontend_requests_total{status=\"success\"} 3\ndynamo_frontend_model_rejection_total 1\n",
    );
    page += &histogram("dynamo_frontend_input_sequence_tokens", "", "64", (1, 3, 640.0));
    page += &histogram("dynamo_frontend_cached_tokens", "", "64", (3, 3, 64.0));
    page += &histogram("dynamo_frontend_inter_token_latency_seconds", "", "1", (9, 9, 0.5));
    assert_shown(
        &follower.read(&page),
        &[
            ("running", "5"),
            ("waiting", "2"),
            ("kv_usage", "0.5"),
            ("prompt_tokens", "640"),
            ("generation_tokens", "90"),
            ("prefix_queries", "640"),
            ("prefix_hits", "64"),
            ("requests_ended", "3"),
            ("rejections", "1"),
            ("itl", "n=9 sum=0.5 of 2 9<=1"),
        ],
    );
    assert_eq!(follower.engine(), "dynamo");
    // A worker's page with the names of its engine: those say more, and begin now.
    let worker = "dynamo_component_inflight_requests{dynamo_endpoint=\"generate\"} 3\n\
                  vllm:num_requests_running 2\nvllm:generation_tokens_total 5000\n";
    let reading = follower.read(worker);
    assert_eq!(follower.engine(), "vllm");
    assert_shown(&reading, &[("running", "2"), ("generation_tokens", "90")]);
}

#[test]
fn lmdeploy() {
    let mut follower = fresh("lmdeploy:num_requests_running 0\n");
    let mut page = String::from(
        "lmdeploy:num_requests_running{engine=\"0\"} 1\nlmdeploy:num_requests_waiting 2\n\
         lmdeploy:num_api_requests_waiting 3\nlmdeploy:gpu_cache_usage_perc 0.5\nlmdeploy:cached_tokens_total 16\n\
         lmdeploy:prompt_tokens_total 32\nlmdeploy:request_success_total{finished_reason=\"x\"} 4\n",
    );
    page += &histogram("lmdeploy:iter_token_latency", "", "1", (9, 9, 0.5));
    page += &histogram("lmdeploy:request_prompt_tokens", "", "1", (0, 4, 30.0));
    assert_shown(
        &follower.read(&page),
        &[
            ("running", "1"),
            ("waiting", "5"),
            ("kv_usage", "0.5"),
            ("prompt_tokens", "32"),
            ("prefix_queries", "30"),
            ("prefix_hits", "16"),
            ("requests_ended", "4"),
            ("itl", "n=9 sum=0.5 of 2 9<=1"),
        ],
    );
}

#[test]
fn vllm_before_its_second_engine() {
    let mut follower = fresh("vllm:num_requests_running 0\n");
    let mut page = String::from(
        "vllm:num_requests_waiting 1\nvllm:num_requests_swapped 2\nvllm:gpu_cache_usage_perc 0.75\n\
         vllm:gpu_prefix_cache_queries_total 10\nvllm:gpu_prefix_cache_hits_total 4\n\
         vllm:spec_decode_draft_acceptance_rate 0.5\nvllm:spec_decode_num_draft_tokens_total 6\n",
    );
    page += &histogram("vllm:time_per_output_token_seconds", "", "1", (9, 9, 0.5));
    assert_shown(
        &follower.read(&page),
        &[
            ("waiting", "3"),
            ("kv_usage", "0.75"),
            ("speculative_acceptance", "0.5"),
            ("prefix_queries", "10"),
            ("prefix_hits", "4"),
            ("drafted_tokens", "6"),
            ("itl", "n=9 sum=0.5 of 2 9<=1"),
        ],
    );
}
