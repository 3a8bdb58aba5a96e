//! What a reader would see on a page.

use serde_json::{Value, json};

use super::devtools::{Browser, Tab};
use super::pages::{Explored, Made};

/// Names in our pages.
const CHART: &str = "figure svg.chart";
const DOT: &str = ".dot";
/// Anything that a series is drawn with.
const DRAWN: &str = ".dot, .join, .mark, .band";
const HISTOGRAM: &str = "#histogram-ttft svg";
const BAR: &str = "rect.mark";
/// A place that scrolls by itself may be wider than the page.
const SCROLLS: &str = ".scroll";

/// Widths of a desk and of a phone.
const DESK: u32 = 1200;
const PHONE: u32 = 390;
/// A sheet of A4.
const SHEET: u32 = 794;

/// Looks at a page in every way that it may be shown, and names all that is wrong.
pub(super) fn check(browser: &mut Browser, made: &Made) -> Result<Vec<String>, String> {
    let url = format!("file://{}", made.file.display());
    let tab = browser.open()?;
    show(browser, &tab, DESK, "light")?;
    browser.load(&tab, &url)?;
    let looks: [Look; 6] = [charts, bars, words, hostile, printed, |browser, tab, _| {
        let light = picture(browser, tab, DESK)?;
        show(browser, tab, PHONE, "dark")?;
        let dark = picture(browser, tab, PHONE)?;
        if light < 0.6 || dark > 0.4 {
            return Err(format!(
                "its mean brightness is {light:.2} in light and {dark:.2} in dark"
            ));
        }
        fits(browser, tab)
    }];
    let looks = looks.into_iter().map(|look| look(browser, &tab, made).err());
    let mut wrong: Vec<String> = looks.flatten().collect();
    wrong.extend(quiet(browser, &tab, &url).err());
    Ok(wrong)
}

/// One thing to look at.
type Look = fn(&mut Browser, &Tab, &Made) -> Result<(), String>;

/// As wide as this, in light or dark.
fn show(browser: &mut Browser, tab: &Tab, width: u32, scheme: &str) -> Result<(), String> {
    let is_phone = width == PHONE;
    let size = json!({"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": is_phone});
    browser.tell(tab, "Emulation.setDeviceMetricsOverride", &size)?;
    let media =
        json!({"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]});
    browser.tell(tab, "Emulation.setEmulatedMedia", &media)?;
    Ok(())
}

/// Nothing was said on the console, nothing was asked of anybody, no dialog was opened.
pub(super) fn quiet(browser: &mut Browser, tab: &Tab, url: &str) -> Result<(), String> {
    for event in browser.happened(tab) {
        let of = &event["params"];
        let wrong = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => Some(of["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if of["type"] == "error" || of["type"] == "warning" => {
                Some(of["args"].to_string())
            }
            "Log.entryAdded" if of["entry"]["level"] != "info" => Some(of["entry"].to_string()),
            "Page.javascriptDialogOpening" => Some(format!("a dialog: {}", of["message"])),
            "Network.requestWillBeSent" => {
                let asked = of["request"]["url"].as_str().unwrap_or_default();
                let is_own = asked == url || asked.starts_with("data:");
                (!is_own).then(|| format!("it asks for {asked}"))
            }
            "Network.webSocketCreated" => Some(format!("it asks for {}", of["url"])),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
    }
    Ok(())
}

/// Whether a comparison has no difference to draw: a busy machine made a side void.
fn says_nothing(comparison: &Value) -> bool {
    let is_drawn = |one: &Value| one["is_tested"] == true && one["n"].as_f64() > Some(0.0);
    let findings = comparison["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    comparison["verdict"] == "void" || !findings.iter().any(is_drawn)
}

/// Every chart has something in it and words for it, and those with points have as many as the
/// summary.
fn charts(browser: &mut Browser, tab: &Tab, made: &Made) -> Result<(), String> {
    let script = format!(
        "[...document.querySelectorAll({CHART:?})].map(chart => [
            chart.closest('figure').id,
            chart.querySelectorAll({DRAWN:?}).length,
            chart.querySelectorAll({DOT:?}).length,
            chart.getAttribute('role') === 'img' && (chart.getAttribute('aria-labelledby') ?? '-').split(' ')
                .every(id => document.getElementById(id)?.textContent),
            chart.getBoundingClientRect().height,
        ])"
    );
    let found = browser.look(tab, &script)?;
    let found: Vec<(String, u64, u64, bool, f64)> =
        serde_json::from_value(found).map_err(|error| error.to_string())?;
    let expected = expected(made);
    // A sweep whose every point is void has nothing to draw.
    if found.is_empty() && expected.iter().any(|(_, points)| *points > 0) {
        return Err("it has no charts".to_owned());
    }
    let mut wrong = Vec::new();
    for (name, drawn, _, has_words, height) in &found {
        let is_silent = name == "forest" && says_nothing(&made.summary);
        if (*drawn == 0 && !is_silent) || *height < 100.0 {
            wrong.push(format!("the chart {name} is empty ({drawn} marks, {height} px high)"));
        }
        if !has_words {
            wrong.push(format!("the chart {name} has no text for screen readers"));
        }
    }
    for (name, points) in expected {
        let dots = found.iter().find(|chart| chart.0 == name).map_or(0, |chart| chart.2);
        if dots != points {
            wrong.push(format!("{name} has {dots} points, and the summary has {points}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n    ")) }
}

/// The bars of a histogram are together as high as there are requests.
fn bars(browser: &mut Browser, tab: &Tab, made: &Made) -> Result<(), String> {
    let [Explored { load: None, requests, .. }] = &made.explored[..] else { return Ok(()) };
    let script = format!(
        "(() => {{
            const chart = document.querySelector({HISTOGRAM:?});
            if (!chart) return 0;
            const numbers = name => chart.dataset[name].split(' ').map(Number);
            const [, , top, bottom] = numbers('plot');
            const [low, high] = numbers('y');
            const heights = [...chart.querySelectorAll({BAR:?})].map(bar => bar.height.baseVal.value);
            return heights.reduce((sum, height) => sum + height, 0) / (bottom - top) * (high - low);
        }})()"
    );
    let found = browser.look(tab, &script)?.as_f64().unwrap_or_default();
    let counted = requests.with_ttft() as f64;
    // Heights are rounded to a tenth of a pixel.
    if (found - counted).abs() > 0.5 + counted / 100.0 {
        return Err(format!("the bars of TTFT are {found} requests, and there are {counted}"));
    }
    Ok(())
}

/// Whether a point of a sweep is in its charts.
pub(super) fn is_shown(point: &Value) -> bool {
    let purpose = &point["ask"]["purpose"];
    let because = &point["standing"]["because"];
    let spoiled = ["client", "server_gone", "interrupted"];
    purpose != "warm_up"
        && purpose != "twin"
        && point["figures"]["verdict"] != "void"
        && !spoiled.iter().any(|reason| because == reason)
}

/// Charts of a sweep and how many points each must have, by the summary.
pub(super) fn expected(made: &Made) -> Vec<(&'static str, u64)> {
    let none = Vec::new();
    let points = made.summary["points"].as_array().unwrap_or(&none);
    // Runs at one rate are one point.
    let levels = |figure: &str| {
        let with = points
            .iter()
            .filter(|point| is_shown(point))
            .filter(|it| it["figures"].pointer(figure).is_some_and(|it| !it.is_null()));
        let mut rates: Vec<String> = with.map(|it| it["ask"]["level"].to_string()).collect();
        rates.sort();
        rates.dedup();
        rates.len() as u64
    };
    if points.is_empty() {
        return Vec::new();
    }
    let latency =
        |of: &str| ["p50", "p90", "p99"].map(|p| levels(&format!("/{of}/{p}"))).iter().sum();
    // The best of them has a mark of its own above its point.
    let peak = u64::from(made.summary["curve"]["peak"].is_u64());
    vec![
        ("ttft-over-load", latency("ttft_ms")),
        ("tpot-over-load", latency("tpot_ms")),
        ("e2e-over-load", latency("e2e_ms")),
        ("goodput-over-load", levels("/requests_per_s") + levels("/goodput_rps") + peak),
        ("attainment-over-load", levels("/attainment")),
    ]
}

/// Fields have names, ids are there once, links lead somewhere, and text can be told from what is
/// behind it.
fn words(browser: &mut Browser, tab: &Tab, _: &Made) -> Result<(), String> {
    let script = "(() => {
        const wrong = [];
        const ids = [...document.querySelectorAll('[id]')].map(it => it.id);
        for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push('id twice: ' + id);
        for (const link of document.querySelectorAll('a[href^=\"#\"]'))
            if (!document.getElementById(link.hash.slice(1))) wrong.push('leads nowhere: ' + link.hash);
        for (const field of document.querySelectorAll('input, select, button'))
            if (!(field.labels && field.labels.length) && !field.getAttribute('aria-label') && !field.textContent)
                wrong.push('no name: ' + field.outerHTML.slice(0, 100));
        if (document.querySelectorAll('h1').length !== 1) wrong.push('not one h1');
        if (!document.documentElement.lang) wrong.push('no language');
        return wrong;
    })()";
    let wrong = browser.look(tab, script)?;
    if wrong.as_array().is_some_and(Vec::is_empty) { Ok(()) } else { Err(wrong.to_string()) }
}

/// Foreign text is shown as text, and did nothing.
fn hostile(browser: &mut Browser, tab: &Tab, made: &Made) -> Result<(), String> {
    let script = "[
        window.hostile === undefined,
        document.querySelectorAll('img, svg[onload], iframe, object, embed, link').length,
        [...document.querySelectorAll('*')].filter(it =>
            [...it.attributes].some(a => a.name.startsWith('on'))).length,
        document.body.textContent.includes('<img src=x onerror='),
    ]";
    let found = browser.look(tab, script)?;
    if found != json!([true, 0, 0, made.is_hostile]) {
        return Err(format!(
            "foreign text: did nothing, elements, handlers and shown as text are {found}"
        ));
    }
    Ok(())
}

/// On paper: light whatever the screen is, nothing wider than a sheet, no heading of a table broken into
/// letters.
fn printed(browser: &mut Browser, tab: &Tab, _: &Made) -> Result<(), String> {
    show(browser, tab, SHEET, "dark")?;
    let dark = json!([{"name": "prefers-color-scheme", "value": "dark"}]);
    let print = json!({"media": "print", "features": dark});
    browser.tell(tab, "Emulation.setEmulatedMedia", &print)?;
    let brightness = picture(browser, tab, SHEET)?;
    let script = "(() => {
        const lines = cell => cell.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight);
        const broken = [...document.querySelectorAll('thead th')].filter(cell => lines(cell) > 4);
        return [document.documentElement.scrollWidth, broken.map(cell => cell.textContent)];
    })()";
    let found = browser.look(tab, script)?;
    let (wide, broken): (u32, Vec<String>) =
        serde_json::from_value(found).map_err(|error| error.to_string())?;
    show(browser, tab, DESK, "light")?;
    if brightness < 0.6 || wide > SHEET || !broken.is_empty() {
        return Err(format!(
            "on paper its brightness is {brightness:.2}, its width {wide} px, and these headings are broken: {broken:?}"
        ));
    }
    Ok(())
}

/// Nothing is wider than a phone but what scrolls by itself.
fn fits(browser: &mut Browser, tab: &Tab) -> Result<(), String> {
    let script = format!(
        "(() => {{
            const width = Math.max(innerWidth, document.documentElement.scrollWidth);
            if (width <= {PHONE}) return null;
            const wide = [...document.body.querySelectorAll('*')].filter(it =>
                it.getBoundingClientRect().right > {PHONE} + 1 && !it.closest({SCROLLS:?}));
            return width + ' px: ' + wide.slice(0, 5).map(it => it.outerHTML.slice(0, 120)).join(' | ');
        }})()"
    );
    match browser.look(tab, &script)? {
        Value::Null => Ok(()),
        wide => Err(format!("on a phone it is {wide}")),
    }
}

/// Takes a picture and says how bright it is on the average, from 0 to 1. The browser itself decodes
/// it, in a tab of its own.
fn picture(browser: &mut Browser, tab: &Tab, width: u32) -> Result<f64, String> {
    let shot = browser.tell(tab, "Page.captureScreenshot", &json!({"format": "png"}))?;
    let data = shot["data"].as_str().unwrap_or_default();
    let script = format!(
        "(async () => {{
            const image = new Image();
            image.src = 'data:image/png;base64,{data}';
            await image.decode();
            const canvas = document.createElement('canvas');
            [canvas.width, canvas.height] = [image.width, image.height];
            const paper = canvas.getContext('2d');
            paper.drawImage(image, 0, 0);
            const bytes = paper.getImageData(0, 0, image.width, image.height).data;
            const colors = new Set();
            let sum = 0;
            for (let i = 0; i < bytes.length; i += 4) {{
                sum += bytes[i] * 0.2126 + bytes[i + 1] * 0.7152 + bytes[i + 2] * 0.0722;
                colors.add(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
            }}
            return [image.width, colors.size, sum / 255 / (bytes.length / 4)];
        }})()"
    );
    let desk = browser.open()?;
    let found = browser.look(&desk, &script)?;
    let (wide, colors, brightness): (u32, u32, f64) =
        serde_json::from_value(found).map_err(|error| error.to_string())?;
    // Letters alone have more shades than that.
    if wide != width || colors < 16 {
        return Err(format!("the picture is {wide} px wide and has {colors} colors"));
    }
    Ok(brightness)
}
