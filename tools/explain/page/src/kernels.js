// The first screen: all kernels in a table to sort, filter, select and copy.

import { createTable, getCoreRowModel, getFilteredRowModel, getSortedRowModel }
  from "@tanstack/table-core";
import { COLUMNS, textOf } from "./columns.js";
import { kernelDetails } from "./details.js";
import { announce, copyText, html } from "./dom.js";
import { csv, markdown } from "./export.js";
import { seconds, share } from "./format.js";
import { overview } from "./overview.js";
import { kernelKeys, noteRoute } from "./route.js";

const MORE = 100;

export function kernelsView(page, panel) {
  return new KernelTable(page, panel);
}

class KernelTable {
  constructor(page, panel) {
    this.page = page;
    this.keys = kernelKeys(page.kernels);
    this.open = new Set();
    this.selected = new Set();
    this.limit = MORE;
    this.texts = [];
    this.state = { sorting: [{ id: "time", desc: true }], globalFilter: "" };
    this.table = createTable({
      data: page.kernels,
      columns: COLUMNS.map((column) => ({ id: column.id, accessorFn: column.value })),
      state: this.state,
      onStateChange: () => {},
      renderFallbackValue: null,
      globalFilterFn: (row, _, words) => words.every((word) => this.textOf(row.original).includes(word)),
      getColumnCanGlobalFilter: () => true,
      getCoreRowModel: getCoreRowModel(),
      getFilteredRowModel: getFilteredRowModel(),
      getSortedRowModel: getSortedRowModel(),
    });
    this.state = { ...this.table.initialState, ...this.state };
    this.build(panel);
    this.update();
  }

  build(panel) {
    this.filter = html("input", { type: "search", placeholder: "Filter kernels  ( / )",
      "aria-label": "Filter kernels", oninput: () => this.update(MORE) });
    this.sort = html("select", { "aria-label": "Sort by",
      onchange: () => this.sortBy(this.sort.value, this.sort.value !== "name") },
    ...COLUMNS.map((column) => html("option", { value: column.id }, column.title)));
    this.said = html("span", { className: "said" });
    const button = (title, made, what) => html("button", { type: "button",
      onclick: () => copyText(made(this.chosen()), what) }, title);
    this.head = html("tr");
    this.body = html("tbody");
    this.more = html("button", { type: "button", className: "more",
      onclick: () => this.update(this.limit + MORE) });
    panel.append(
      overview(this.page, (kind) => {
        this.filter.value = kind;
        this.update(MORE);
      }),
      html("div", { className: "tools" }, this.filter,
        html("label", { className: "narrow" }, "Sort by ", this.sort), this.said,
        button("Copy Markdown", markdown, "Markdown"), button("Copy CSV", csv, "CSV")),
      html("table", { className: "kernels" },
        html("caption", { className: "hidden" }, "Kernels, the most expensive first"),
        html("thead", {}, this.head), this.body),
      this.more);
    this.body.addEventListener("keydown", (event) => this.key(event));
  }

  update(limit = this.limit) {
    this.limit = limit;
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.state = { ...this.state, globalFilter: words.length ? words : undefined };
    this.table.setOptions((options) => ({ ...options, state: this.state }));
    this.rows = this.table.getRowModel().rows.map((row) => row.original);
    this.drawHead();
    this.body.replaceChildren(...this.rows.slice(0, limit).flatMap((kernel) => this.rowsOf(kernel)));
    this.more.hidden = this.rows.length <= limit;
    this.more.textContent = `Show more: ${this.rows.length - limit} kernels are left`;
    this.tell();
  }

  // What a filter looks into; it is not made before somebody filters.
  textOf(kernel) {
    this.texts[kernel.id] ??= [kernel.kind, ...kernel.ops,
      ...COLUMNS.map((column) => textOf(column, kernel))].join(" ").toLowerCase();
    return this.texts[kernel.id];
  }

  drawHead() {
    const sorted = this.state.sorting[0];
    this.sort.value = sorted.id;
    const cells = COLUMNS.map((column) => html("th", { scope: "col",
      className: column.numeric ? "number" : "", title: column.hint,
      "aria-sort": column.id !== sorted.id ? null : sorted.desc ? "descending" : "ascending" },
    html("button", { type: "button", onclick: () => this.sortBy(column.id) }, column.title)));
    this.head.replaceChildren(html("td"), ...cells);
  }

  sortBy(id, desc) {
    const [now] = this.state.sorting;
    const numeric = COLUMNS.find((column) => column.id === id).numeric === true;
    this.state = { ...this.state,
      sorting: [{ id, desc: desc ?? (now.id === id ? !now.desc : numeric) }] };
    this.update();
    announce(`sorted by ${COLUMNS.find((column) => column.id === id).title}`);
  }

  rowsOf(kernel) {
    const isOpen = this.open.has(kernel.id);
    const box = html("input", { type: "checkbox", checked: this.selected.has(kernel.id),
      "aria-label": `Select ${kernel.name}`, onclick: (event) => event.stopPropagation(),
      onchange: () => this.select(kernel.id, box.checked) });
    const cells = COLUMNS.map((column, index) => {
      const cell = html("td", { className: column.numeric ? `number ${column.id}` : column.id,
        "data-title": column.title });
      // The name opens the row: a button, so that the keyboard gets there.
      cell.append(index ? column.cell(kernel) : html("button", { type: "button", className: "open",
        "aria-expanded": isOpen }, column.cell(kernel)));
      return cell;
    });
    const row = html("tr", { className: isOpen ? "row is-open" : "row",
      "data-kernel": this.keys[kernel.id], onclick: () => this.toggle(kernel) },
    html("td", { className: "pick" }, box), ...cells);
    if (!isOpen) return [row];
    const details = kernelDetails(this.page, kernel, this.keys[kernel.id]);
    return [row, html("tr", { className: "details" },
      html("td", { colSpan: COLUMNS.length + 1 }, details))];
  }

  toggle(kernel, opens = !this.open.has(kernel.id)) {
    if (opens) this.open.add(kernel.id);
    else this.open.delete(kernel.id);
    noteRoute("kernels", opens ? this.keys[kernel.id] : "");
    const row = this.rowOf(kernel);
    if (!row) return this.update();
    if (row.nextSibling?.classList.contains("details")) row.nextSibling.remove();
    const hadFocus = row.contains(document.activeElement);
    row.replaceWith(...this.rowsOf(kernel));
    if (hadFocus) this.rowOf(kernel).querySelector(".open").focus();
    return undefined;
  }

  rowOf(kernel) {
    return this.body.querySelector(`[data-kernel="${CSS.escape(this.keys[kernel.id])}"]`);
  }

  // Up and down go from row to row, as in a list.
  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches(".open")) return;
    const buttons = [...this.body.querySelectorAll(".open")];
    const next = buttons[buttons.indexOf(event.target) + step];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  }

  select(id, isSelected) {
    if (isSelected) this.selected.add(id);
    else this.selected.delete(id);
    this.tell();
  }

  chosen() {
    return this.selected.size ? this.rows.filter((k) => this.selected.has(k.id)) : this.rows;
  }

  tell() {
    const chosen = this.chosen();
    const time = chosen.reduce((sum, kernel) => sum + kernel.time, 0);
    const part = chosen.reduce((sum, kernel) => sum + kernel.share, 0);
    const what = this.selected.size ? `${chosen.length} selected`
      : `${chosen.length} of ${this.page.kernels.length} kernels`;
    this.said.textContent = `${what}: ${seconds(time)}, ${share(part)}`;
  }

  show(item) {
    const id = this.keys.indexOf(item);
    if (id < 0) return;
    const kernel = this.page.kernels[id];
    this.open.add(id);
    if (!this.rows.includes(kernel)) this.filter.value = "";
    this.update(Math.max(this.limit, this.page.kernels.length));
    this.rowOf(kernel)?.scrollIntoView({ block: "start" });
  }
}
