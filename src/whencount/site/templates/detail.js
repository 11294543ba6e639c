"use strict";
// One row: how its queries change between two configurations, which most, and which documents move.
(() => {
  const { data, at, element, shown, state, nameOf, value, colour } = window.explorer;
  const Plotly = window.Plotly;
  const texts = window.whencountTexts || {};
  const blocks = new Map();
  const signed = (number, digits = 3) => (number > 0 ? "+" : number < 0 ? "−" : "") + Math.abs(number).toFixed(digits);
  const place = (bits) => data.configurations.indexOf(bits);
  let asked = -1;

  data.comparisons.forEach(([before, after, meaning], number) => {
    at("comparison").append(element("option", after + " against " + before + ": " + meaning, { value: number }));
  });

  // Details are read when a row of their job is first opened.
  function details(row) {
    const block = data.blocks[row];
    if (block === null) return null;
    if (!blocks.has(block)) blocks.set(block, JSON.parse(at("detail-" + block).textContent));
    return blocks.get(block)[row] || null;
  }

  const idOf = (kind, row, number) => data.names[value("collection", row)][kind][number];
  const textOf = (kind, row, id) => ((texts[value("collection", row)] || {})[kind] || {})[id] || "";

  function heads(table, names) {
    const line = element("tr");
    names.forEach(([name, kind]) => line.append(element("th", name, { scope: "col", class: kind })));
    table.tHead.replaceChildren(line);
  }

  function histogram(bins) {
    const width = 2 / bins.length;
    const middle = bins.map((_, number) => -1 + width * (number + 0.5));
    const axis = { gridcolor: colour("rule"), zerolinecolor: colour("soft"), automargin: true, fixedrange: true };
    Plotly.react(at("histogram"), [{ type: "bar", x: middle, y: bins, marker: { color: middle.map((one) => colour(Math.abs(one) < width / 2 ? "seven" : one > 0 ? "good" : "bad")) }, hovertemplate: "%{y} queries around %{x:.2f}<extra></extra>" }],
      { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("ink"), family: "inherit", size: 11 }, margin: { l: 40, r: 8, t: 6, b: 40 }, bargap: 0.08, dragmode: false,
        xaxis: { ...axis, title: { text: "difference in nDCG@10 of a query" }, range: [-1.02, 1.02] }, yaxis: { ...axis, title: { text: "queries" } } },
      { responsive: true, displayModeBar: false });
  }

  function queries(row, found, before, after) {
    heads(at("queries"), [["query", "text"], [before, ""], [after, ""], ["difference", ""], ["text", "text"]]);
    const order = found.q.map((one, number) => [one[1][place(after)] - one[1][place(before)], number]).filter(([change]) => change !== 0)
      .sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    if (!order.some(([, number]) => number === asked)) asked = order.length ? order[0][1] : -1;
    const lines = order.map(([change, number]) => {
      const [query, values] = found.q[number];
      const id = idOf("queries", row, query);
      const line = element("tr", undefined, { "aria-current": String(number === asked) });
      const cell = element("td", undefined, { class: "text" });
      const button = element("button", id, { type: "button", "data-query": number });
      button.addEventListener("click", () => { asked = number; draw(); at("queries").querySelector('[data-query="' + number + '"]').focus(); });
      cell.append(button);
      line.append(cell, element("td", values[place(before)].toFixed(3)), element("td", values[place(after)].toFixed(3)),
        element("td", signed(change), { class: change > 0 ? "up" : "down" }), element("td", textOf("queries", row, id), { class: "long" }));
      return line;
    });
    if (!lines.length) {
      const line = element("tr");
      line.append(element("td", "no query changes", { colspan: 5, class: "text" }));
      lines.push(line);
    }
    at("queries").tBodies[0].replaceChildren(...lines);
  }

  function documents(row, found, before, after) {
    const query = asked < 0 ? null : found.q[asked];
    const id = query ? idOf("queries", row, query[0]) : "";
    const told = textOf("queries", row, id);
    at("asked").textContent = query ? "Query " + id + (told ? ": " + told : "") : "";
    heads(at("documents"), [["document", "text"], ["relevance", ""], ["rank, " + before, ""], ["rank, " + after, ""], ["move", ""], ["text", "text"]]);
    const column = (bits) => 2 + data.ranked.indexOf(bits);
    const [from, to] = [column(before), column(after)];
    const far = (rank) => (rank === 0 ? Infinity : rank);
    const listed = (query ? query[2] : []).filter((one) => (far(one[from]) <= 10 || far(one[to]) <= 10))
      .sort((a, b) => far(a[to]) - far(b[to]) || far(a[from]) - far(b[from]));
    const lines = listed.map((one) => {
      const name = idOf("documents", row, one[0]);
      const line = element("tr");
      const moved = far(one[from]) - far(one[to]);
      const words = one[from] === one[to] ? "stays" : !Number.isFinite(moved) ? (one[from] === 0 ? "enters" : "leaves") : (moved > 0 ? "up " : "down ") + Math.abs(moved);
      line.append(element("td", name, { class: "text" }), element("td", one[1] ? String(one[1]) : "–"), element("td", one[from] || "over 100"), element("td", one[to] || "over 100"),
        element("td", words, { class: one[from] === one[to] ? "" : moved > 0 ? "up" : "down" }), element("td", textOf("documents", row, name), { class: "long" }));
      return line;
    });
    if (!lines.length) {
      const line = element("tr");
      line.append(element("td", query ? "this page has no rankings of this query" : "–", { colspan: 6, class: "text" }));
      lines.push(line);
    }
    at("documents").tBodies[0].replaceChildren(...lines);
  }

  function draw() {
    const row = state.chosen;
    at("detail").hidden = row === null;
    if (row === null) return;
    const [before, after] = data.comparisons[Number(at("comparison").value)];
    at("detail-heading").textContent = nameOf(row);
    at("facts").textContent = data.configurations.map((bits) => bits + " " + shown("q" + bits, row)).join(" · ");
    const found = details(row);
    if (found === null) {
      at("changes").textContent = "This page holds no queries of this row; what it leaves out is told below.";
      for (const id of ["queries", "documents"]) for (const part of [at(id).tHead, at(id).tBodies[0]]) part.replaceChildren();
      at("asked").textContent = "";
      at("histogram").hidden = true;
      return;
    }
    const [better, equal, worse, mean, bins] = found.c[Number(at("comparison").value)];
    at("changes").textContent = "Of " + (better + equal + worse) + " queries " + better + " are better with " + after + " than with " + before + ", " + worse + " worse, " + equal + " equal; mean difference " + signed(mean, 4) + ".";
    at("histogram").hidden = false;
    at("histogram").setAttribute("aria-label", "Histogram of the differences per query; equal ones are left out. " + at("changes").textContent);
    histogram(bins);
    queries(row, found, before, after);
    documents(row, found, before, after);
  }

  function close() {
    const row = state.chosen;
    window.explorer.choose(null);
    if (row !== null) window.explorer.focusRow(row);
  }

  at("comparison").addEventListener("input", draw);
  at("close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.chosen !== null) close(); });
  state.listeners.push((what) => {
    if (what !== "chosen") return;
    asked = -1;
    draw();
    if (state.chosen !== null) at("detail-heading").focus();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.explorer.select();
})();
