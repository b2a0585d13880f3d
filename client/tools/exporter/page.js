// SPDX-License-Identifier: Apache-2.0. SPDX-FileCopyrightText: The gpushare authors
// Names of clients and users are hostile: they reach the page as text of nodes alone.
"use strict";

const MINUTE = 60, RECENT = 5;       // seconds that a plot shows, and over which a share is averaged
const COLOURS = 7;                   // clients of a plot with a colour of their own; the rest are added up
const ROWS_AT_FIRST = 25;
const PERIOD_MS = 1000, LATE_MS = 4000, GIVE_UP_MS = 10000;
const DASH = "–";

const $ = (id) => document.getElementById(id);
const state = {
  document: null, heard: 0, trouble: "", started: 0, all: false,
  history: new Map(),                // GPU -> looks of the last minute: {at, span, parts: client -> share}
  slots: new Map(),                  // GPU -> client -> its colour
  cards: new Map(), rows: new Map(),
};

// ---- words ----

// Characters that control, or that change the direction of what follows, are shown as what they are: foreign.
function clean(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "\ufffd");
}
const bytes = (n) => {
  if (typeof n !== "number") return DASH;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let at = 0;
  while (n >= 1024 && at + 1 < units.length) { n /= 1024; at++; }
  return (at === 0 || n >= 100 || Number.isInteger(n) ? n.toFixed(0) : n.toFixed(1)) + " " + units[at];
};
const percent = (part) => (part === null || part === undefined ? DASH : Math.round(part * 100) + " %");
const plural = (n, word) => n + " " + word + (n === 1 ? "" : "s");
function duration(seconds) {
  const s = Math.floor(seconds);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return plural(Math.floor(s / 86400), "day");
}
const short = (n) => (Number.isInteger(n) ? n : Math.round(n * 10) / 10);
// "25–50 %", "50 %", "25 %+" for a request without a limit: as gpusharectl has it.
function range(resource, which) {
  const low = resource?.request?.[which], high = resource?.limit?.[which];
  if (low > 0 && typeof high === "number") return short(low) + "–" + short(high) + " %";
  if (low > 0) return short(low) + " %+";
  return typeof high === "number" ? short(high) + " %" : DASH;
}
const nameOf = (client) => clean(client.name || "client " + client.client);
const userOf = (client) => clean(state.document.users[client.uid] ?? client.uid);

// ---- shares ----

const ofTime = (gpu) => gpu?.schedule?.time_enforced === true;
const gpuOf = (client) => state.document.status.devices.find((gpu) => gpu.device === client.device);

// What clients got between two looks, as a part of the GPU. The server's own clock says how long that was.
function partsOf(before, after, gpu, counter) {
  const earlier = new Map(before.clients.clients.map((client) => [client.client, client]));
  const parts = new Map();
  for (const client of after.clients.clients) {
    const old = earlier.get(client.client);
    if (client.device !== gpu.device || !old || old.device !== gpu.device) continue;
    const passed = client.connected_seconds - old.connected_seconds;
    if (typeof client[counter] !== "number" || typeof old[counter] !== "number" || !(passed > 0)) continue;
    const time = Math.min(1, Math.max(0, (client[counter] - old[counter]) / passed));
    const width = ofTime(gpu) ? 1 : client.multiprocessors_now / gpu.multiprocessors;
    if (Number.isFinite(time * width)) parts.set(client.client, { work: time * width, busy: time });
  }
  return parts;
}

function remember(before, after, at, span) {
  for (const gpu of after.status.devices) {
    const looks = state.history.get(gpu.device) ?? [];
    const got = partsOf(before, after, gpu, "gpu_time_seconds");
    const leased = ofTime(gpu) ? partsOf(before, after, gpu, "charged_seconds") : got;
    looks.push({ at, span, got, leased });
    while (looks.length > MINUTE + 2 || (looks.length && looks[0].at < at - MINUTE - 1)) looks.shift();
    state.history.set(gpu.device, looks);
  }
}

// The mean over the looks of the latest `seconds`; null: there is none.
function mean(looks, seconds, at, client, of = "got") {
  let sum = 0, span = 0;
  for (let i = looks.length - 1; i >= 0 && looks[i].at > at - seconds; i--) {
    const part = looks[i][of].get(client);
    if (part === undefined) continue;
    sum += part.work * looks[i].span;
    span += looks[i].span;
  }
  return span > 0 ? sum / span : null;
}
function gotOf(client) {
  const looks = state.history.get(client.device);
  return looks && looks.length ? mean(looks, RECENT + 0.5, looks[looks.length - 1].at, client.client) : null;
}

// ---- nodes ----

function make(tag, className, parent, attributes = {}) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  parent?.append(node);
  return node;
}
function put(node, text) {
  text = String(text);
  if (node.textContent !== text) node.textContent = text;
}
function fill(node, part) {
  const width = Math.round(1000 * Math.min(1, Math.max(0, part || 0))) / 10 + "%";
  if (node.style.width !== width) node.style.width = width;
}
function makeMeter(parent, label) {
  const meter = make("div", "meter", parent);
  const words = make("span", "", meter);
  make("span", "quiet", words).textContent = label;
  const value = make("span", "", words);
  return { value, bar: make("div", "fill", make("div", "track", meter, { "aria-hidden": "true" })) };
}

// ---- GPUs ----

function cardOf(index) {
  let card = state.cards.get(index);
  if (card) return card;
  const node = make("article", "gpu", $("gpus"), { "data-gpu": index });
  card = { node, title: make("h3", "title", node), facts: make("p", "facts quiet", node) };
  const meters = make("div", "meters", node);
  card.use = makeMeter(meters, "used, last 5 s");
  card.memory = makeMeter(meters, "memory");
  card.plot = make("canvas", "plot", node, { role: "img" });
  card.legend = make("ul", "legend", node);
  card.trouble = make("p", "trouble warn", node);
  state.cards.set(index, card);
  return card;
}

// The clients that had most of the last minute. A client keeps its colour while it is among them.
function leadersOf(gpu, looks, at) {
  const sums = new Map();
  for (const look of looks)
    for (const [client, part] of look.leased) sums.set(client, (sums.get(client) ?? 0) + part.work * look.span);
  const order = [...sums].filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const leaders = order.slice(0, COLOURS).map(([client]) => client);
  const slots = state.slots.get(gpu.device) ?? new Map();
  for (const client of [...slots.keys()]) if (!leaders.includes(client)) slots.delete(client);
  for (const client of leaders) {
    if (slots.has(client)) continue;
    const taken = new Set(slots.values());
    slots.set(client, [...Array(COLOURS).keys()].find((slot) => !taken.has(slot)));
  }
  state.slots.set(gpu.device, slots);
  const shown = looks.reduce((span, look) => span + look.span, 0);
  const shares = new Map(order.map(([client, sum]) => [client, sum / shown]));
  return { slots, shares, others: order.length - leaders.length };
}

function layersOf(look, slots) {
  const layers = Array(COLOURS + 1).fill(0);
  for (const [client, part] of look.leased) layers[slots.get(client) ?? COLOURS] += part.work;
  return layers;
}

function draw(canvas, looks, slots, now) {
  const width = canvas.clientWidth, height = canvas.clientHeight, scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
  const pen = canvas.getContext("2d"), left = 44, bottom = height - 18, top = 8;
  const x = (at) => left + (width - left) * (1 - (now - at) / MINUTE);
  const y = (part) => bottom - (bottom - top) * part;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = colour("--track");
  pen.globalAlpha = 0.45;
  pen.fillRect(left, top, width - left, bottom - top);
  pen.globalAlpha = 1;
  for (const look of looks) {
    const from = Math.max(left, x(look.at - look.span)), to = x(look.at);
    let below = 0;
    if (to <= left) continue;
    layersOf(look, slots).forEach((part, layer) => {
      const until = Math.min(1, below + part);
      pen.fillStyle = colour(layer < COLOURS ? "--c" + layer : "--others");
      if (until > below) pen.fillRect(from, y(until), to - from + 0.4, y(below) - y(until));
      below = until;
    });
  }
  pen.strokeStyle = colour("--line");
  pen.fillStyle = colour("--quiet");
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const part of [0, 0.5, 1]) {
    pen.beginPath();
    pen.moveTo(left, Math.round(y(part)) + 0.5);
    pen.lineTo(width, Math.round(y(part)) + 0.5);
    pen.stroke();
    pen.fillText(part * 100 + " %", left - 5, y(part));
  }
  pen.textBaseline = "alphabetic";
  for (const ago of [60, 45, 30, 15, 0]) {
    pen.textAlign = ago === 60 ? "left" : ago === 0 ? "right" : "center";
    pen.fillText(ago === 0 ? "now" : "−" + ago + " s", x(now - ago), height - 3);
  }
}

function showLegend(card, gpu, looks, leaders) {
  const clients = new Map(state.document.clients.clients.map((client) => [client.client, client]));
  const entries = [...leaders.slots].sort((a, b) => a[1] - b[1]).map(([client, slot]) => ({
    name: clients.has(client) ? nameOf(clients.get(client)) : "left", id: "#" + client,
    share: leaders.shares.get(client), colour: "var(--c" + slot + ")",
  }));
  let others = 0;
  for (const [client, share] of leaders.shares) if (!leaders.slots.has(client)) others += share;
  if (leaders.others > 0) entries.push({ name: plural(leaders.others, "other"), id: "", share: others, colour: "var(--others)" });
  while (card.legend.children.length > entries.length) card.legend.lastChild.remove();
  entries.forEach((entry, i) => {
    let node = card.legend.children[i];
    if (!node) {
      node = make("li", "", card.legend);
      make("span", "chip", node, { "aria-hidden": "true" });
      make("bdi", "", node);
      make("span", "quiet", node);
    }
    node.children[0].style.background = entry.colour;
    put(node.children[1], entry.name);
    put(node.children[2], (entry.id + " " + percent(entry.share)).trim());
  });
  const what = ofTime(gpu) ? "leases" : "shares";
  const said = entries.map((entry) => `${entry.name} ${entry.id} ${percent(entry.share)}`.replace("  ", " ")).join(", ");
  const seconds = Math.round(looks.reduce((span, look) => span + look.span, 0));
  card.plot.setAttribute("aria-label", `GPU ${gpu.device}, ${what} of the last ${seconds} s: ${said || "no work"}`);
}

function useOf(gpu, looks) {
  if (!looks.length) return null;
  const clients = state.document.clients.clients.filter((client) => client.device === gpu.device);
  const at = looks[looks.length - 1].at;
  return Math.min(1, clients.reduce((sum, client) => sum + (mean(looks, RECENT + 0.5, at, client.client) ?? 0), 0));
}

function showGpu(gpu, now) {
  const card = cardOf(gpu.device), looks = state.history.get(gpu.device) ?? [];
  const leaders = leadersOf(gpu, looks, now), use = useOf(gpu, looks);
  put(card.title, `GPU ${gpu.device}: ${clean(gpu.name ?? "not known yet")}`);
  const facts = [gpu.state, "mode " + gpu.schedule.mode, plural(gpu.clients, "client")];
  if (gpu.multiprocessors) facts.push(plural(gpu.multiprocessors, "multiprocessor"));
  if (gpu.drained) facts.push("drained: no new clients");
  if (gpu.one_client_at_a_time) facts.push("one client at a time, after a fault");
  put(card.facts, facts.join(" · "));
  put(card.use.value, percent(use));
  fill(card.use.bar, use);
  put(card.memory.value, bytes(gpu.memory_used_bytes) + " of " + bytes(gpu.memory_bytes));
  fill(card.memory.bar, gpu.memory_used_bytes / gpu.memory_bytes);
  showLegend(card, gpu, looks, leaders);
  const trouble = [gpu.state !== "ready" ? gpu.trouble : null, gpu.worker_silence].filter(Boolean).join(" ");
  put(card.trouble, clean(trouble));
  card.trouble.hidden = !trouble;
  draw(card.plot, looks, leaders.slots, now);
}

// ---- clients ----

const CELLS = [["id number", "#"], ["name", ""], ["user", ""], ["gpu number", "GPU"], ["asked number", "asked"], ["granted number", "granted"],
  ["got", ""], ["memory number", "memory"], ["state", ""]];

function rowOf(number) {
  let row = state.rows.get(number);
  if (row) return row;
  const node = make("div", "row", null, { role: "row", "data-client": number });
  row = { node, cells: {} };
  for (const [kind, label] of CELLS) {
    const key = kind.split(" ")[0];
    const cell = make("span", kind.replace(/^/, "c-"), node, { role: "cell" });
    if (label) cell.setAttribute("data-label", label);
    row.cells[key] = key === "name" || key === "user" ? make("bdi", "", cell) : cell;
  }
  row.cells.got.classList.add("got");
  row.label = make("span", "label", row.cells.got);
  row.bar = make("div", "fill", make("div", "track", row.cells.got, { "aria-hidden": "true" }));
  state.rows.set(number, row);
  return row;
}

function showRow(entry) {
  const { client } = entry, row = rowOf(client.client), { cells } = row, gpu = gpuOf(client);
  const resource = ofTime(gpu) ? client.time : client.threads;
  put(cells.id, client.client);
  put(cells.name, entry.name);
  put(cells.user, entry.user);
  cells.name.parentNode.title = entry.name;
  put(cells.gpu, client.device ?? DASH);
  put(cells.asked, range(resource, "asked_percent"));
  put(cells.granted, range(resource, "granted_percent"));
  put(row.label, percent(entry.got));
  fill(row.bar, entry.got);
  put(cells.memory, client.memory ? bytes(client.memory.used_bytes) + " of " + bytes(client.memory.limit.granted_bytes) : DASH);
  put(cells.state, client.state);
  return row.node;
}

const ORDERS = {
  got: (a, b) => (b.got ?? -1) - (a.got ?? -1),
  memory: (a, b) => b.memory - a.memory,
  client: () => 0,
  name: (a, b) => a.name.localeCompare(b.name),
  user: (a, b) => a.user.localeCompare(b.user),
  gpu: (a, b) => (a.client.device ?? -1) - (b.client.device ?? -1),
};

function showClients() {
  const all = state.document.clients.clients, wanted = $("filter").value.trim().toLowerCase();
  let entries = all.map((client) => ({ client, name: nameOf(client), user: userOf(client), got: gotOf(client),
    memory: client.memory?.used_bytes ?? -1 }));
  if (wanted) {
    entries = entries.filter((entry) => entry.name.toLowerCase().includes(wanted) || entry.user.toLowerCase().includes(wanted) ||
      String(entry.client.client) === wanted.replace(/^#/, ""));
  }
  const order = ORDERS[$("sort").value];
  entries.sort((a, b) => order(a, b) || a.client.client - b.client.client);
  if ($("reverse").checked) entries.reverse();
  const found = entries.length, shown = state.all ? entries : entries.slice(0, ROWS_AT_FIRST);
  const nodes = shown.map(showRow), present = new Set(all.map((client) => client.client)), rows = $("rows");
  for (const number of [...state.rows.keys()]) if (!present.has(number)) state.rows.delete(number);
  // Only what moved is moved, so a selection or a scroll position stays.
  nodes.forEach((node, i) => { if (rows.children[i] !== node) rows.insertBefore(node, rows.children[i] ?? null); });
  while (rows.children.length > nodes.length) rows.lastChild.remove();
  put($("count"), wanted ? `${found} of ${all.length}` : String(all.length));
  $("clients").hidden = found === 0;
  $("none").hidden = found > 0;
  put($("none"), all.length ? "No client has this in its name, user or number." : "No clients are connected.");
  $("more").hidden = found <= ROWS_AT_FIRST;
  put($("more"), state.all ? `Show the first ${ROWS_AT_FIRST}` : `Show all ${found}`);
}

// ---- the whole ----

function show() {
  const { status } = state.document, now = clockOf(state.document);
  put($("server"), `${clean(status.server_version)} · driver ${clean(status.driver.name)} · up ${duration(status.uptime_seconds)} · ` +
    plural(status.clients, "connection"));
  for (const gpu of status.devices) showGpu(gpu, now);
  for (const [index, card] of state.cards) {
    if (status.devices.some((gpu) => gpu.device === index)) continue;
    card.node.remove();
    state.cards.delete(index);
    state.history.delete(index);
  }
  showClients();
}

// Old numbers must not look like new ones: they fade, and the page says since when they are old.
function showState() {
  const old = performance.now() - state.heard, known = state.document !== null;
  const lost = state.trouble !== "" || (known && old > LATE_MS);
  document.body.className = lost ? "lost" : known ? "live" : "";
  $("numbers").hidden = !known;
  $("lost").hidden = !lost;
  if (lost) {
    put($("age"), "no answer");
    put($("lost"), (state.trouble || "The exporter does not answer.") +
      (known ? ` The numbers below are ${duration(old / 1000)} old.` : ""));
  } else if (known) {
    put($("age"), "live");
  }
}

// Looks lie on the server's clock: an answer may have been kept by the exporter, and may have come late.
const clockOf = (answer) => answer.status.uptime_seconds;

function take(answer) {
  const before = state.document;
  const again = before && answer.status.pid === before.status.pid && clockOf(answer) >= clockOf(before);
  state.trouble = "";
  // The answer of before, which the exporter keeps for a moment: its age goes on.
  if (again && clockOf(answer) === clockOf(before)) return;
  state.document = answer;
  state.heard = performance.now();
  if (again) remember(before, answer, clockOf(answer), clockOf(answer) - clockOf(before));
  else { state.history.clear(); state.slots.clear(); }
  show();
}

async function ask() {
  const stop = new AbortController(), timer = setTimeout(() => stop.abort(), GIVE_UP_MS);
  try {
    const reply = await fetch("status.json", { cache: "no-store", credentials: "same-origin", signal: stop.signal });
    const answer = await reply.json();
    if (answer.schema_version !== 2) throw new Error("the exporter speaks another version: load this page again");
    if (answer.ok) take(answer);
    else state.trouble = "The server does not answer: " + clean(answer.text);
  } catch (error) {
    state.trouble = "The exporter does not answer: " + clean(error.message);
  }
  clearTimeout(timer);
  showState();
}

// Nobody looks at a hidden page, so it asks nothing.
let asking = false;
async function tick() {
  if (document.hidden || asking) return;
  asking = true;
  await ask();
  asking = false;
}

setInterval(() => { showState(); tick(); }, PERIOD_MS);
document.addEventListener("visibilitychange", tick);
for (const id of ["filter", "sort", "reverse"])
  $(id).addEventListener("input", () => { if (state.document) showClients(); });
$("more").addEventListener("click", () => { state.all = !state.all; showClients(); });
window.addEventListener("resize", () => { if (state.document) show(); });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (state.document) show(); });
tick();
