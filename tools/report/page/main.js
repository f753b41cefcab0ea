// What the page shows, from top to bottom; sections without data are hidden.
function showOverview() {
  const program = D.programs[D.first], l = program.launches, least = l.bound.reduce((a, b) => a + b, 0);
  $("title").textContent = D.model;
  document.title = `${D.model} · llmc`;
  $("subtitle").textContent = `${D.precision}, ${D.optimizer}, batch ${D.batch} × ${D.sequence} tokens, vocabulary ${D.vocabulary}; ${D.isa}; ${D.producer}`;
  const facts = [
    [flopsText(D.flopsPerToken), "a token"], [l.kernel.length, `launches in ${program.kind}`], [`${msText(least)} ms`, "at least, by roofline"],
    [bytesText(program.peak.reduce((a, b) => a + b, 0)), "memory at the peak"], [bytesText(program.arena), "arena"],
    [`${(program.bound ? 100 * (program.arena / program.bound - 1) : 0).toFixed(2)}%`, "above the arena's lower bound"],
  ];
  for (const [name, bytes] of D.sections) facts.push([bytesText(bytes), `${name} in the file`]);
  $("facts").replaceChildren(...facts.map(([value, name]) => element("div", {class: "fact"}, element("b", {}, String(value)), element("span", {}, name))));
  const columns = [{title: "Memory at the peak", value: row => row.kind, text: row => row.kind}];
  D.categories.forEach((category, i) => columns.push({title: category, isNumber: true, value: row => row.peak[i], text: row => bytesText(row.peak[i])}));
  columns.push({title: "sum", isNumber: true, value: row => row.peak.reduce((a, b) => a + b, 0), text: row => bytesText(row.peak.reduce((a, b) => a + b, 0))});
  columns.push({title: "arena", isNumber: true, value: row => row.arena, text: row => bytesText(row.arena)});
  columns.push({title: "at least", isNumber: true, value: row => row.bound, text: row => bytesText(row.bound)});
  sortableTable($("peaks"), columns, D.programs, columns.length - 3);
}

/* Rows of D.programs[i].collectives: name, parts, bytes, start, wait, operations meanwhile, ms waited or null. */
function showCollectives() {
  const program = D.programs.filter(one => one.collectives.length)[$("collective-program").value], rows = program.collectives;
  const bytes = rows.reduce((sum, row) => sum + row[2], 0), isMeasured = rows.some(row => row[6] !== null);
  $("collective-note").textContent = `${rows.length} ${rows.length === 1 ? "message" : "messages"}, ${trafficText(bytes)} a rank. A message travels from the launch that starts it to the one that waits for it.`;
  const number = (title, at, text = value => value) => ({title, isNumber: true, value: row => row[at], text: row => text(row[at])});
  const columns = [
    {title: "No.", isNumber: false, value: row => rows.indexOf(row), text: row => rows.indexOf(row)},
    number("Bytes", 2, trafficText), number("Parts", 1), number("Starts at launch", 3), number("Waited for at", 4),
    {title: "Launches meanwhile", isNumber: true, value: row => row[4] - row[3] - 1, text: row => row[4] - row[3] - 1},
    number("Operations meanwhile", 5, flopsText), ...(isMeasured ? [number("Waited ms", 6, msText)] : []),
    {title: "Parameters and nodes", value: row => T[row[0]], text: row => T[row[0]].replaceAll("+", ", "), isWide: true},
  ];
  sortableTable($("collective-table"), columns, rows, 0);
}

function showLedger() {
  const words = $("ledger-find").value.toLowerCase(), titles = ["Parameter", "Stored as", "Shape", "Role", "Read by"];
  const rows = D.ledger.filter(row => row.join(" ").toLowerCase().includes(words));
  const size = shape => shape.split(" x ").reduce((product, length) => product * Number(length), 1);
  sortableTable($("ledger-table"), titles.map((title, i) => ({title, value: row => i === 2 ? size(row[2]) : row[i], text: row => row[i], isWide: i === 4, isNumber: i === 2})), rows, 0);
}

function showPasses() {
  const most = Math.max(...D.passes.map(([, seconds]) => seconds)), total = D.passes.reduce((sum, [, seconds]) => sum + seconds, 0);
  $("pass-table").replaceChildren(...[["all", total], ...D.passes].map(([name, seconds]) =>
    element("div", {class: "pass"}, element("span", {}, name), element("span", {}, element("i", {style: `width:${(100 * Math.min(1, seconds / most)).toFixed(1)}%`})),
      element("span", {}, seconds.toFixed(3) + " s"))));
}

function showRemarks() {
  const programs = row => row[5].map(i => T[i]).filter(name => name).join(", ");
  const kind = $("remark-kind").selectedOptions[0].text, pass = $("remark-pass").selectedOptions[0].text, words = $("remark-find").value.toLowerCase();
  const rows = D.remarks.filter(row => (kind === "all kinds" || T[row[1]] === kind) && (pass === "all passes" || T[row[0]] === pass) &&
    `${T[row[2]]} ${T[row[3]]} ${programs(row)}`.toLowerCase().includes(words));
  $("remark-note").textContent = `${rows.reduce((sum, row) => sum + row[4], 0)} remarks, ${rows.length} of them different; a fusion is decided in each program that has it.`;
  const columns = [
    {title: "Pass", value: row => T[row[0]], text: row => T[row[0]]},
    {title: "Kind", value: row => T[row[1]], cell: row => element("span", {class: T[row[1]]}, T[row[1]])},
    {title: "Node", value: row => T[row[2]], text: row => T[row[2]], isWide: true},
    {title: "What and why", value: row => T[row[3]], text: row => T[row[3]], isWide: true},
    {title: "Programs", value: programs, text: programs, isWide: true},
    {title: "Times", isNumber: true, value: row => row[4], text: row => row[4]},
  ];
  sortableTable($("remark-table"), columns, rows, 0, 200);
}

function startGraphs() {
  $("graph-tabs").replaceChildren(...D.graphs.map((graph, i) => {
    const tab = element("button", {type: "button"}, graph.title);
    tab.onclick = () => showGraph(i);
    return tab;
  }));
  $("graph-in").onclick = () => zoomBy(shown, 1 / 1.4);
  $("graph-out").onclick = () => zoomBy(shown, 1.4);
  $("graph-fit").onclick = () => fit(shown);
  $("graph-find").oninput = findNode;
  showGraph(D.graphs.length - 1);
}

function startPage() {
  showOverview();
  const kinds = D.programs.map(program => program.kind);
  for (const id of ["kernel-program", "memory-program"]) choices($(id), kinds, D.first);
  for (const id of ["kernel-program", "kernel-group"]) $(id).onchange = showKernels;
  $("kernel-find").oninput = showKernels;
  $("memory-program").onchange = showMemory;
  showKernels();
  showMemory();
  const ofRanks = D.programs.filter(program => program.collectives.length).map(program => program.kind);
  $("collectives").hidden = !ofRanks.length;
  if (ofRanks.length) {
    choices($("collective-program"), ofRanks, Math.max(0, ofRanks.indexOf(kinds[D.first] + "-ranks")));
    $("collective-program").onchange = showCollectives;
    showCollectives();
  }
  $("graph").hidden = !D.graphs;
  if (D.graphs) startGraphs();
  $("ledger").hidden = !D.ledger;
  if (D.ledger) { $("ledger-find").oninput = showLedger; showLedger(); }
  $("passes").hidden = !D.passes;
  if (D.passes) showPasses();
  $("remarks").hidden = !D.remarks;
  if (D.remarks) {
    choices($("remark-kind"), ["all kinds", ...new Set(D.remarks.map(row => T[row[1]]))]);
    choices($("remark-pass"), ["all passes", ...new Set(D.remarks.map(row => T[row[0]]))]);
    for (const id of ["remark-kind", "remark-pass"]) $(id).onchange = showRemarks;
    $("remark-find").oninput = showRemarks;
    showRemarks();
  }
  $("contents").replaceChildren(...[...document.querySelectorAll("section:not([hidden])")].map(section =>
    element("a", {href: "#" + section.id}, section.querySelector("h2").textContent)));
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; showMemory(); if (shown) setView(shown, shown.view); } });
}
startPage();
