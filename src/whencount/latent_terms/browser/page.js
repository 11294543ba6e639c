"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const SHOWN = 200;
  const byNumber = new Map(data.features.map((one) => [one.n, one]));
  const textOf = (entries) => entries.map((entry) => data.texts[entry[0]][1]).join("\n").toLowerCase();
  for (const one of data.features) one.text = textOf(one.p) + "\n" + textOf(one.q);

  // What a person sets: the names of categories, and the category of each feature.
  let categories = ["topic", "name", "wording", "unclear"];
  let labels = new Map();
  let chosen = null;
  let shown = SHOWN;
  let found = [];

  const tell = (text) => { at("told").textContent = text; };

  function keep() {
    try {
      localStorage.setItem(data.key, JSON.stringify({ categories, labels: [...labels] }));
    } catch (error) {
      tell("This browser keeps nothing for pages from files; export the CSV before you close the page.");
    }
  }

  function restore() {
    try {
      const kept = JSON.parse(localStorage.getItem(data.key) || "null");
      if (!kept) return;
      categories = kept.categories.map(String);
      labels = new Map(kept.labels.filter(([n]) => byNumber.has(n)).map(([n, name]) => [n, String(name)]));
    } catch (error) {
      tell("What this browser had kept of the page cannot be read; import a CSV instead.");
    }
  }

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  // A text with the stretches [start, end) in which the feature fires set off; offsets count code points.
  function marked(text, spans) {
    const whole = document.createDocumentFragment();
    const points = Array.from(text);
    let place = 0;
    for (const [start, end] of spans) {
      if (start < place || end <= start) continue;
      whole.append(points.slice(place, start).join(""), element("mark", points.slice(start, end).join("")));
      place = end;
    }
    whole.append(points.slice(place).join(""));
    return whole;
  }

  function select() {
    const wanted = at("search").value.trim().toLowerCase();
    const category = at("category-filter").value;
    const least = at("least").value === "" ? 0 : Number(at("least").value);
    const most = at("most").value === "" ? Infinity : Number(at("most").value);
    found = data.features.filter((one) =>
      one.df >= least && one.df <= most &&
      (wanted === "" || one.text.includes(wanted) || String(one.n) === wanted) &&
      (category === "any" || (category === "none" ? !labels.has(one.n) : category === "set" ? labels.has(one.n) : labels.get(one.n) === category.slice(1))));
    const orders = {
      df: (a, b) => b.df - a.df || a.n - b.n,
      rare: (a, b) => a.df - b.df || a.n - b.n,
      w: (a, b) => b.w - a.w || a.n - b.n,
      n: (a, b) => a.n - b.n,
    };
    found.sort(orders[at("order").value]);
    shown = SHOWN;
    list();
  }

  function list() {
    const lines = found.slice(0, shown).map((one) => {
      const line = element("li", undefined, { role: "option", id: "f" + one.n, "aria-selected": String(one.n === chosen) });
      const first = one.p.length ? data.texts[one.p[0][0]][1] : "";
      line.append(element("span", one.n), element("span", first.slice(0, 80)), element("span", labels.get(one.n) || one.df.toLocaleString("en"), { class: labels.has(one.n) ? "set" : "" }));
      line.addEventListener("click", () => choose(one.n));
      return line;
    });
    at("list").replaceChildren(...lines);
    at("more").hidden = found.length <= shown;
    at("count").textContent = found.length.toLocaleString("en") + " of " + data.features.length.toLocaleString("en") + " features, " + labels.size.toLocaleString("en") + " with a category";
    if (chosen !== null && at("f" + chosen)) at("list").setAttribute("aria-activedescendant", "f" + chosen);
    else at("list").removeAttribute("aria-activedescendant");
  }

  function choose(number) {
    const before = chosen === null ? null : at("f" + chosen);
    if (before) before.setAttribute("aria-selected", "false");
    chosen = number;
    const line = at("f" + number);
    if (line) {
      line.setAttribute("aria-selected", "true");
      at("list").setAttribute("aria-activedescendant", line.id);
      line.scrollIntoView({ block: "nearest" });
    }
    detail();
    buttons();
  }

  function examples(title, entries) {
    if (!entries.length) return [];
    const items = entries.map(([number, weight, spans]) => {
      const item = element("li");
      item.append(marked(data.texts[number][1], spans), element("small", data.texts[number][0] + ", weight " + weight.toFixed(2)));
      return item;
    });
    const listed = element("ol");
    listed.append(...items);
    return [element("h3", title), listed];
  }

  function detail() {
    const one = byNumber.get(chosen);
    if (!one) return;
    const facts = element("dl");
    const share = data.documents ? 100 * one.df / data.documents : 0;
    for (const [name, value] of [
      ["documents", one.df.toLocaleString("en") + " (" + share.toPrecision(2) + " %)"],
      ["IDF", one.idf.toFixed(2)],
      ["mean weight", one.w.toFixed(2)],
      ["category", labels.get(one.n) || "none"],
    ]) {
      const pair = element("div");
      pair.append(element("dt", name), element("dd", value));
      facts.append(pair);
    }
    at("detail").replaceChildren(
      element("h2", "Feature " + one.n), facts,
      ...examples("Passages in which it is strongest", one.p),
      ...examples("Queries in which it is strongest", one.q));
  }

  function buttons() {
    const made = categories.map((name, place) => {
      const item = element("li");
      const button = element("button", (place < 9 ? place + 1 + " " : "") + name, { type: "button", "aria-pressed": String(labels.get(chosen) === name) });
      button.addEventListener("click", () => label(name));
      item.append(button);
      return item;
    });
    at("categories").replaceChildren(...made);
    const before = at("category-filter").value || "any";
    at("category-filter").replaceChildren(
      element("option", "any", { value: "any" }), element("option", "without one", { value: "none" }), element("option", "with one", { value: "set" }),
      ...categories.map((name) => element("option", name, { value: "=" + name })));
    at("category-filter").value = before;
    if (at("category-filter").selectedIndex < 0) at("category-filter").value = "any";
  }

  function label(name) {
    if (chosen === null) return tell("Choose a feature first.");
    if (name === null) labels.delete(chosen);
    else labels.set(chosen, name);
    tell("");
    keep();
    list();
    detail();
    buttons();
  }

  function add(name) {
    if (name && !categories.includes(name)) categories.push(name);
    if (name) label(name);
    keep();
    buttons();
  }

  function move(step) {
    if (!found.length) return;
    const place = found.findIndex((one) => one.n === chosen);
    const next = place < 0 ? 0 : Math.min(found.length - 1, Math.max(0, place + step));
    if (next >= shown) { shown += SHOWN; list(); }
    choose(found[next].n);
  }

  const quoted = (value) => '"' + String(value).replaceAll('"', '""') + '"';

  function csv() {
    const lines = [...labels].sort((a, b) => a[0] - b[0]).map(([number, name]) => {
      const one = byNumber.get(number);
      return [number, quoted(name), one.df, one.idf].join(",");
    });
    return ["feature,category,df,idf", ...lines].join("\r\n") + "\r\n";
  }

  function save() {
    const link = element("a", undefined, { download: "features-" + data.model + "-" + data.collection + "-seed" + data.seed + ".csv" });
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    tell("Exported " + labels.size + " categories.");
  }

  // Fields in quotes may hold commas, quotes and line breaks (RFC 4180).
  function parse(text) {
    const rows = [[""]];
    let inside = false;
    for (let place = 0; place < text.length; place += 1) {
      const letter = text[place];
      const row = rows[rows.length - 1];
      if (inside && letter === '"' && text[place + 1] === '"') { row[row.length - 1] += '"'; place += 1; }
      else if (letter === '"') inside = !inside;
      else if (!inside && letter === ",") row.push("");
      else if (!inside && (letter === "\n" || letter === "\r")) { if (letter === "\r" && text[place + 1] === "\n") place += 1; rows.push([""]); }
      else row[row.length - 1] += letter;
    }
    return rows.filter((row) => row.length > 1 || row[0] !== "");
  }

  function load(text) {
    const [head, ...rows] = parse(text.replace(/^\uFEFF/, ""));
    const number = head ? head.indexOf("feature") : -1;
    const category = head ? head.indexOf("category") : -1;
    if (number < 0 || category < 0) return tell("That file has no columns feature and category, so nothing was taken from it.");
    let taken = 0;
    for (const row of rows) {
      const feature = /^\d+$/.test(row[number] || "") ? Number(row[number]) : NaN;
      const name = (row[category] || "").trim();
      if (!byNumber.has(feature) || !name) continue;
      labels.set(feature, name);
      if (!categories.includes(name)) categories.push(name);
      taken += 1;
    }
    keep();
    buttons();
    select();
    detail();
    tell("Imported " + taken + " categories; " + (rows.length - taken) + " lines name no feature of this page or no category.");
  }

  for (const id of ["search", "least", "most", "order", "category-filter"]) at(id).addEventListener("input", select);
  at("filters").addEventListener("submit", (event) => { event.preventDefault(); at("list").focus(); });
  at("add").addEventListener("submit", (event) => {
    event.preventDefault();
    add(at("new-category").value.trim());
    at("new-category").value = "";
    at("list").focus();
  });
  at("more").addEventListener("click", () => { shown += SHOWN; list(); });
  at("export").addEventListener("click", save);
  at("import").addEventListener("change", async (event) => {
    const file = event.target.files[0];
    if (file) load(await file.text());
    event.target.value = "";
  });
  at("forget").addEventListener("click", () => {
    if (!confirm("Take away all categories that were set on this page?")) return;
    labels = new Map();
    keep();
    select();
    detail();
    buttons();
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { at("list").focus(); return; }
    if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
    const digit = /^[0-9]$/.test(event.key) ? Number(event.key) : -1;
    if (event.key === "ArrowDown" || event.key === "j") move(1);
    else if (event.key === "ArrowUp" || event.key === "k") move(-1);
    else if (event.key === "PageDown") move(10);
    else if (event.key === "PageUp") move(-10);
    else if (digit === 0) label(null);
    else if (digit > 0 && categories[digit - 1] !== undefined) label(categories[digit - 1]);
    else if (event.key === "/") at("search").focus();
    else if (event.key === "c") at("new-category").focus();
    else if (event.key === "e") save();
    else return;
    event.preventDefault();
  });

  at("about").textContent += " " + data.features.length.toLocaleString("en") + " of " + data.live.toLocaleString("en") + " live features, " + data.documents.toLocaleString("en") + " documents.";
  restore();
  buttons();
  select();
  if (found.length) choose(found[0].n);
  at("list").focus({ preventScroll: true });
})();
