"use strict";
// Curves can be hidden one by one.
(() => {
  const box = document.getElementById("toggles");
  const curves = document.getElementById("curves");
  if (!box || !curves) return;
  box.hidden = false;
  box.addEventListener("change", (event) => {
    curves.classList.toggle("hide-" + event.target.dataset.tone, !event.target.checked);
  });
})();
// A run that goes on: the server sends what it sees in its log once a second.
(() => {
  const place = document.getElementById("live");
  if (!place) return;
  const says = document.getElementById("live-says");
  says.textContent = "Waiting for a first look.";
  const most = 300;
  const kept = { rate: [], ttft: [] };
  const number = (value) =>
    typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 }) : "–";
  const show = (name, text) => (document.getElementById("live-" + name).textContent = text);
  const spark = (name, value) => {
    if (typeof value !== "number") return;
    const values = kept[name];
    values.push(value);
    if (values.length > most) values.shift();
    const top = Math.max(...values) * 1.1 || 1;
    const step = 100 / Math.max(values.length - 1, 1);
    const path = values.map((y, i) => (i ? "L" : "M") + (i * step).toFixed(2) + " " + (40 - (y / top) * 40).toFixed(2));
    const ns = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(ns, "svg");
    svg.setAttribute("viewBox", "0 0 100 40");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "now " + number(value) + ", at most " + number(Math.max(...values)));
    const line = document.createElementNS(ns, "path");
    line.setAttribute("d", path.join(""));
    svg.append(line);
    document.getElementById("spark-" + name).replaceChildren(svg);
  };
  const pair = (a, b) => (a == null && b == null ? "–" : number(a) + " and " + number(b));
  const source = new EventSource(place.dataset.live);
  source.addEventListener("look", (event) => {
    const seen = JSON.parse(event.data);
    says.textContent = seen.quiet_s > 10 ? "Nothing new for " + Math.round(seen.quiet_s) + " s: it may have been killed." : "Looked at once a second; figures of the last ten seconds.";
    show("point", seen.point);
    for (const name of ["at_s", "ended", "rate", "output_tps", "in_flight"]) show(name, number(seen[name]));
    show("failed", number(seen.failed) + (seen.known < seen.ended ? " of the last " + number(seen.known) : ""));
    show("server", pair(seen.server_running, seen.server_waiting));
    show("ttft", pair(seen.ttft_p50_ms, seen.ttft_p99_ms));
    show("tpot", pair(seen.tpot_p50_ms, seen.tpot_p99_ms));
    spark("rate", seen.rate);
    spark("ttft", seen.ttft_p50_ms);
  });
  source.addEventListener("over", () => {
    source.close();
    location.reload();
  });
  source.addEventListener("error", () => (says.textContent = "The view does not answer; trying again."));
})();
