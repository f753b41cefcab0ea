// The graph: one drawing a tab, made when it is first shown; drag to move, wheel or pinch to zoom.
const NODE = {width: 176, height: 36};
const drawings = [];
let shown = null;

const short = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

function drawGraph(graph) {
  const svg = drawn("svg", {}), edges = drawn("g"), nodes = drawn("g");
  const drawing = {graph, svg, edges: [], nodes: [], lit: [], view: null, readers: graph.x.map(() => []), inputs: graph.x.map(() => [])};
  graph.from.forEach((from, i) => {
    const to = graph.to[i], isDown = graph.y[to] > graph.y[from] + NODE.height, isUp = graph.y[to] + NODE.height < graph.y[from];
    const x1 = graph.x[from] + NODE.width / 2, x2 = graph.x[to] + NODE.width / 2;
    let path;
    if (isDown || isUp) {
      const y1 = graph.y[from] + (isDown ? NODE.height : 0), y2 = graph.y[to] + (isDown ? 0 : NODE.height), bend = Math.min(60, Math.abs(y2 - y1) / 2) * (isDown ? 1 : -1);
      path = `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
    } else {
      const isRight = x2 > x1, a = graph.x[from] + (isRight ? NODE.width : 0), b = graph.x[to] + (isRight ? 0 : NODE.width);
      path = `M${a} ${graph.y[from] + NODE.height / 2}L${b} ${graph.y[to] + NODE.height / 2}`;
    }
    const edge = drawn("path", {class: "edge", d: path});
    drawing.edges.push(edge);
    drawing.readers[from].push(i);
    drawing.inputs[to].push(i);
    edges.append(edge);
  });
  graph.x.forEach((x, i) => {
    const node = drawn("g", {class: "node", transform: `translate(${x} ${graph.y[i]})`, "data-node": i});
    node.append(drawn("rect", {width: NODE.width, height: NODE.height, rx: 5, fill: `var(--${T[graph.kind[i]]})`}));
    node.append(drawn("text", {class: "label", x: 8, y: 15}, short(T[graph.label[i]], 23)));
    const sub = T[graph.sub[i]];
    node.append(drawn("text", {class: "sub", x: 8, y: 29}, sub.length > 29 ? "…" + sub.slice(-28) : sub));
    drawing.nodes.push(node);
    nodes.append(node);
  });
  svg.append(edges, nodes);
  listen(drawing);
  return drawing;
}

function setView(drawing, view) {
  drawing.view = view;
  const box = $("graph-view"), zoom = box.clientWidth / view.width;
  drawing.svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.width * box.clientHeight / box.clientWidth}`);
  drawing.svg.classList.toggle("far", zoom < .55);
  drawing.svg.classList.toggle("farther", zoom < .3);
}

function zoomBy(drawing, factor, clientX, clientY) {
  const box = $("graph-view").getBoundingClientRect(), view = drawing.view;
  const width = Math.max(240, Math.min(6 * Math.max(drawing.graph.width, drawing.graph.height), view.width * factor)), height = box.height / box.width;
  const u = clientX === undefined ? .5 : (clientX - box.left) / box.width, v = clientY === undefined ? .5 : (clientY - box.top) / box.height;
  setView(drawing, {x: view.x + u * (view.width - width), y: view.y + v * (view.width - width) * height, width});
}

function fit(drawing) {
  const box = $("graph-view"), ratio = box.clientWidth / box.clientHeight, graph = drawing.graph;
  const width = Math.max(graph.width + 40, (graph.height + 40) * ratio);
  setView(drawing, {x: (graph.width - width) / 2, y: (graph.height - width / ratio) / 2, width});
}

/* Readable from the top: the graph's width, or what a screen can show of it. */
function start(drawing) {
  const box = $("graph-view"), width = Math.min(Math.max(drawing.graph.width + 40, 400), box.clientWidth * 1.3);
  setView(drawing, {x: drawing.graph.x[0] + NODE.width / 2 - Math.min(width / 2, drawing.graph.x[0] + NODE.width / 2 + 20), y: drawing.graph.y[0] - 20, width});
}

function listen(drawing) {
  const fingers = new Map(), svg = drawing.svg;
  let moved = 0;
  svg.onpointerdown = event => { fingers.set(event.pointerId, event); moved = 0; svg.setPointerCapture(event.pointerId); svg.classList.add("held"); };
  svg.onpointermove = event => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const scale = drawing.view.width / $("graph-view").clientWidth, dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    moved += Math.abs(dx) + Math.abs(dy);
    if (fingers.size === 2) {
      const other = [...fingers.values()].find(finger => finger.pointerId !== event.pointerId);
      const was = Math.hypot(before.clientX - other.clientX, before.clientY - other.clientY), is = Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY);
      zoomBy(drawing, was / Math.max(is, 1), (event.clientX + other.clientX) / 2, (event.clientY + other.clientY) / 2);
    } else {
      setView(drawing, {...drawing.view, x: drawing.view.x - dx * scale, y: drawing.view.y - dy * scale});
    }
    fingers.set(event.pointerId, event);
  };
  svg.onpointerup = svg.onpointercancel = event => {
    fingers.delete(event.pointerId);
    svg.classList.remove("held");
    if (moved > 6 || event.type !== "pointerup") return;
    const under = document.elementFromPoint(event.clientX, event.clientY), node = under && under.closest(".node");
    light(drawing, node ? Number(node.dataset.node) : -1);
  };
  svg.addEventListener("wheel", event => { event.preventDefault(); zoomBy(drawing, Math.exp(event.deltaY * .0015), event.clientX, event.clientY); }, {passive: false});
}

/* Shows a node, its edges, and what is known of it. */
function light(drawing, node) {
  for (const lit of drawing.lit) lit.classList.remove("lit");
  drawing.lit = [];
  const detail = $("graph-detail");
  if (node < 0) return detail.replaceChildren();
  const graph = drawing.graph, around = [...drawing.inputs[node], ...drawing.readers[node]];
  drawing.lit = [drawing.nodes[node], ...around.map(edge => drawing.edges[edge])];
  for (const lit of drawing.lit) lit.classList.add("lit");
  const name = T[graph.sub[node]], remarks = (D.remarks || []).filter(remark => T[remark[2]] === name && name);
  detail.replaceChildren(element("b", {}, T[graph.label[node]]), ` ${name}`, element("code", {}, T[graph.detail[node]]));
  if (remarks.length > 0)
    detail.append(remarks.slice(0, 12).map(remark => `${T[remark[0]]}: ${T[remark[1]]}: ${T[remark[3]]}`).join("\n"));
}

function findNode() {
  const words = $("graph-find").value.toLowerCase(), graph = shown.graph;
  if (!words) return light(shown, -1);
  const found = graph.x.findIndex((_, i) => `${T[graph.label[i]]} ${T[graph.sub[i]]}`.toLowerCase().includes(words));
  light(shown, found);
  if (found < 0) return;
  const box = $("graph-view"), width = Math.min(shown.view.width, box.clientWidth * 1.2), height = width * box.clientHeight / box.clientWidth;
  setView(shown, {x: graph.x[found] + NODE.width / 2 - width / 2, y: graph.y[found] + NODE.height / 2 - height / 2, width});
}

function showGraph(index) {
  drawings[index] = drawings[index] || drawGraph(D.graphs[index]);
  shown = drawings[index];
  $("graph-view").replaceChildren(shown.svg);
  $("graph-note").textContent = D.graphs[index].note;
  $("graph-detail").replaceChildren();
  [...$("graph-tabs").children].forEach((tab, i) => tab.setAttribute("aria-pressed", i === index));
  if (shown.view) setView(shown, shown.view); else start(shown);
}
