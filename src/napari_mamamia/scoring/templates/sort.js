"use strict";
(() => {
  const collator = new Intl.Collator("en", { numeric: true });
  const value = (row, place) => row.cells[place].textContent.trim();
  const asNumber = (text) => parseFloat(text.replace(/,/g, "").replace("\u2212", "-"));
  document.querySelectorAll("table").forEach((table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.textContent = head.textContent.trim();
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const isDown = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
        const isDate = (text) => /^\d{4}-\d\d-\d\d$/.test(text);
        const compare = (first, second) => {
          const a = value(first, place);
          const b = value(second, place);
          const [x, y] = [asNumber(a), asNumber(b)];
          if (head.classList.contains("number") && !isDate(a)) {
            if (Number.isNaN(x) || Number.isNaN(y)) { return Number.isNaN(x) - Number.isNaN(y); }
            return isDown ? y - x : x - y;
          }
          return isDown ? collator.compare(b, a) : collator.compare(a, b);
        };
        [...body.rows].sort(compare).forEach((row) => body.append(row));
      });
    });
  });
})();
