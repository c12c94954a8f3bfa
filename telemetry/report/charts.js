/* Charts: the library is unpacked first, and each chart is drawn when it comes near the screen. */

const CHART_CONFIG = { displayModeBar: false, responsive: true };
const chartsDrawn = new Map();
const smoothingChosen = document.getElementById("smoothing");

async function unpackPlotly() {
  const packed = document.getElementById("plotly").textContent;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  document.head.append(el("script", {}, await new Response(stream).text()));
  return window.Plotly;
}

/** The figure with the theme's colours in place of the style sheet's variables. */
function coloured(value, key = "") {
  if (Array.isArray(value)) return value.map((part) => coloured(part, key));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, coloured(part, name)]));
  }
  return key.endsWith("color") && typeof value === "string" && value.startsWith("--") ? `rgb(${rgb(value)})` : value;
}

/** Which lines are shown: those with the smoothing that was chosen, and the raw ones behind them. */
function visible(trace) {
  const chosen = smoothingChosen ? smoothingChosen.value : "windowed";
  if (!trace.meta) return trace;
  const alone = chosen === "raw" && trace.meta === "raw";
  const kept = trace.meta === "raw" || trace.meta === chosen;
  const opacity = alone ? 1 : trace.opacity;
  return { ...trace, visible: kept, opacity, showlegend: alone || (trace.meta === chosen && chosen !== "raw") };
}

function drawChart(Plotly, place) {
  const figure = chartsDrawn.get(place);
  const { data, layout } = coloured(figure);
  Plotly.react(place, data.map(visible), layout, CHART_CONFIG);
}

function startCharts(Plotly) {
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      const source = target.querySelector("script");
      chartsDrawn.set(target, JSON.parse(source.textContent));
      source.remove();
      drawChart(Plotly, target);
    }
  }, { rootMargin: "300px" });
  for (const place of document.querySelectorAll(".chart")) near.observe(place);
  const redraw = () => { for (const place of chartsDrawn.keys()) drawChart(Plotly, place); };
  themed.push(redraw);
  smoothingChosen?.addEventListener("change", redraw);
  document.documentElement.dataset.charts = "ready";
}

function chartsFailed(error) {
  document.documentElement.dataset.charts = "failed";
  for (const place of document.querySelectorAll(".chart")) {
    place.style.minHeight = "0";
    place.append(el("p", { class: "nothing" }, `This browser cannot draw charts (${error.message}). ${place.getAttribute("aria-label")}`));
  }
}

if (document.querySelector(".chart")) unpackPlotly().then(startCharts).catch(chartsFailed);
