// Numbers as people read them, elements, and a table that sorts by a click on its head.
const D = JSON.parse(document.getElementById("data").textContent);
const T = D.texts;
const $ = id => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawn(tag, attributes = {}, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  if (text !== undefined) made.textContent = text;
  return made;
}

function scaled(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base && unit < units.length - 1) { value /= base; ++unit; }
  const digits = value === 0 || Math.abs(value) >= 100 || (unit === 0 && Number.isInteger(value)) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits) + " " + units[unit];
}
const bytesText = value => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const trafficText = value => scaled(value, 1000, ["B", "kB", "MB", "GB", "TB"]);
const flopsText = value => scaled(value, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"]);
const msText = value => value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toPrecision(2);

/* columns: {title, value(row) to sort by, text(row) or cell(row) to show, isNumber, isWide} */
function sortableTable(holder, columns, rows, first, most = 400) {
  let by = first, isDescending = columns[first].isNumber, shown = most;
  const head = element("tr"), body = element("tbody");
  columns.forEach((column, index) => {
    const button = element("button", {type: "button"}, column.title);
    button.onclick = () => {
      isDescending = by === index ? !isDescending : Boolean(column.isNumber);
      by = index;
      fill();
    };
    head.append(element("th", {class: column.isNumber ? "number" : "", scope: "col"}, button));
  });
  function fill() {
    const value = columns[by].value;
    const sorted = rows.map((row, index) => [row, index]).sort(([a, i], [b, j]) => {
      const x = value(a), y = value(b), order = x < y ? -1 : x > y ? 1 : 0;
      return (isDescending ? -order : order) || i - j;
    });
    [...head.children].forEach((cell, index) => cell.setAttribute("aria-sort", index !== by ? "none" : isDescending ? "descending" : "ascending"));
    body.replaceChildren(...sorted.slice(0, shown).map(([row]) => element("tr", {}, ...columns.map(column =>
      element("td", {class: column.isNumber ? "number" : column.isWide ? "wide" : ""}, column.cell ? column.cell(row) : column.text(row))))));
    if (rows.length > shown) {
      const more = element("button", {type: "button"}, `show ${rows.length - shown} more`);
      more.onclick = () => { shown = rows.length; fill(); };
      body.append(element("tr", {}, element("td", {colspan: columns.length}, more)));
    }
  }
  fill();
  holder.replaceChildren(element("table", {}, element("thead", {}, head), body));
}

function choices(select, names, chosen = 0) {
  select.replaceChildren(...names.map((name, index) => element("option", {value: index}, name)));
  select.value = chosen;
}

function tip(event, text) {
  const box = $("tip");
  box.style.display = text ? "block" : "none";
  if (!text) return;
  box.textContent = text;
  box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 4)) + "px";
  box.style.top = Math.max(4, Math.min(event.clientY + 16, innerHeight - box.offsetHeight - 4)) + "px";
}

// Kernels of one program: launches by themselves, or equal ones together.
function kernelRows(program, isGrouped) {
  const l = program.launches, groups = new Map(), rows = [];
  for (let i = 0; i < l.kernel.length; ++i) {
    const key = isGrouped ? `${l.ops[i]} ${l.shape[i]} ${l.types[i]}` : i;
    let row = groups.get(key);
    if (!row) {
      row = {at: i, count: 0, flops: 0, bytes: 0, bound: 0, ms: 0, names: new Set(), kernel: T[l.kernel[i]], ops: T[l.ops[i]], shape: T[l.shape[i]],
        types: T[l.types[i]], by: l.by[i] ? "memory" : "compute"};
      groups.set(key, row);
      rows.push(row);
    }
    ++row.count;
    row.flops += l.flops[i]; row.bytes += l.bytes[i]; row.bound += l.bound[i]; row.ms += l.ms ? l.ms[i] : 0;
    row.names.add(T[l.name[i]]);
  }
  for (const row of rows) {
    const names = [...row.names];
    row.name = names.length > 2 ? `${names[0]} … and ${names.length - 1} more` : names.join(", ");
    row.search = `${row.kernel} ${row.ops} ${row.shape} ${row.types} ${names.join(" ")}`.toLowerCase();
  }
  return rows;
}

function showKernels() {
  const program = D.programs[$("kernel-program").value], isGrouped = $("kernel-group").checked, words = $("kernel-find").value.toLowerCase();
  const all = kernelRows(program, isGrouped), isMeasured = Boolean(program.launches.ms);
  const total = all.reduce((sum, row) => sum + (isMeasured ? row.ms : row.bound), 0) || 1;
  const flops = all.reduce((sum, row) => sum + row.flops, 0), bytes = all.reduce((sum, row) => sum + row.bytes, 0);
  const least = all.reduce((sum, row) => sum + row.bound, 0);
  $("kernel-note").textContent = `${program.launches.kernel.length} launches, ${flopsText(flops)}, ${trafficText(bytes)}; at least ${msText(least)} ms on ` +
    `${D.device.name} (f32 ${D.device.f32.toFixed(0)}, bf16 ${D.device.bf16.toFixed(0)} GFLOP/s, ${D.device.memory.toFixed(0)} GB/s)` +
    (isMeasured ? `; measured ${msText(total)} ms` : "");
  const share = row => (isMeasured ? row.ms : row.bound) / total;
  const times = isMeasured ? [
    {title: "Measured ms", isNumber: true, value: row => row.ms, text: row => msText(row.ms)},
    {title: "Of it", isNumber: true, value: row => row.bound / (row.ms || 1), text: row => (100 * row.bound / (row.ms || 1)).toFixed(0) + "%"}] : [];
  const columns = [
    {title: "Share", isNumber: true, value: share, cell: row => {
      const cell = element("span", {}, (100 * share(row)).toFixed(1) + "%");
      cell.append(element("span", {class: "room"}, element("span", {class: "share", style: `width:${(100 * share(row)).toFixed(1)}%`})));
      return cell;
    }},
    {title: isGrouped ? "Count" : "No.", isNumber: true, value: row => isGrouped ? row.count : row.at, text: row => isGrouped ? row.count : row.at},
    {title: "Kernel", value: row => row.kernel + row.ops, text: row => row.kernel === row.ops ? row.kernel : row.ops.replaceAll("+", " + "), isWide: true},
    {title: "Sizes", value: row => row.shape, text: row => row.shape + (row.types ? ` · ${row.types}` : ""), isWide: true},
    {title: "Operations", isNumber: true, value: row => row.flops, text: row => flopsText(row.flops)},
    {title: "Bytes", isNumber: true, value: row => row.bytes, text: row => trafficText(row.bytes)},
    {title: "FLOP/B", isNumber: true, value: row => row.flops / (row.bytes || 1), text: row => (row.flops / (row.bytes || 1)).toFixed(1)},
    {title: "At least ms", isNumber: true, value: row => row.bound, text: row => msText(row.bound)},
    ...times,
    {title: "Bound by", value: row => row.by, text: row => row.by},
    {title: "Nodes", value: row => row.name, text: row => row.name, isWide: true},
  ];
  const rows = words ? all.filter(row => words.split(/\s+/).every(word => row.search.includes(word))) : all;
  sortableTable($("kernel-table"), columns, rows, 0);
}
