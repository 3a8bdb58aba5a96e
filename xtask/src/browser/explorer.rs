//! The SLO explorer's numbers against those counted from the table of requests.

use serde_json::json;

use super::devtools::{Browser, Tab};
use super::looks::quiet;
use super::pages::{Explored, Made};
use super::requests::Good;

/// Names in our pages.
const ROWS: &str = "#slo-table tbody tr";
const TTFT: &str = "#slo-ttft";
const TPOT: &str = "#slo-tpot";
/// Columns of the table: the share of good requests, whether that is enough, good requests and their
/// tokens per second, and what a million such tokens cost.
const COLUMNS: [usize; 5] = [2, 3, 4, 5, 6];

/// Chosen by address: the share in percent that must be good, and the price of a GPU for an hour.
const WANTED: (f64, f64) = (40.0, 12.0);

/// What the explorer shows: its limits, its answer, and the load and numbers of each row.
type Shown = (String, String, String, Vec<(String, [Option<String>; 5])>);

/// Moves the limits by address and by keyboard, and counts again each time.
pub(super) fn check(browser: &mut Browser, made: &Made) -> Result<(), String> {
    let Some(first) = made.explored.first() else { return Ok(()) };
    let file = format!("file://{}", made.file.display());
    let tab = browser.open()?;
    if made.summary["goodput"].is_object() {
        browser.load(&tab, &file)?;
        one_answer(browser, &tab)?;
    }
    let middle = first.requests.median_ttft_ms();
    let (wanted, price) = WANTED;
    let address =
        |ttft: f64| format!("{file}#slo:ttft={ttft},tpot=1000,attainment={wanted},price={price}");
    browser.load(&tab, &address(middle))?;
    let half = compare(browser, &tab, made)?;
    browser.load(&tab, &address(10_000.0))?;
    let all = compare(browser, &tab, made)?;
    let none = press(browser, &tab, "Home").and_then(|()| compare(browser, &tab, made))?;
    press(browser, &tab, "End")?;
    compare(browser, &tab, made)?;
    // Otherwise a page that never changes would pass.
    if !(none.requests < half.requests && half.requests < all.requests) {
        let [none, half, all] = [none, half, all].map(|good| good.requests);
        return Err(format!(
            "the limits do not separate the requests: {none}, {half} and {all} are good"
        ));
    }
    quiet(browser, &tab, &file)
}

/// The page's headline and its explorer, which stands as it was asked, give one answer.
fn one_answer(browser: &mut Browser, tab: &Tab) -> Result<(), String> {
    let script =
        "['#answer .sentence', '#slo-says'].map(it => document.querySelector(it).textContent)";
    let found = browser.look(tab, script)?;
    let [headline, says]: [String; 2] =
        serde_json::from_value(found).map_err(|error| format!("the answer: {error}"))?;
    // It begins with a capital in the headline alone.
    let rest: String = headline.chars().skip(1).collect();
    if says.starts_with("As asked: ") && says.contains(&rest) {
        return Ok(());
    }
    Err(format!("the headline says `{headline}` and the explorer `{says}`"))
}

/// A key of the keyboard, on the slider of TTFT.
fn press(browser: &mut Browser, tab: &Tab, key: &str) -> Result<(), String> {
    browser.look(tab, &format!("document.querySelector({TTFT:?}).focus()"))?;
    let code = if key == "Home" { 36 } else { 35 };
    for kind in ["keyDown", "keyUp"] {
        let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
        browser.tell(tab, "Input.dispatchKeyEvent", &event)?;
    }
    Ok(())
}

/// Holds what is shown against what is counted for the limits that are shown; all that is good.
fn compare(browser: &mut Browser, tab: &Tab, made: &Made) -> Result<Good, String> {
    let (ttft, tpot, says, rows) = shown(browser, tab)?;
    let limits = (milliseconds(&ttft)?, milliseconds(&tpot)?);
    if rows.len() != made.explored.len() {
        let counted = made.explored.len();
        return Err(format!("the explorer has {} rows, and there are {counted}", rows.len()));
    }
    answered(&says, &rows)?;
    let mut all = Good { requests: 0, tokens: 0.0 };
    for explored in &made.explored {
        let own = rows.iter().find(|(load, _)| explored.is_named(load));
        let (load, cells) = own.ok_or_else(|| format!("no row for {:?}", explored.load))?;
        let good = explored.requests.good(limits.0, limits.1);
        row(explored, good, cells)
            .map_err(|wrong| format!("TTFT {ttft}, TPOT {tpot}, {load}: {wrong}"))?;
        all.requests += good.requests;
        all.tokens += good.tokens;
    }
    Ok(all)
}

/// Of several loads the answer is the highest below which none is missed.
fn answered(says: &str, rows: &[(String, [Option<String>; 5])]) -> Result<(), String> {
    let [(lowest, _), _, ..] = rows else { return Ok(()) };
    let is_kept = |cells: &[Option<String>; 5]| cells[1].as_deref() == Some("true");
    let kept = rows.iter().take_while(|(_, cells)| is_kept(cells)).last();
    let expected = match kept {
        Some((load, _)) => format!("up to {load} every load keeps it (as measured, not confirmed)"),
        None => format!("{lowest}, the lowest load that was measured, misses it"),
    };
    if says.contains(&expected) { Ok(()) } else { Err(format!("`{says}` is not `{expected}`")) }
}

/// The numbers of one load.
fn row(explored: &Explored, good: Good, cells: &[Option<String>; 5]) -> Result<(), String> {
    // As goodput is: what a stall of this machine spoiled counts neither here nor there.
    let judged = explored.requests.judged() as f64;
    let seconds = judged / explored.rate;
    let share = good.requests as f64 / judged;
    let tokens_per_s = good.tokens / seconds;
    let (wanted, price) = WANTED;
    let numbers = [
        Some(share),
        None,
        Some(good.requests as f64 / seconds),
        Some(tokens_per_s),
        (good.tokens > 0.0).then(|| price / 3600.0 / tokens_per_s * 1e6),
    ];
    for (place, counted) in numbers.into_iter().enumerate().filter(|(place, _)| *place != 1) {
        let found = cells[place].as_deref().map(str::parse::<f64>).and_then(Result::ok);
        let is_same = match (found, counted) {
            (Some(found), Some(counted)) => (found - counted).abs() <= counted.abs() * 1e-9,
            (found, counted) => found == counted,
        };
        if !is_same {
            let column = COLUMNS[place];
            return Err(format!(
                "column {column} of the explorer is {found:?}, counted {counted:?}"
            ));
        }
    }
    let is_enough = share * 100.0 >= wanted;
    if cells[1].as_deref() != Some(if is_enough { "true" } else { "false" }) {
        return Err(format!("{share} is enough for {wanted} %: {:?}", cells[1]));
    }
    Ok(())
}

fn shown(browser: &mut Browser, tab: &Tab) -> Result<Shown, String> {
    let script = format!(
        "(async () => {{
            // What an event starts may come with the next frame.
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
            const limit = name => document.querySelector(name).getAttribute('aria-valuetext');
            const rows = [...document.querySelectorAll({ROWS:?})];
            const says = document.querySelector('#slo-says').textContent;
            return [limit({TTFT:?}), limit({TPOT:?}), says, rows.map(row => [row.cells[0].textContent,
                {COLUMNS:?}.map(at => row.cells[at].dataset.value ?? null)])];
        }})()"
    );
    let found = browser.look(tab, &script)?;
    serde_json::from_value(found).map_err(|error| format!("the explorer: {error}"))
}

/// `250 ms`, `1.5 s`.
fn milliseconds(text: &str) -> Result<f64, String> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a limit"))?;
    match unit {
        "ms" => Ok(number),
        "s" => Ok(number * 1000.0),
        _ => Err(format!("`{text}` is not a limit")),
    }
}
