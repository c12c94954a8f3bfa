"use strict";

/** An element with attributes and children; text is only ever text. */
function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return made;
}

const probe = el("span", { hidden: true });
document.body.append(probe);

/** A colour of the style sheet as the theme in force has it: [red, green, blue], 0 to 255. */
function rgb(variable) {
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
}

/** A number as a reader wants it: at most four significant digits, a dash where there is none. */
function shown(value, sign = false) {
  if (value === null || value === undefined) return "–";
  const text = Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
  return (sign && value > 0 ? "+" : "") + text.replace("-", "−");
}

/** Milliseconds as a reader wants them. */
function time(ms) {
  if (ms === null) return "–";
  if (ms < 1000) return `${shown(Number(ms.toPrecision(3)))} ms`;
  return ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

const themed = [];
const systemDark = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : systemDark.matches;
}

function retheme() {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", `${isDark() ? "Light" : "Dark"} colours`);
  for (const redraw of themed) redraw();
}

const themeButton = document.getElementById("theme");
themeButton.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  retheme();
});
systemDark.addEventListener("change", retheme);
