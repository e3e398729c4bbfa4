// The report's own script: draws the plots that come into view, filters the overview's table, says when the page is old.
"use strict";

const DAY = 86400000;
const config = {
  background: null,
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: { labelColor: "var(--soft)", titleColor: "var(--ink)", gridColor: "var(--line)", domainColor: "var(--line)",
    tickColor: "var(--line)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: 600 },
  legend: { labelColor: "var(--ink)", titleColor: "var(--ink)", labelFontSize: 12, titleFontSize: 12, orient: "bottom",
    symbolStrokeWidth: 2, symbolSize: 90, columns: 4, labelLimit: 140 },
  range: { category: [1, 2, 3, 4, 5, 6].map((n) => `var(--series-${n})`),
    symbol: ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"] },
};

// Rates of three or four digits: 1234, 12.3.
const rate = (value) => (value === null ? "" : value >= 100 ? value.toFixed(0) : value.toPrecision(3));

// Days since the first night; a number stands for a row without gaps.
const nightsOf = (data) => (Array.isArray(data.days) ? data.days : [...Array(data.days).keys()]);

// The datasets of each kind of plot, from the columns that its page has.
const datasets = {
  timeline(data) {
    const first = Date.parse(data.first);
    const at = (day) => first + day * DAY;
    const days = nightsOf(data);
    const older = days.length - data.repeats.length;
    const repeats = (n) => data.repeats[n - older] || [];
    const end = days.length ? days[days.length - 1] : 0;
    const maintenance = new Set(data.maintenance);
    const slow = (day) => data.moves.some((m) => m.slower && m.from <= day && (m.open || day < m.to));
    const nights = days.map((day, n) => ({
      date: at(day), best: data.best[n], reference: data.reference[n],
      kind: maintenance.has(day) ? "maintenance" : slow(day) ? "slower" : "usual",
      repeats: repeats(n).map(rate).join(" "),
    }));
    return {
      nights,
      reference: nights.some((night) => night.reference !== null) ? nights : [],
      repeats: days.flatMap((day, n) => repeats(n).map((value) => ({ date: at(day), rate: value }))),
      maintenance: data.maintenance.map((day) => ({ from: at(day - 0.5), to: at(day + 0.5) })),
      invalid: data.invalid.map(([day, why]) => ({ date: at(day), why })),
      events: data.events.map(([day, kind, text]) => ({ date: at(day - 0.5), kind, text })),
      moves: data.moves.map((m) => ({ ...m, from: at(m.from - 0.5), to: at(m.to + 0.5), kind: m.slower ? "slower" : "faster" })),
      band: data.band && days.length ? [{ low: data.band[0], high: data.band[1], from: at(days[0] - 0.5), to: at(end + 0.5) }] : [],
    };
  },
  points(data) {
    const points = data.points.map(([x, group, line, value, low, high]) => ({ x, group, line, rate: value, low, high }));
    return { points, unity: data.unity ? [{ x: 1 }] : [] };
  },
};
datasets.scaling = datasets.points;
datasets.dots = datasets.points;

// What a specification leaves to the page: titles and dates.
function specification(kind, data) {
  const words = { "%unit%": data.unit, "%x%": data.x, "%y%": data.y, "%line%": data.line };
  const spec = JSON.parse(JSON.stringify(window.specifications[kind]), (_, value) => (value in words ? words[value] : value));
  const sets = datasets[kind](data);
  // Vega-Lite warns of layers without data.
  spec.layer = spec.layer.filter((layer) => sets[(layer.data || spec.data).name].length);
  if (kind === "dots") spec.height = 12 + 22 * new Set(sets.points.map((point) => point.x)).size;
  return { ...spec, config, datasets: sets };
}

async function draw(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const canvas = figure.querySelector(".canvas");
  const spec = specification(figure.dataset.kind, data);
  spec.description = figure.querySelector("figcaption").textContent.trim();
  try {
    // Vega's interpreter (ast) needs no eval, which the page's policy forbids.
    const { view } = await vegaEmbed(canvas, spec, { mode: "vega-lite", renderer: "svg", ast: true, actions: false,
      defaultStyle: false, tooltip: { disableDefaultStyle: true } });
    canvas.dataset.drawn = "yes";
    offerSpans(figure, view, data);
  } catch (error) {
    canvas.textContent = `The plot could not be drawn (${error.message}); the table has its numbers.`;
    console.error(error);
  }
}

// Buttons that show the last nights only.
function offerSpans(figure, view, data) {
  const place = figure.querySelector(".spans");
  if (!place) return;
  const end = nightsOf(data).pop() || 0;
  const last = Date.parse(data.first) + end * DAY;
  const spans = [30, 120].filter((nights) => nights < end);
  if (!spans.length) return;
  for (const nights of [...spans, 0]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = nights ? `${nights} nights` : "all";
    button.addEventListener("click", () => {
      for (const other of place.children) other.setAttribute("aria-pressed", String(other === button));
      view.signal("since", nights ? last - (nights - 0.5) * DAY : 0).runAsync();
    });
    place.append(button);
  }
  place.hidden = false;
  const usual = spans.indexOf(window.innerWidth < 600 ? 30 : 120);
  place.children[usual < 0 ? spans.length : usual].click();
}

function drawPlots() {
  const figures = [...document.querySelectorAll("figure[data-kind]")];
  const drawn = new WeakSet();
  const once = (figure) => drawn.has(figure) || (drawn.add(figure), draw(figure));
  const seen = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => once(entry.target)),
    { rootMargin: "600px" },
  );
  figures.forEach((figure) => seen.observe(figure));
  window.addEventListener("beforeprint", () => figures.forEach(once));
}

function offerFilter() {
  const box = document.getElementById("filter");
  if (!box) return;
  const rows = [...document.querySelectorAll("#all tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const count = document.getElementById("filtered");
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, n) => { row.hidden = !wanted.every((word) => texts[n].includes(word)); });
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} series`;
  });
  box.closest("p").hidden = false;
}

function sayAge() {
  const note = document.getElementById("age");
  const days = note ? Math.floor((Date.now() - Date.parse(note.dataset.night)) / DAY) : 0;
  if (days < 2) return;
  note.textContent = `This report is of ${days} days ago: no night has been reported since.`;
  note.hidden = false;
}

drawPlots();
offerFilter();
sayAge();
