(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("case-data").textContent);
  const columns = data.columns;
  const table = document.getElementById("case-table");
  const body = table.tBodies[0];
  const filters = document.getElementById("case-filters");
  const pager = document.getElementById("case-pager");
  const note = document.getElementById("case-note");
  if (!columns.length) { return; }
  document.documentElement.classList.add("js");

  const isNumber = (column) => column.numbers !== undefined;
  const collator = new Intl.Collator("en", { numeric: true });
  const formats = columns.map((column) => new Intl.NumberFormat("en-US", {
    minimumFractionDigits: column.decimals, maximumFractionDigits: column.decimals }));
  const ranks = columns.map((column) => {
    if (isNumber(column)) { return null; }
    const order = column.texts.map((_, code) => code);
    order.sort((a, b) => collator.compare(column.texts[a], column.texts[b]));
    const places = new Uint32Array(order.length);
    order.forEach((code, place) => { places[code] = place; });
    return places;
  });
  const state = {
    column: columns.findIndex((column) => column.name === data.sorted_by),
    down: false, page: 0, words: "", chosen: new Map(), rows: [],
  };

  const cell = (place, row) => {
    const column = columns[place];
    if (!isNumber(column)) { return column.texts[column.codes[row]]; }
    const value = column.numbers[row];
    return value === null ? "\u2013" : formats[place].format(value).replace("-", "\u2212");
  };

  const tests = () => {
    const found = [];
    state.chosen.forEach((wanted, place) => {
      const column = columns[place];
      const fits = column.texts.map((text) => text === wanted || text.split("; ").includes(wanted));
      found.push((row) => fits[column.codes[row]]);
    });
    const words = state.words.toLowerCase().split(/\s+/).filter((word) => word);
    words.forEach((word) => {
      const texts = columns.filter((column) => !isNumber(column));
      const hits = texts.map((column) => column.texts.map((t) => t.toLowerCase().includes(word)));
      found.push((row) => texts.some((column, k) => hits[k][column.codes[row]]));
    });
    return found;
  };

  const select = () => {
    const all = tests();
    const rows = [];
    for (let row = 0; row < data.n_rows; row += 1) {
      if (all.every((fits) => fits(row))) { rows.push(row); }
    }
    if (state.column >= 0) {
      const column = columns[state.column];
      const sign = state.down ? -1 : 1;
      if (isNumber(column)) {
        const values = column.numbers;
        rows.sort((a, b) => {
          if (values[a] === null || values[b] === null) {
            return (values[a] === null) - (values[b] === null) || a - b;
          }
          return sign * (values[a] - values[b]) || a - b;
        });
      } else {
        const places = ranks[state.column];
        rows.sort((a, b) => sign * (places[column.codes[a]] - places[column.codes[b]]) || a - b);
      }
    }
    state.rows = rows;
    state.page = 0;
  };

  const show = () => {
    const first = state.page * PAGE_ROWS;
    const part = document.createDocumentFragment();
    state.rows.slice(first, first + PAGE_ROWS).forEach((row) => {
      const line = document.createElement("tr");
      columns.forEach((column, place) => {
        const box = document.createElement(place ? "td" : "th");
        if (!place) { box.scope = "row"; }
        box.className = column.style;
        box.textContent = cell(place, row);
        line.append(box);
      });
      part.append(line);
    });
    body.replaceChildren(part);
    table.querySelectorAll("thead th").forEach((head, place) => {
      if (place === state.column) {
        head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      } else {
        head.removeAttribute("aria-sort");
      }
    });
    const n = state.rows.length;
    const last = Math.min(first + PAGE_ROWS, n);
    const of = n === data.n_rows ? "" : ` (of ${data.n_rows.toLocaleString("en-US")} in all)`;
    where.textContent = n
      ? `Rows ${(first + 1).toLocaleString("en-US")} to ${last.toLocaleString("en-US")} of ${n.toLocaleString("en-US")}${of}`
      : `No row fits the filters${of}`;
    const pages = Math.ceil(n / PAGE_ROWS);
    [start, back].forEach((button) => { button.disabled = state.page === 0; });
    [ahead, end].forEach((button) => { button.disabled = state.page >= pages - 1; });
  };

  const renew = () => { select(); show(); };
  const button = (text, label, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    if (label) { made.setAttribute("aria-label", label); }
    made.addEventListener("click", act);
    return made;
  };
  const labelled = (text, control) => {
    const label = document.createElement("label");
    label.append(text, control);
    return label;
  };

  table.querySelectorAll("thead th").forEach((head, place) => {
    const text = head.textContent;
    // A browser that repeats the head on each printed page leaves buttons out.
    const onPaper = document.createElement("span");
    onPaper.className = "on-paper";
    onPaper.textContent = text;
    head.replaceChildren(button(text, "", () => {
      state.down = state.column === place ? !state.down : false;
      state.column = place;
      renew();
    }), onPaper);
  });

  const search = document.createElement("input");
  search.type = "search";
  search.id = "case-search";
  search.placeholder = "case, reason, ...";
  search.addEventListener("input", () => { state.words = search.value; renew(); });
  filters.append(labelled("Search", search));
  const choosers = [];
  columns.forEach((column, place) => {
    if (!column.choices.length) { return; }
    const chooser = document.createElement("select");
    chooser.dataset.column = column.name;
    ["", ...column.choices].forEach((choice) => {
      const option = document.createElement("option");
      option.value = choice;
      option.textContent = choice || "all";
      chooser.append(option);
    });
    chooser.addEventListener("change", () => {
      if (chooser.selectedIndex) { state.chosen.set(place, chooser.value); } else { state.chosen.delete(place); }
      renew();
    });
    choosers.push(chooser);
    filters.append(labelled(column.label, chooser));
  });
  filters.append(button("Clear filters", "", () => {
    search.value = "";
    choosers.forEach((chooser) => { chooser.selectedIndex = 0; });
    state.words = "";
    state.chosen.clear();
    renew();
  }));

  const turn = (page) => { state.page = page; show(); };
  const start = button("\u00ab", "First page", () => turn(0));
  const back = button("\u2039 Previous", "", () => turn(state.page - 1));
  const ahead = button("Next \u203a", "", () => turn(state.page + 1));
  const end = button("\u00bb", "Last page", () => turn(Math.ceil(state.rows.length / PAGE_ROWS) - 1));
  const where = document.createElement("span");
  where.setAttribute("aria-live", "polite");
  pager.append(start, back, where, ahead, end);
  note.textContent = note.textContent.replace(/^The first \d+ of /, "");
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("header details").forEach((details) => { details.open = true; });
  });
  renew();
})();
