"use strict";
// The rows of the page, what a person filters them by, and small helpers of all parts.
window.explorer = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const size = data.blocks.length;
  const labels = new Map([...data.columns.map(([name, label]) => [name, label]), ...data.shown, ...data.filters]);
  const isNumber = (name) => data.numbers[name] !== undefined;

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  // A row's value: a number or null, or a text.
  function value(name, row) {
    if (isNumber(name)) return data.numbers[name][row];
    const column = data.texts[name];
    return column.levels[column.codes[row]];
  }

  function shown(name, row) {
    const found = value(name, row);
    if (found === null) return "–";
    if (typeof found === "string") return found === "" ? "none" : found;
    if (["k1", "b", "seed", "queries"].includes(name) || Number.isInteger(found)) return String(found);
    return found.toFixed(3);
  }

  // What a filter can be set to: single families, numbers by size, texts in their order.
  function options(name) {
    if (isNumber(name)) return [...new Set(data.numbers[name])].filter((one) => one !== null).sort((a, b) => a - b).map(String);
    const levels = data.texts[name].levels;
    return name === "families" ? [...new Set(levels.flatMap((level) => level.split(" ")))].sort() : levels;
  }

  function meets(name, wanted, row) {
    if (wanted === "") return true;
    const found = value(name, row);
    const text = wanted.slice(1);
    return name === "families" ? found.split(" ").includes(text) : String(found) === text;
  }

  const filters = new Map();
  for (const [name, label] of data.filters) {
    const choice = element("select", undefined, { id: "filter-" + name });
    choice.append(element("option", "all", { value: "" }));
    // A mark before the value tells a filter for the empty text from none.
    for (const one of options(name)) choice.append(element("option", one === "" ? "none" : one, { value: "=" + one }));
    const around = element("label", label + " ");
    around.append(choice);
    at("filters").append(around);
    filters.set(name, choice);
  }
  const reset = element("button", "show all", { type: "button", id: "reset" });
  at("filters").append(reset);

  const state = { rows: [], chosen: null, listeners: [] };

  function select() {
    const wanted = [...filters].map(([name, choice]) => [name, choice.value]);
    state.rows = [];
    for (let row = 0; row < size; row += 1) {
      if (wanted.every(([name, one]) => meets(name, one, row))) state.rows.push(row);
    }
    at("count").textContent = state.rows.length.toLocaleString("en") + " of " + size.toLocaleString("en") + " rows";
    for (const listener of state.listeners) listener("rows");
  }

  function choose(row) {
    state.chosen = row;
    for (const listener of state.listeners) listener("chosen");
  }

  function nameOf(row) {
    const parts = ["representation", "collection"].map((name) => shown(name, row));
    const rest = ["budget", "k1", "b", "seed"].filter((name) => labels.has(name)).map((name) => (name === "budget" ? "" : name + " ") + shown(name, row));
    const control = value("control", row);
    return parts.join(" on ") + ", " + rest.join(", ") + (control ? ", " + control : "");
  }

  at("filters").addEventListener("input", select);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  reset.addEventListener("click", () => {
    for (const choice of filters.values()) choice.value = "";
    select();
  });

  return { data, at, size, labels, isNumber, element, value, shown, state, select, choose, nameOf };
})();
