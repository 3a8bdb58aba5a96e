// The SLO explorer: other limits, and what they mean for the requests that were measured. Every stop
// of a slider is an edge between exact counts.
(() => {
  const source = document.getElementById("slo-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const by = (name) => document.getElementById("slo-" + name);
  const rows = [...by("table").tBodies[0].rows];
  const heading = document.getElementById("explorer");

  // Numbers in the words of the rest of the page.
  const thousands = (n) => n.toString().replace(/\B(?=(\d{3})+$)/g, ",");
  const amount = (n) => {
    if (!Number.isFinite(n)) return "–";
    if (n > 0 && n < 0.995) return n.toFixed(3);
    return n < 999.95 ? n.toFixed(1) : thousands(Math.round(n));
  };
  const percent = (share) => {
    if (share === 1) return "100 %";
    if (share === 0) return "0 %";
    if (share < 1 && share > 0.9995) return "99.9 %";
    if (share > 0 && share < 0.0005) return "<0.1 %";
    return (share * 100).toFixed(1) + " %";
  };
  const digits = (n) => Number(n.toPrecision(6)).toString();
  const time = (ms) => (ms >= 1000 ? digits(ms / 1000) + " s" : digits(ms) + " ms");
  const money = (n) => (n < 0.0995 ? n.toPrecision(3) : n < 999.95 ? n.toFixed(2) : thousands(Math.round(n)));

  const start = {
    ttft: data.start.ttft,
    tpot: data.start.tpot,
    attainment: data.start.percent,
    price: null,
    gpus: data.gpus || 1,
  };
  const state = { ...start };

  // Requests and tokens of a load that keep both limits.
  const kept = (load) => {
    let good = 0;
    let tokens = 0;
    const cells = load.cells;
    for (let i = 0; i < cells.length; i += 4) {
      if (cells[i] <= state.ttft && cells[i + 1] <= state.tpot) {
        good += cells[i + 2];
        tokens += cells[i + 3];
      }
    }
    const tps = tokens / load.seconds;
    const hourly = state.price === null ? null : state.price * state.gpus;
    return {
      label: load.label,
      share: good / Math.max(load.requests, 1),
      // A percentage has digits that binary fractions miss.
      enough: good * 100 >= state.attainment * load.requests * (1 - 1e-12),
      rps: good / load.seconds,
      tps,
      cost: hourly === null || tps <= 0 ? null : (hourly / 3600 / tps) * 1e6,
    };
  };

  const write = (cell, text, value) => {
    cell.textContent = text;
    if (value === null) delete cell.dataset.value;
    else cell.dataset.value = value;
  };

  // The page's own answer is about the limits that were asked for.
  const isAsAsked = () => ["ttft", "tpot", "attainment"].every((name) => state[name] === start[name]);
  const told = () => (data.answer && isAsAsked() ? data.answer : null);

  // The load of the answer: the page's own, else the highest below which none is missed. One that keeps
  // the limits above one that does not is luck, or a server that changed.
  const place = (all) => {
    const answer = told();
    if (answer) return answer.row === null ? -1 : answer.row;
    const missed = all.findIndex((one) => !one.enough);
    return (missed < 0 ? all.length : missed) - 1;
  };

  const says = (all, at) => {
    const limits = `TTFT below ${time(data.ttft[state.ttft])} and TPOT below ${time(data.tpot[state.tpot])}`;
    const begin = `${limits} for at least ${digits(state.attainment)} %: `;
    const cost = (one) => (one.cost === null ? "" : `, ${money(one.cost)} for a million good output tokens`);
    const figures = (one) => `${amount(one.rps)} good req/s and ${amount(one.tps)} good output tok/s${cost(one)}.`;
    const answer = told();
    if (answer) return `As asked: ${answer.text}${at < 0 ? "." : "; " + figures(all[at])}`;
    if (all.length === 1) {
      const [one] = all;
      return `${begin}${one.enough ? "kept" : "missed"}, ${percent(one.share)} are good; ${figures(one)}`;
    }
    if (at < 0) return `${begin}${all[0].label}, the lowest load that was measured, misses it.`;
    return `${begin}up to ${all[at].label} every load keeps it (as measured, not confirmed); ${figures(all[at])}`;
  };

  const show = () => {
    const all = data.points.map(kept);
    const answer = place(all);
    all.forEach((one, at) => {
      const row = rows[at];
      const [, , share, enough, rps, tps, cost] = row.cells;
      row.classList.toggle("slo-answer", at === answer);
      write(share, percent(one.share), one.share);
      share.style.setProperty("--share", one.share);
      write(enough, one.enough ? "yes" : "no", one.enough);
      enough.className = one.enough ? "good" : "bad";
      write(rps, amount(one.rps), one.rps);
      write(tps, amount(one.tps), one.tps);
      write(cost, one.cost === null ? "–" : money(one.cost), one.cost);
    });
    by("says").textContent = says(all, answer);
    for (const name of ["ttft", "tpot"]) {
      const slider = by(name);
      const text = time(data[name][state[name]]);
      slider.value = state[name];
      slider.setAttribute("aria-valuetext", text);
      slider.nextElementSibling.textContent = text;
    }
  };

  // Fields keep what is being typed into them.
  const fill = () => {
    by("attainment").value = state.attainment;
    by("price").value = state.price === null ? "" : state.price;
    by("gpus").value = state.gpus;
  };

  const number = (text, least, most) => {
    const value = text === "" ? NaN : Number(text);
    return Number.isFinite(value) && value >= least && value <= most ? value : null;
  };

  const nearest = (stops, value) => {
    const apart = (stop) => Math.abs(Math.log(stop / value));
    return stops.reduce((best, stop, at) => (apart(stop) < apart(stops[best]) ? at : best), 0);
  };

  // The state in the address, so that a link shows the same: #slo:ttft=500,tpot=50,attainment=99,price=12
  const address = () => {
    const parts = [
      `ttft=${digits(data.ttft[state.ttft])}`,
      `tpot=${digits(data.tpot[state.tpot])}`,
      `attainment=${digits(state.attainment)}`,
    ];
    if (state.price !== null) parts.push(`price=${digits(state.price)}`);
    if (state.gpus !== start.gpus) parts.push(`gpus=${digits(state.gpus)}`);
    try {
      history.replaceState(null, "", "#slo:" + parts.join(","));
    } catch {
      // Where the address cannot be written, the page still works.
    }
  };

  const read = () => {
    if (!location.hash.startsWith("#slo:")) return false;
    Object.assign(state, start);
    for (const part of location.hash.slice(5).split(",")) {
      const [name, text] = part.split("=");
      const value = number(text || "", 0, 1e9);
      if (value === null) continue;
      if ((name === "ttft" || name === "tpot") && value > 0) state[name] = nearest(data[name], value);
      else if (name === "attainment" && value <= 100) state.attainment = value;
      else if (name === "price") state.price = value;
      else if (name === "gpus" && value > 0) state.gpus = value;
    }
    return true;
  };

  for (const name of ["ttft", "tpot"]) {
    by(name).addEventListener("input", () => {
      state[name] = Number(by(name).value);
      show();
      address();
    });
  }
  const limits = { attainment: [0, 100], price: [0, 1e9], gpus: [1e-9, 1e9] };
  for (const [name, [least, most]] of Object.entries(limits)) {
    by(name).addEventListener("input", () => {
      const value = number(by(name).value, least, most);
      by(name).setAttribute("aria-invalid", value === null && by(name).value !== "");
      state[name] = value === null ? start[name] : value;
      show();
      address();
    });
  }
  by("reset").addEventListener("click", () => {
    Object.assign(state, start);
    fill();
    show();
    address();
  });
  const follow = () => {
    if (!read()) return;
    fill();
    show();
    heading.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  by("set").hidden = false;
  fill();
  show();
  follow();
})();
