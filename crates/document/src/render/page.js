"use strict";
// Light and dark by hand; without a choice the reader's system decides.
(() => {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const name = () => (button.textContent = isDark() ? "Light" : "Dark");
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  system.addEventListener("change", name);
  name();
})();
// What is under the pointer of a chart, and under the arrow keys where a chart has the focus.
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);
  const hide = () => (tip.hidden = true);
  const show = (lines, x, y) => {
    tip.replaceChildren(
      ...lines.map((line) => {
        const row = document.createElement("div");
        row.textContent = line;
        return row;
      }),
    );
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(Math.max(6, x + 14), innerWidth - width - 6);
    const above = y - height - 12;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 6 ? y + 18 : above}px`;
  };
  const number = (value) => {
    if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(3)));
  };
  // From a place along an axis to its value.
  const value = (share, [low, high, isLog]) =>
    isLog ? low * (high / low) ** share : low + share * (high - low);
  const corners = (path) => {
    const found = [];
    let [x, y] = [0, 0];
    for (const [, command, one, two] of path.matchAll(/([MLHV])(-?[\d.]+)(?: (-?[\d.]+))?/g)) {
      if (command !== "V") x = Number(one);
      if (command === "V") y = Number(one);
      else if (command !== "H") y = Number(two);
      if (command === "V") found.pop();
      found.push([x, y]);
    }
    return found;
  };
  const prepare = (svg) => {
    // Our own sign takes the place of the browser's.
    for (const title of [...svg.querySelectorAll("title")]) {
      if (title.parentNode === svg) {
        const text = document.createElementNS(svg.namespaceURI, "desc");
        text.id = title.id;
        text.textContent = title.textContent;
        title.replaceWith(text);
      } else {
        title.parentNode.dataset.tip = title.textContent;
        title.remove();
      }
    }
    const numbers = (name) => (svg.dataset[name] || "").split(" ").map(Number);
    const [left, right, top, bottom] = numbers("plot");
    const [across, up] = [numbers("x"), numbers("y")];
    const lines = [...svg.querySelectorAll("path[data-name]")]
      .filter((path) => path.dataset.name)
      .map((path) => ({ name: path.dataset.name, at: corners(path.getAttribute("d")) }));
    const marks = [...svg.querySelectorAll("[data-tip]:not(.span)")].map((mark) => {
      const box = mark.getBBox();
      return { text: mark.dataset.tip, x: box.x + box.width / 2, y: box.y };
    });
    const all = [...lines.flatMap((line) => line.at.map(([x]) => x)), ...marks.map((m) => m.x)];
    const stops = [...new Set(all)].sort((a, b) => a - b);
    if (!stops.length) return;
    const cross = document.createElementNS(svg.namespaceURI, "path");
    cross.setAttribute("class", "cross");
    svg.append(cross);
    const scale = () => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const nearest = (list, x, of) =>
      list.reduce((best, one) => (Math.abs(of(one) - x) < Math.abs(of(best) - x) ? one : best), list[0]);
    const at = (x, where) => {
      const close = marks.filter((mark) => Math.abs(mark.x - x) < 0.6).map((mark) => mark.text);
      const values = [];
      for (const line of lines) {
        const point = nearest(line.at, x, (corner) => corner[0]);
        if (!point || Math.abs(point[0] - x) > 8) continue;
        const share = (bottom - point[1]) / (bottom - top);
        values.push(`${line.name}: ${number(value(share, up))}`);
      }
      if (values.length) {
        const place = number(value((x - left) / (right - left), across));
        values.unshift(`${place} ${svg.dataset.xname || ""}`);
      }
      cross.setAttribute("d", top === undefined || isNaN(top) ? "" : `M${x} ${top}V${bottom}`);
      const box = svg.getBoundingClientRect();
      show([...values, ...close], ...(where || [box.left + x * scale(), box.top + 20]));
    };
    const leave = () => {
      cross.removeAttribute("d");
      hide();
    };
    let place = 0;
    svg.tabIndex = 0;
    const point = (event) => {
      const mark = event.target.closest("[data-tip]");
      const where = [event.clientX, event.clientY];
      if (mark && !mark.matches(".span")) {
        cross.removeAttribute("d");
        return show([mark.dataset.tip], ...where);
      }
      const x = (event.clientX - svg.getBoundingClientRect().left) / scale();
      const stop = nearest(stops, x, (stop) => stop);
      if (!lines.length && Math.abs(stop - x) > 12) return leave();
      at(stop, where);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("focus", () => svg.matches(":focus-visible") && at(stops[place]));
    svg.addEventListener("keydown", (event) => {
      const last = stops.length - 1;
      const moves = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: last };
      if (event.key === "Escape") return leave();
      if (!(event.key in moves)) return;
      event.preventDefault();
      place = Math.min(Math.max(moves[event.key], 0), last);
      at(stops[place]);
    });
  };
  document.querySelectorAll("svg.chart").forEach(prepare);
})();
