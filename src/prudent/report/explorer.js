"use strict";
// The page is complete without this script, at the position asked for. All limits of the
// file hold at once at every position; here they are only added, multiplied and divided.
function limitsAt(bands, place, prevalence) {
  const [first, second, third] = bands.limit[place];
  if (bands.kind === "answers") {
    return { error: first, answered: second, people: 1 - second };
  }
  const found = { missed: first, alarms: second, people: null, error: null, precision: null };
  const box = prevalence === null ? bands.share : [prevalence, prevalence];
  if (box === null) return found;
  const [low, high] = box;
  const right = low * (1 - first);
  const raised = right + (1 - low) * second;
  found.people = prevalence === null ? third : prevalence + (1 - prevalence) * second;
  found.error = Math.max(low * first + (1 - low) * second, high * first + (1 - high) * second);
  found.precision = raised > 0 ? right / raised : 0;
  return found;
}
function seenAt(bands, place) {
  const share = (count, rows) => (rows > 0 ? count / rows : null);
  const counts = bands.violations[place], rows = bands.rows;
  if (bands.kind === "answers") {
    return {
      error: share(counts[0], counts[1]), answered: share(counts[1], rows[1]),
      people: share(rows[1] - counts[1], rows[1]),
    };
  }
  return {
    missed: share(counts[0], rows[0]), alarms: share(counts[1], rows[1]),
    people: share(counts[2], rows[2]), error: share(counts[0] + counts[1], rows[2]),
    precision: share(rows[0] - counts[0], counts[2]),
  };
}
// The position of fewest errors that leaves people at most this share; -1 without any.
function placeFor(bands, capacity, prevalence) {
  const alarms = bands.kind === "alarms";
  const places = bands.threshold.map((_, place) => place);
  const fits = places.filter((place) => {
    const people = limitsAt(bands, place, prevalence).people;
    return people !== null && people <= capacity;
  });
  if (!fits.length) return -1;
  return alarms ? fits[0] : fits[fits.length - 1];
}
// One digit behind the point of a percentage, rounded to the safe side.
function percent(value, atLeast) {
  if (value === null) return "–";
  const scaled = 1000 * Math.min(Math.max(value, 0), 1);
  return `${((atLeast ? Math.floor(scaled + 1e-9) : Math.ceil(scaled - 1e-9)) / 10).toFixed(1)}\u00a0%`;
}
// A threshold as people read it: the outermost ones lie beyond every score.
function thresholdText(threshold) {
  const value = Number(threshold);
  if (Number.isFinite(value)) return String(threshold);
  return value < 0 ? "\u2212\u221e (every row)" : "\u221e (no row)";
}
const AT_LEAST = ["answered", "precision"];
function explore(root) {
  const bands = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const part = (name) => root.querySelector(`[data-name="${name}"]`);
  const threshold = part("threshold"), capacity = part("capacity"), queue = part("queue");
  const known = part("known"), share = part("share");
  const prevalence = () => (known && known.checked ? Number(share.value) / 1000 : null);
  function show() {
    const place = Number(threshold.value), given = prevalence();
    const limits = limitsAt(bands, place, given), seen = seenAt(bands, place);
    const text = thresholdText(bands.threshold[place]);
    part("position").textContent = text;
    threshold.setAttribute("aria-valuetext", text);
    if (known) {
      share.disabled = !known.checked;
      part("share-text").textContent = given === null ? "as here" : percent(given, false);
      part("assumed").hidden = given === null;
    }
    for (const [name, limit] of Object.entries(limits)) {
      const atLeast = AT_LEAST.includes(name);
      part(`${name}-limit`).textContent = percent(limit, atLeast);
      const away = given !== null && ["people", "error", "precision"].includes(name);
      part(`${name}-seen`).textContent = away || seen[name] === null ? "–"
        : `${(100 * seen[name]).toFixed(1)}\u00a0%`;
    }
    const rows = Math.max(0, Number(queue.value));
    part("queue-rows").textContent = String(rows);
    part("queue-text").textContent = limits.people === null ? "–"
      : String(Math.ceil(rows * limits.people - 1e-9));
  }
  function fit() {
    const wanted = Number(capacity.value) / 1000;
    const place = placeFor(bands, wanted, prevalence());
    part("capacity-text").textContent = percent(wanted, false)
      + (place < 0 ? ": no threshold keeps this" : "");
    if (place >= 0) threshold.value = String(place);
    show();
  }
  for (const control of [threshold, queue, known, share]) {
    if (control) control.addEventListener("input", show);
  }
  capacity.addEventListener("input", fit);
  root.querySelectorAll("[hidden].controls").forEach((one) => { one.hidden = false; });
  show();
}
if (typeof document !== "undefined") {
  document.querySelectorAll(".explorer").forEach(explore);
} else if (typeof module !== "undefined") {
  module.exports = { limitsAt, seenAt, placeFor, percent, thresholdText };
}
