//! Where pages outside of OpenAI's API may be.

/// Where something that is not part of OpenAI's API may be, the likeliest first: next to the
/// version segment of the API's path, below it, and at the root of the server.
pub(crate) fn candidate_paths(route: &str) -> Vec<String> {
    let (path, query) = route.split_once('?').map_or((route, None), |(p, q)| (p, Some(q)));
    let (versioned, name) = path.rsplit_once('/').unwrap_or_default();
    let (prefix, last) = versioned.rsplit_once('/').unwrap_or_default();
    let is_version = last.strip_prefix('v').is_some_and(|n| n.parse::<u32>().is_ok());
    let sibling = is_version.then(|| format!("{prefix}/{name}"));
    let mut paths: Vec<String> = Vec::new();
    for candidate in sibling.into_iter().chain([path.to_owned(), format!("/{name}")]) {
        let candidate = match query {
            Some(query) => format!("{candidate}?{query}"),
            None => candidate,
        };
        if !paths.contains(&candidate) {
            paths.push(candidate);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_tried_once() {
        let cases: [(&str, &[&str]); 4] = [
            ("/v1/tokenize", &["/tokenize", "/v1/tokenize"]),
            ("/llm/v1/tokenize", &["/llm/tokenize", "/llm/v1/tokenize", "/tokenize"]),
            ("/v1beta/openai/tokenize", &["/v1beta/openai/tokenize", "/tokenize"]),
            ("/v1/tokenize?k=1", &["/tokenize?k=1", "/v1/tokenize?k=1"]),
        ];
        for (route, expected) in cases {
            assert_eq!(candidate_paths(route), expected, "{route}");
        }
    }
}
