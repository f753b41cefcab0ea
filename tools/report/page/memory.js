// Memory of a program: what is alive at each launch by category, and where each value lies in the arena.
const ARENA = [3, 4, 5];
const COLORS = ["--weights", "--optimizer", "--inout", "--activations", "--gradients", "--workspace"].map(name => `var(${name})`);

/* A chart's frame: bytes upwards, launches to the right. */
function frame(height, numLaunches, most, unit) {
  const width = Math.max(320, Math.min(1340, $("memory-chart").clientWidth || 1000)), left = 64, bottom = 24, top = 10;
  const svg = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
  const x = launch => left + launch / Math.max(1, numLaunches) * (width - left - 8);
  const y = bytes => height - bottom - bytes / (most || 1) * (height - bottom - top);
  for (let i = 0; i <= 4; ++i) {
    svg.append(drawn("line", {class: "axis", x1: left, x2: width - 8, y1: y(most * i / 4), y2: y(most * i / 4)}));
    svg.append(drawn("text", {x: left - 6, y: y(most * i / 4) + 4, "text-anchor": "end"}, bytesText(most * i / 4)));
  }
  for (let i = 0; i <= 4; ++i) {
    const launch = Math.round(numLaunches * i / 4);
    svg.append(drawn("text", {x: x(launch), y: height - 6, "text-anchor": i === 0 ? "start" : i === 4 ? "end" : "middle"}, i === 4 ? `launch ${launch}` : launch));
  }
  return {svg, x, y, width, left};
}

function launchAt(event, svg, chart, numLaunches) {
  const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * chart.width;
  return Math.max(0, Math.min(numLaunches - 1, Math.floor((at - chart.left) / (chart.width - chart.left - 8) * numLaunches)));
}

function drawLive(program) {
  const count = program.launches.kernel.length, most = Math.max(program.arena, program.bound, 1);
  const chart = frame(260, count, most);
  let below = new Array(count).fill(0);
  ARENA.forEach((category, part) => {
    const above = below.map((bytes, launch) => bytes + program.live[part][launch]);
    let path = "";
    for (let i = 0; i < count; ++i) path += `${i ? "L" : "M"}${chart.x(i).toFixed(1)} ${chart.y(above[i]).toFixed(1)}L${chart.x(i + 1).toFixed(1)} ${chart.y(above[i]).toFixed(1)}`;
    for (let i = count; i-- > 0;) path += `L${chart.x(i + 1).toFixed(1)} ${chart.y(below[i]).toFixed(1)}L${chart.x(i).toFixed(1)} ${chart.y(below[i]).toFixed(1)}`;
    chart.svg.append(drawn("path", {d: path + "Z", fill: COLORS[category]}));
    below = above;
  });
  chart.svg.append(drawn("line", {class: "limit", x1: chart.x(0), x2: chart.x(count), y1: chart.y(program.arena), y2: chart.y(program.arena)}));
  const cursor = drawn("line", {class: "cursor", y1: 10, y2: 236, x1: -9, x2: -9});
  chart.svg.append(cursor);
  chart.svg.onpointermove = event => {
    const i = launchAt(event, chart.svg, chart, count), l = program.launches;
    cursor.setAttribute("x1", chart.x(i + .5)); cursor.setAttribute("x2", chart.x(i + .5));
    tip(event, `launch ${i}: ${T[l.ops[i]]}\n${T[l.name[i]]}\n` + ARENA.map((category, part) => `${D.categories[category]} ${bytesText(program.live[part][i])}`).join("\n"));
  };
  chart.svg.onpointerleave = event => { cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); tip(event); };
  $("memory-chart").replaceChildren(chart.svg);
}

function drawPlaces(program) {
  const count = program.launches.kernel.length, v = program.values, chart = frame(320, count, Math.max(program.arena, 1));
  for (let i = 0; i < v.name.length; ++i) {
    const top = chart.y(v.offset[i] + v.bytes[i]), height = Math.max(.4, chart.y(v.offset[i]) - top);
    chart.svg.append(drawn("rect", {x: chart.x(v.first[i]).toFixed(1), width: Math.max(.6, chart.x(v.last[i] + 1) - chart.x(v.first[i])).toFixed(1), y: top.toFixed(1),
      height: height.toFixed(1), fill: COLORS[v.category[i]], stroke: "var(--card)", "stroke-width": height > 3 ? .6 : 0, "data-value": i}));
  }
  chart.svg.onpointermove = event => {
    const i = event.target.dataset.value;
    tip(event, i === undefined ? "" : `${T[v.name[i]]}\n${D.categories[v.category[i]]}, ${bytesText(v.bytes[i])}\nlaunches ${v.first[i]} to ${v.last[i]}, at ${bytesText(v.offset[i])}`);
  };
  chart.svg.onpointerleave = event => tip(event);
  $("memory-map").replaceChildren(chart.svg);
}

function showMemory() {
  const program = D.programs[$("memory-program").value];
  const above = program.bound ? 100 * (program.arena / program.bound - 1) : 0, padding = program.bound ? 100 * (program.padded / program.bound - 1) : 0;
  $("memory-note").textContent = `Arena ${bytesText(program.arena)} (dashed), ${above.toFixed(2)}% above the largest sum of live bytes, ${bytesText(program.bound)}` +
    (padding >= .01 ? `, of it ${padding.toFixed(2)}% padding` : "") + `. Beside it ${bytesText(program.resident.reduce((a, b) => a + b, 0))} of state stay all the time.`;
  $("memory-legend").replaceChildren(...ARENA.map(category => {
    const item = element("span", {}, element("i", {style: `background:${COLORS[category]}`}));
    item.append(D.categories[category]);
    return item;
  }));
  drawLive(program);
  drawPlaces(program);
}
