//! What a server's own counters say about its prefix cache.

/// Prompt tokens that a server has looked up in its cache, and those it found, since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixCache {
    /// Looked up.
    pub queries: u64,
    /// Found.
    pub hits: u64,
}

/// Names of the two counters, by engine: vLLM, vLLM before 0.9, SGLang.
const NAMES: [(&str, &str); 3] = [
    ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"),
    ("vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_hits_total"),
    ("sglang:prompt_tokens_total", "sglang:cached_tokens_total"),
];

impl PrefixCache {
    /// From a page in Prometheus' text form; `None` where it has no such counters.
    pub fn read(page: &str) -> Option<Self> {
        NAMES.iter().find_map(|(queries, hits)| {
            Some(Self { queries: sum(page, queries)?, hits: sum(page, hits)? })
        })
    }

    /// What was added since an earlier look; `None` if the server has started anew.
    pub fn since(self, earlier: Self) -> Option<Self> {
        Some(Self {
            queries: self.queries.checked_sub(earlier.queries)?,
            hits: self.hits.checked_sub(earlier.hits)?,
        })
    }
}

/// The sum of a counter over its labels.
fn sum(page: &str, name: &str) -> Option<u64> {
    let value = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let rest = match rest.strip_prefix('{') {
            // Labels may hold anything but are closed by the last brace.
            Some(labelled) => labelled.rsplit_once('}')?.1,
            None => rest.starts_with(' ').then_some(rest)?,
        };
        let number = rest.split_whitespace().next()?.parse::<f64>().ok()?;
        (0.0..9e15).contains(&number).then_some(number as u64)
    };
    page.lines().filter_map(value).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP vllm:prefix_cache_queries_total Tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"a } b\"} 400.0
vllm:prefix_cache_queries_total{engine=\"1\"} 1e2 1700000000
vllm:prefix_cache_queries_created{engine=\"0\"} 1.7e9
vllm:prefix_cache_hits_total{engine=\"0\"} 160.0
vllm:prefix_cache_hits_total_more 7
";

    #[test]
    fn counters_are_summed_over_engines() {
        let read = PrefixCache::read(PAGE).unwrap();
        assert_eq!(read, PrefixCache { queries: 500, hits: 160 });
        let earlier = PrefixCache { queries: 100, hits: 60 };
        assert_eq!(read.since(earlier), Some(PrefixCache { queries: 400, hits: 100 }));
        assert_eq!(earlier.since(read), None);
    }

    #[test]
    fn other_pages_say_nothing() {
        assert_eq!(PrefixCache::read("up 1\n"), None);
        assert_eq!(PrefixCache::read("vllm:prefix_cache_queries_total NaN"), None);
        assert_eq!(PrefixCache::read("vllm:prefix_cache_queries_total{"), None);
    }
}
