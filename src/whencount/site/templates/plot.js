"use strict";
// Any two columns against each other, a point per row; plotly.js draws.
(() => {
  const { data, at, element, isNumber, labels, value, shown, state, choose, nameOf } = window.explorer;
  const Plotly = window.Plotly;
  const COLOURS = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
  const SHAPES = ["circle", "square", "diamond", "triangle-up", "cross", "star"];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  // Plotly reads a few tags in its texts; names from data are no tags.
  const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const CATEGORIES = Object.keys(data.texts);
  let here = -1;

  function offer(choice, chosen) {
    const groups = new Map();
    for (const [name, label, group] of data.columns) {
      if (!groups.has(group)) groups.set(group, element("optgroup", undefined, { label: group }));
      groups.get(group).append(element("option", label, { value: name }));
    }
    const names = element("optgroup", undefined, { label: "Names" });
    for (const name of CATEGORIES) names.append(element("option", labels.get(name) || name, { value: name }));
    choice.append(...groups.values(), names);
    choice.value = chosen;
    if (choice.selectedIndex < 0) choice.selectedIndex = 0;
  }
  offer(at("x"), isNumber("value_cv") ? "value_cv" : "q000");
  offer(at("y"), "gain");
  at("colour").append(element("option", "nothing", { value: "" }));
  for (const name of CATEGORIES) at("colour").append(element("option", labels.get(name) || name, { value: name }));
  at("colour").value = "basis";
  if (at("colour").selectedIndex < 0) at("colour").selectedIndex = 0;

  const drawn = () => state.rows.filter((row) => value(at("x").value, row) !== null && value(at("y").value, row) !== null);
  const place = (name, row) => (isNumber(name) ? value(name, row) : plain(shown(name, row)));

  function layout(x, y) {
    const axis = (name) => ({
      title: { text: plain(labels.get(name) || name) },
      type: isNumber(name) ? "linear" : "category",
      gridcolor: colour("rule"), zerolinecolor: colour("soft"), automargin: true,
    });
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("ink"), family: "inherit" },
      margin: { l: 48, r: 12, t: 34, b: 44 }, xaxis: axis(x), yaxis: axis(y), hovermode: "closest", uirevision: x + " " + y,
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      legend: { orientation: "h", y: -0.2, font: { size: 11 } }, showlegend: at("colour").value !== "",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("soft"), activecolor: colour("ink") },
      hoverlabel: { bgcolor: colour("panel"), font: { color: colour("ink") } },
    };
  }

  function traces(x, y) {
    const by = at("colour").value;
    const groups = new Map();
    for (const row of drawn()) {
      const key = by === "" ? "rows" : shown(by, row);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(row);
    }
    const levels = by === "" ? ["rows"] : data.texts[by].levels.map((level) => level || "none");
    const made = [...groups].sort((a, b) => levels.indexOf(a[0]) - levels.indexOf(b[0])).map(([key, rows]) => {
      const number = Math.max(0, levels.indexOf(key));
      return {
        type: "scatter", mode: "markers", name: plain(key), customdata: rows, x: rows.map((row) => place(x, row)), y: rows.map((row) => place(y, row)),
        text: rows.map((row) => plain(nameOf(row))), hovertemplate: "%{text}<br>%{x}, %{y}<extra></extra>",
        marker: { size: 8, opacity: 0.8, color: colour(COLOURS[number % 8]), symbol: SHAPES[Math.floor(number / 8) % 6] },
      };
    });
    const marked = [[state.chosen, "ink"], [drawn()[here] ?? null, "link"]].filter(([row]) => row !== null && drawn().includes(row));
    made.push({
      type: "scatter", mode: "markers", hoverinfo: "skip", showlegend: false, x: marked.map(([row]) => place(x, row)), y: marked.map(([row]) => place(y, row)),
      marker: { size: 15, symbol: "circle-open", color: marked.map(([, name]) => colour(name)), line: { width: 2.5 } },
    });
    return made;
  }

  function draw() {
    const [x, y] = [at("x").value, at("y").value];
    Plotly.react(at("plot"), traces(x, y), layout(x, y), { responsive: true, displaylogo: false, modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]] });
    at("plot").dataset.points = drawn().length;
  }

  // From point to point, by what the horizontal axis shows.
  function step(by) {
    const x = at("x").value;
    const rows = drawn();
    if (!rows.length) return;
    const sorted = [...rows].sort((a, b) => (isNumber(x) ? value(x, a) - value(x, b) : value(x, a).localeCompare(value(x, b), "en")) || a - b);
    const now = here < 0 ? (by > 0 ? -1 : sorted.length) : sorted.indexOf(rows[here]);
    const row = sorted[Math.min(sorted.length - 1, Math.max(0, now + by))];
    here = rows.indexOf(row);
    at("point").textContent = nameOf(row) + ": " + (labels.get(x) || x) + " " + shown(x, row) + ", " + (labels.get(at("y").value) || at("y").value) + " " + shown(at("y").value, row);
    draw();
  }

  for (const id of ["x", "y", "colour"]) at(id).addEventListener("input", () => { here = -1; draw(); });
  at("plot").addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight") step(1);
    else if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "Enter" && here >= 0) choose(drawn()[here]);
    else return;
    event.preventDefault();
  });
  state.listeners.push((what) => { if (what === "rows") here = -1; draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  at("plot").on("plotly_click", (event) => {
    const row = event.points[0].customdata;
    if (row !== undefined) choose(row);
  });
  window.explorer.colour = colour;
})();
