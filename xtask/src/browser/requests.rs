//! What an SLO means for a run, counted from its table of requests: by nothing that a page is made of.

/// A measured request.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MeasuredRequest {
    is_ok: bool,
    /// False where a stall of this machine spoiled it: the SLO says nothing about it.
    is_judged: bool,
    ttft_ms: Option<f64>,
    /// None if there is only one token, which any limit allows.
    tpot_ms: Option<f64>,
    output_tokens: f64,
}

/// All measured requests.
pub(super) struct MeasuredRequests(Vec<MeasuredRequest>);

/// What keeps two limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Good {
    pub(super) requests: usize,
    pub(super) tokens: f64,
}

impl MeasuredRequests {
    /// Of what `goodput report --format csv` gives.
    pub(super) fn read(csv: &str) -> Result<Self, String> {
        let mut rows = rows(csv).into_iter();
        let head = rows.next().unwrap_or_default();
        let place = |name: &str| {
            let found = head.iter().position(|column| column == name);
            found.ok_or_else(|| format!("the table of requests has no column `{name}`"))
        };
        let [phase, ok, kept] = [place("phase")?, place("ok")?, place("slo_kept")?];
        let [ttft, tpot, tokens] = [place("ttft_ms")?, place("tpot_ms")?, place("output_tokens")?];
        let text = |row: &[String], at: usize| row.get(at).cloned().unwrap_or_default();
        let number = |row: &[String], at: usize| text(row, at).parse().ok();
        let measured =
            rows.filter(|row| text(row, phase) == "measured").map(|row| MeasuredRequest {
                is_ok: text(&row, ok) == "true",
                is_judged: !text(&row, kept).is_empty(),
                ttft_ms: number(&row, ttft),
                tpot_ms: number(&row, tpot),
                output_tokens: number(&row, tokens).unwrap_or_default(),
            });
        Ok(Self(measured.collect()))
    }

    /// How many the SLO says something about.
    pub(super) fn judged(&self) -> usize {
        self.0.iter().filter(|request| request.is_judged).count()
    }

    /// How many have a TTFT.
    pub(super) fn with_ttft(&self) -> usize {
        self.0.iter().filter(|request| request.ttft_ms.is_some()).count()
    }

    /// Those that end well below both limits: that of the run's SLO is one to stay below, as all
    /// others of the page are.
    pub(super) fn good(&self, ttft_ms: f64, tpot_ms: f64) -> Good {
        let keeps = |request: &&MeasuredRequest| {
            request.is_ok
                && request.is_judged
                && request.ttft_ms.is_some_and(|ttft| ttft < ttft_ms)
                && request.tpot_ms.is_none_or(|tpot| tpot < tpot_ms)
        };
        let good: Vec<&MeasuredRequest> = self.0.iter().filter(keeps).collect();
        let tokens = good.iter().map(|request| request.output_tokens).sum();
        Good { requests: good.len(), tokens }
    }

    /// The TTFT that half of them keep.
    pub(super) fn median_ttft_ms(&self) -> f64 {
        let mut all: Vec<f64> = self.0.iter().filter_map(|request| request.ttft_ms).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or_default()
    }
}

/// Rows of comma-separated values; quoted ones may hold anything.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            '\r' if !is_quoted => {}
            _ => cell.push(letter),
        }
    }
    if !cell.is_empty() || !row.is_empty() {
        row.push(cell);
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_within_two_limits() {
        let csv = "index,phase,ok,error,ttft_ms,tpot_ms,output_tokens,slo_kept\r\n\
                   0,warmup,true,,1,1,5,\n\
                   1,measured,true,\"a \"\"b\"\",\nc\",10,2,5,true\n\
                   2,measured,true,,20,3,7,true\n\
                   3,measured,true,,20,,1,false\n\
                   4,measured,false,,5,1,2,false\n\
                   5,measured,false,,,,,false\n\
                   6,measured,true,,20,1,100,\n";
        let all = MeasuredRequests::read(csv).unwrap();
        assert_eq!((all.judged(), all.with_ttft(), all.median_ttft_ms()), (5, 5, 20.0));
        assert_eq!(all.good(10.0, 2.0), Good { requests: 0, tokens: 0.0 });
        assert_eq!(all.good(10.1, 2.1), Good { requests: 1, tokens: 5.0 });
        assert_eq!(all.good(20.1, 2.1), Good { requests: 2, tokens: 6.0 });
        assert_eq!(all.good(20.1, 3.1), Good { requests: 3, tokens: 13.0 });
        assert!(MeasuredRequests::read("index,phase\n").is_err());
    }
}
