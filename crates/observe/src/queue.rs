//! What a server's own gauges say about the requests it has: how many run, how many wait.

use goodput_model::Signal;

use crate::dialect::{DIALECTS, SeriesIndex};
use crate::text::ParsedPage;

/// Requests that a server has at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QueueDepth {
    /// In the batch.
    pub running: f64,
    /// Taken, but not in the batch: new ones, and those that had to leave it.
    pub waiting: f64,
}

impl QueueDepth {
    /// From a page of metrics; `None` where it has no such gauges, or one of them is not a number of
    /// requests. The first engine of which both are there is believed.
    pub fn read(page: &str) -> Option<Self> {
        let page = ParsedPage::parse(page);
        let index = SeriesIndex::new(&page);
        DIALECTS.iter().find_map(|dialect| {
            let running = dialect.gauge(Signal::Running, &index)?;
            let waiting = dialect.gauge(Signal::Waiting, &index)?;
            Some(Self { running, waiting })
        })
    }

    /// Whether it has no request at all.
    pub fn is_empty(self) -> bool {
        self.running == 0.0 && self.waiting == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(page: &str) -> Option<(f64, f64)> {
        QueueDepth::read(page).map(|queue| (queue.running, queue.waiting))
    }

    #[test]
    fn every_engine_is_understood() {
        let cases = [
            // As vLLM 0.32.0 and a llama-server of 2026 write it.
            (
                "# HELP vllm:num_requests_running Number of requests in model execution batches.\n\
                 # TYPE vllm:num_requests_running gauge\n\
                 vllm:num_requests_running{engine=\"0\",model_name=\"rand5m\"} 7.0\n\
                 # TYPE vllm:num_requests_waiting gauge\n\
                 vllm:num_requests_waiting{engine=\"0\",model_name=\"rand5m\"} 2.0\n\
                 vllm:num_requests_waiting_by_reason{engine=\"0\",reason=\"capacity\"} 2.0\n",
                (7.0, 2.0),
            ),
            (
                "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 8\n\
                 # TYPE llamacpp:requests_deferred gauge\nllamacpp:requests_deferred 32\n",
                (8.0, 32.0),
            ),
            // Two engines of one server; the older vLLM had swapped ones too.
            (
                "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 1e1\n\
                 vllm:num_requests_waiting{engine=\"0\"} 0\nvllm:num_requests_waiting{engine=\"1\"} 4\n\
                 vllm:num_requests_swapped{engine=\"0\"} 1\n",
                (13.0, 5.0),
            ),
            (
                "sglang:num_running_reqs{model_name=\"m\"} 5.0\nsglang:num_queue_reqs{model_name=\"m\"} 0.0\n",
                (5.0, 0.0),
            ),
            ("tgi_batch_current_size 4\ntgi_queue_size 9\n", (4.0, 9.0)),
            ("trtllm_num_requests_running 2\ntrtllm_num_requests_waiting 1\n", (2.0, 1.0)),
            (
                "lmdeploy:num_requests_running{engine=\"0\"} 1\nlmdeploy:num_requests_waiting{engine=\"0\"} 0\n",
                (1.0, 0.0),
            ),
            (
                "nv_trt_llm_request_metrics{model=\"m\",request_type=\"context\",version=\"1\"} 1\n\
                 nv_trt_llm_request_metrics{model=\"m\",request_type=\"scheduled\",version=\"1\"} 6\n\
                 nv_trt_llm_request_metrics{model=\"m\", request_type = \"waiting\" ,version=\"1\"} 3\n\
                 nv_trt_llm_request_metrics{model=\"m\",request_type=\"max\",version=\"1\"} 512\n",
                (6.0, 3.0),
            ),
        ];
        for (page, expected) in cases {
            assert_eq!(read(page), Some(expected), "{page}");
        }
        assert!(QueueDepth::default().is_empty());
        assert!(!QueueDepth { running: 0.0, waiting: 1.0 }.is_empty());
        assert!(!QueueDepth { running: 1.0, waiting: 0.0 }.is_empty());
    }

    #[test]
    fn labels_may_hold_anything() {
        let page = "vllm:num_requests_running{model_name=\"a } \\\" b\",x=\"\\\\\"} 3 1700000000000\n\
                    vllm:num_requests_waiting {a=\"} 9\"}\t2 # {trace_id=\"7}\"} 1\n";
        assert_eq!(read(page), Some((3.0, 2.0)));
        // The label's name is part of another's, and of a value.
        let page = "nv_trt_llm_request_metrics{my_request_type=\"scheduled\",request_type=\"max\"} 512\n\
             nv_trt_llm_request_metrics{m=\"request_type\",request_type=\"scheduled\"} 4\n\
             nv_trt_llm_request_metrics{request_type=\"waiting_long\"} 9\n\
             nv_trt_llm_request_metrics{request_type=\"waiting\"} 1\n";
        assert_eq!(read(page), Some((4.0, 1.0)));
    }

    #[test]
    fn what_is_not_said_is_not_guessed() {
        let pages = [
            "",
            "up 1\n",
            // One of the two is missing.
            "vllm:num_requests_running 3\n",
            "vllm:num_requests_waiting 3\n",
            // Another gauge with a longer name.
            "tgi_batch_current_size_max 4\ntgi_queue_size 9\n",
            // Not numbers of requests: an empty engine next to it proves nothing.
            "tgi_batch_current_size NaN\ntgi_queue_size 0\n",
            "tgi_batch_current_size 0\ntgi_queue_size{a=\"1\"} 0\ntgi_queue_size{a=\"2\"} NaN\n",
            "tgi_batch_current_size +Inf\ntgi_queue_size 0\n",
            "tgi_batch_current_size -1\ntgi_queue_size 0\n",
            "tgi_batch_current_size\ntgi_queue_size 0\n",
            "tgi_batch_current_size many\ntgi_queue_size 0\n",
            // Cut off.
            "tgi_batch_current_size{a=\"1\ntgi_queue_size 0\n",
            "tgi_batch_current_size{\n",
        ];
        for page in pages {
            assert_eq!(read(page), None, "{page}");
        }
    }
}
