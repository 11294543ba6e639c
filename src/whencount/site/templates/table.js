"use strict";
// The table of rows: sorted by any heading, a page of rows at a time, moved in by arrow keys.
(() => {
  const { data, at, element, isNumber, value, shown, state, choose } = window.explorer;
  const SHOWN = 50;
  const sort = { name: null, falling: false };
  let order = [];
  let start = 0;
  let focused = null;

  const heads = new Map();
  const line = element("tr");
  for (const [name, label] of data.shown) {
    const head = element("th", undefined, { scope: "col", class: isNumber(name) ? "" : "text" });
    const button = element("button", label, { type: "button", "data-column": name });
    button.addEventListener("click", () => {
      sort.falling = sort.name === name ? !sort.falling : isNumber(name) && /^q|gain|margin/.test(name);
      sort.name = name;
      arrange();
    });
    head.append(button);
    heads.set(name, head);
    line.append(head);
  }
  at("table").tHead.append(line);

  // Nothing stands last, whichever way; equal values stay in the order of the study.
  function compare(a, b) {
    const [one, other] = [value(sort.name, a), value(sort.name, b)];
    if (one === other) return a - b;
    if (one === null || other === null) return one === null ? 1 : -1;
    const before = typeof one === "string" ? one.localeCompare(other, "en") : one - other;
    return (sort.falling ? -before : before) || a - b;
  }

  function arrange() {
    order = [...state.rows];
    if (sort.name !== null) order.sort(compare);
    for (const [name, head] of heads) {
      head.setAttribute("aria-sort", name === sort.name ? (sort.falling ? "descending" : "ascending") : "none");
    }
    start = 0;
    draw();
  }

  function draw() {
    const rows = order.slice(start, start + SHOWN);
    if (!rows.includes(focused)) focused = rows.includes(state.chosen) ? state.chosen : rows[0];
    const lines = rows.map((row) => {
      const made = element("tr", undefined, { "data-row": row, tabindex: row === focused ? "0" : "-1", "aria-selected": String(row === state.chosen) });
      for (const [name] of data.shown) made.append(element("td", shown(name, row), { class: isNumber(name) ? "" : "text" }));
      return made;
    });
    at("table").tBodies[0].replaceChildren(...lines);
    at("page").textContent = order.length ? "rows " + (start + 1) + " to " + (start + rows.length) + " of " + order.length.toLocaleString("en") : "no row meets the filters";
    at("before").disabled = start === 0;
    at("after").disabled = start + SHOWN >= order.length;
  }

  function focus(row) {
    focused = row;
    const place = order.indexOf(row);
    if (place < start || place >= start + SHOWN) {
      start = Math.floor(place / SHOWN) * SHOWN;
      draw();
    }
    for (const made of at("table").tBodies[0].rows) {
      const here = Number(made.dataset.row) === row;
      made.tabIndex = here ? 0 : -1;
      if (here) made.focus();
    }
  }

  const body = at("table").tBodies[0];
  body.addEventListener("click", (event) => {
    const made = event.target.closest("tr");
    if (made) {
      focused = Number(made.dataset.row);
      choose(focused);
    }
  });
  body.addEventListener("keydown", (event) => {
    const place = order.indexOf(focused);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -order.length, End: order.length };
    if (event.key === "Enter" || event.key === " ") choose(focused);
    else if (event.key in steps && place >= 0) focus(order[Math.min(order.length - 1, Math.max(0, place + steps[event.key]))]);
    else return;
    event.preventDefault();
  });
  at("before").addEventListener("click", () => { start = Math.max(0, start - SHOWN); draw(); });
  at("after").addEventListener("click", () => { start += SHOWN; draw(); });

  state.listeners.push((what) => {
    if (what === "rows") arrange();
    else {
      for (const made of body.rows) made.setAttribute("aria-selected", String(Number(made.dataset.row) === state.chosen));
    }
  });
  window.explorer.focusRow = (row) => { if (order.includes(row)) focus(row); };
})();
