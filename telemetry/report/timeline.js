/* The decision-chain timeline: an episode is lanes of agents, a block is a decision, a click tells all of it. */

const PAGE = 20;
const ERRORS = (d) => d.failed || d.missing || d.degraded;
const sum = (numbers) => numbers.reduce((total, n) => total + n, 0);

class Timeline {
  constructor(place, told) {
    this.told = told;
    this.count = PAGE;
    this.blocks = new Map();
    this.selected = null;
    this.filters = this.makeFilters();
    this.list = el("div", { class: "episodes" });
    this.detail = el("aside", { class: "detail", tabindex: "-1", "aria-label": "The decision that was chosen" });
    this.ramp = el("span", { class: "ramp" });
    this.low = el("span");
    this.high = el("span");
    const legend = el("span", { class: "legend" }, this.low, this.ramp, this.high);
    const shownNow = (this.status = el("span", { class: "soft", role: "status" }));
    const bar = el("div", { class: "filters" }, Object.values(this.filters).map((f) => f.label), shownNow);
    const key = (name) => el("kbd", {}, name);
    const keys = el("span", {}, key("←"), " ", key("→"), " decisions  ", key("↑"), " ", key("↓"), " episodes  ", key("Enter"), " reads  ", key("Esc"), " goes back");
    const hint = el("div", { class: "filters hint" }, keys, legend);
    place.append(el("div", { class: "stage" }, bar, hint, this.list, this.detail));
    this.list.addEventListener("keydown", (event) => this.move(event));
    this.detail.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.selected) this.blocks.get(this.selected.decision)?.focus();
    });
    themed.push(() => this.paint());
    this.draw();
  }

  text(place) { return this.told.texts[place]; }

  makeFilters() {
    const choice = (title, id, options) => {
      const select = el("select", { id, onchange: () => { this.count = PAGE; this.draw(); } },
        options.map(([value, name]) => el("option", { value }, name)));
      return { select, label: el("label", {}, `${title} `, select) };
    };
    return {
      agent: choice("Agent", "agent", [["all", "all"], ...this.told.agents.map((name, k) => [k, name])]),
      show: choice("Show", "show", [["all", "all"], ["errors", "errors only"], ["failures", "not successful"]]),
      order: choice("First", "order", [
        ["newest", "newest"], ["worst", "worst return"], ["pay", "worst decision"], ["slowest", "slowest decision"], ["cost", "most expensive"],
      ]),
      colour: choice("Colour", "colour", [["reward", "by reward"], ["duration", "by duration"]]),
      width: choice("Width", "width", [["equal", "equal"], ["time", "by duration"]]),
    };
  }

  chosen(name) { return this.filters[name].select.value; }

  /** The decisions of an episode that the agent filter lets through. */
  seen(episode) {
    const agent = this.chosen("agent");
    return agent === "all" ? episode.decisions : episode.decisions.filter((d) => d.agent === Number(agent));
  }

  listed() {
    const show = this.chosen("show");
    const kept = this.told.episodes.filter((e) => {
      const decisions = this.seen(e);
      if (!decisions.length) return false;
      if (show === "errors") return decisions.some(ERRORS);
      return show !== "failures" || e.end !== "success";
    });
    const rank = {
      newest: null,
      worst: (e) => e.paid ?? 0,
      pay: (e) => Math.min(...this.seen(e).map((d) => d.paid ?? 0)),
      slowest: (e) => -Math.max(...this.seen(e).map((d) => d.ms ?? 0)),
      cost: (e) => -sum(this.seen(e).map((d) => d.usd ?? 0)),
    }[this.chosen("order")];
    return rank ? kept.map((e) => [rank(e), e]).sort((a, b) => a[0] - b[0]).map(([, e]) => e) : kept;
  }

  draw() {
    const episodes = this.listed();
    this.drawn = episodes.slice(0, this.count);
    this.blocks.clear();
    this.list.replaceChildren(...this.drawn.map((e) => this.episode(e)));
    const left = episodes.length - this.drawn.length;
    if (left) {
      const more = () => {
        const next = this.drawn.length;
        this.count += PAGE;
        this.draw();
        this.blocks.get(this.seen(this.drawn[next])[0])?.focus();
      };
      this.list.append(el("button", { class: "more", type: "button", onclick: more }, `Show ${Math.min(PAGE, left)} more`));
    }
    if (!episodes.length) this.list.append(el("p", { class: "nothing" }, "No episode is like that."));
    this.status.textContent = `${this.drawn.length} of ${this.told.episodes.length} episodes`;
    this.paint();
    const still = this.selected && this.blocks.has(this.selected.decision);
    const first = this.drawn[0];
    if (still) this.select(this.selected.episode, this.selected.decision);
    else if (first) this.select(first, this.seen(first)[0]);
    else this.detail.replaceChildren(el("p", { class: "nothing" }, "No decision is chosen."));
  }

  episode(episode) {
    const look = { success: "good", failure: "bad" }[episode.end] ?? "open";
    const decisions = this.seen(episode);
    const total = Math.max(...episode.decisions.map((d) => (d.at - episode.began) * 1000 + (d.ms ?? 0)));
    const head = el("header", {},
      el("h3", {}, episode.scenario), el("span", { class: `pill ${look}` }, episode.end), el("span", {}, `return ${shown(episode.paid, true)}`),
      el("span", {}, `${episode.decisions.length + episode.left} decisions`), el("span", {}, time(total)), el("span", {}, `${episode.from} · ${episode.id}`));
    const lanes = this.chosen("width") === "time" ? this.byTime(episode, decisions, total) : this.byOrder(episode, decisions);
    const made = el("article", { class: "episode", "aria-label": `Episode ${episode.scenario}, return ${shown(episode.paid)}, ${episode.end}` }, head, lanes);
    episode.element = made;
    if (episode.left) made.append(el("p", { class: "note" }, `${episode.left} later decisions are not shown.`));
    return made;
  }

  lanesOf(decisions) { return [...new Set(decisions.map((d) => d.agent))]; }

  byOrder(episode, decisions) {
    const agents = this.lanesOf(decisions);
    const style = `grid-template-columns: 104px repeat(${Math.max(decisions.length, 6)}, minmax(26px, 1fr))`;
    return el("div", { class: "lanes", style },
      agents.map((agent, row) => el("span", { class: "who", style: `grid-row: ${row + 1}` }, this.told.agents[agent])),
      decisions.map((d, column) => {
        const block = this.block(episode, d, short(this.text(d.call)));
        block.style.gridArea = `${agents.indexOf(d.agent) + 1} / ${column + 2}`;
        return block;
      }));
  }

  byTime(episode, decisions, total) {
    return el("div", { class: "lanes", style: "grid-template-columns: 104px 1fr" }, this.lanesOf(decisions).map((agent) => [
      el("span", { class: "who" }, this.told.agents[agent]),
      el("div", { class: "track" }, decisions.filter((d) => d.agent === agent).map((d) => {
        const block = this.block(episode, d, "");
        block.style.left = `min(${(100 * (d.at - episode.began) * 1000) / (total || 1)}%, calc(100% - 5px))`;
        block.style.width = `max(5px, ${(100 * (d.ms ?? 0)) / (total || 1)}%)`;
        return block;
      })),
    ]));
  }

  block(episode, decision, word) {
    const wrong = ERRORS(decision);
    const said = [`${this.told.agents[decision.agent]} ${decision.turn}`, this.text(decision.call), `reward ${shown(decision.paid, true)}`, time(decision.ms)];
    if (wrong) said.push(this.wrong(decision));
    const made = el("button", {
      type: "button", class: wrong ? "block wrong" : "block", tabindex: "-1", "aria-pressed": "false", "aria-label": said.join(", "), title: said.join("\n"),
      onclick: (event) => { this.select(episode, decision); if (event.detail === 0) this.detail.focus(); },
      onfocus: () => this.select(episode, decision),
    }, (wrong ? "⚠ " : "") + word);
    this.blocks.set(decision, made);
    return made;
  }

  wrong(d) {
    return [d.failed && "a call failed", d.missing && "a reward is missing", d.degraded && "a fallback answered"].filter(Boolean).join(", ");
  }

  /** Colours: rewards from loss over even to gain, durations from short to long; one value in fifty is beyond the ends. */
  paint() {
    const byReward = this.chosen("colour") === "reward";
    const value = byReward ? (d) => d.paid ?? 0 : (d) => d.ms ?? 0;
    const all = this.told.episodes.flatMap((e) => e.decisions.map((d) => Math.abs(value(d)))).sort((a, b) => a - b);
    const most = all[Math.floor(0.98 * (all.length - 1))] || all[all.length - 1] || 1;
    const colour = (share) => mixed(ends.even, share < 0 ? ends.loss : ends.gain, Math.abs(share) ** 0.5);
    const ends = { loss: rgb("--loss"), even: rgb("--even"), gain: rgb(byReward ? "--gain" : "--slow") };
    for (const [decision, block] of this.blocks) {
      const fill = colour(Math.max(-1, Math.min(1, value(decision) / most)));
      block.style.backgroundColor = `rgb(${fill})`;
      block.style.color = readableOn(fill);
    }
    const stops = Array.from({ length: 21 }, (_, k) => (byReward ? k / 10 - 1 : k / 20));
    this.ramp.style.background = `linear-gradient(to right, ${stops.map((s) => `rgb(${colour(s)})`).join(", ")})`;
    this.low.textContent = byReward ? shown(-most) : "0 ms";
    this.high.textContent = byReward ? shown(most, true) : time(most);
  }

  select(episode, decision) {
    if (this.selected) {
      this.mark(this.selected, false);
    }
    this.selected = { episode, decision };
    this.mark(this.selected, true);
    this.tell(episode, decision);
  }

  mark({ episode, decision }, on) {
    const block = this.blocks.get(decision);
    block?.setAttribute("aria-pressed", on ? "true" : "false");
    block?.setAttribute("tabindex", on ? "0" : "-1");
    episode.element?.classList.toggle("now", on);
  }

  /** Arrow keys: along an episode, and from one to the next. */
  move(event) {
    if (!event.target.classList.contains("block")) return;
    const { episode, decision } = this.selected;
    const row = this.drawn.indexOf(episode);
    const along = this.seen(episode);
    const at = along.indexOf(decision);
    const target = {
      ArrowRight: () => along[at + 1], ArrowLeft: () => along[at - 1], Home: () => along[0], End: () => along[along.length - 1],
      ArrowDown: () => this.nearest(row + 1, at), ArrowUp: () => this.nearest(row - 1, at),
    }[event.key];
    if (!target) return;
    event.preventDefault();
    const block = this.blocks.get(target());
    block?.focus();
    block?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  nearest(row, at) {
    const decisions = this.drawn[row] ? this.seen(this.drawn[row]) : [];
    return decisions[Math.min(at, decisions.length - 1)];
  }

  // -- one decision in full

  tell(episode, d) {
    const all = episode.decisions;
    const at = all.indexOf(d);
    const step = (name, to) => el("button", {
      type: "button", disabled: !this.blocks.has(to), "aria-label": `${name} decision`,
      onclick: () => { this.select(episode, to); this.detail.querySelector(`[aria-label="${name} decision"]`)?.focus(); },
    }, name === "Next" ? "→" : "←");
    const facts = [`decision ${at + 1} of ${all.length + episode.left}`, time(d.ms), d.usd ? `${shown(d.usd)} USD` : null,
      sum(d.tokens) ? `${d.tokens[0].toLocaleString("en")} tokens in, ${d.tokens[1].toLocaleString("en")} out` : null, ...d.models.map((m) => this.text(m))];
    this.detail.replaceChildren(
      el("div", { class: "top" }, el("h3", {}, `${this.told.agents[d.agent]}, turn ${d.turn}`),
        el("span", { class: "steps" }, step("Previous", all[at - 1]), step("Next", all[at + 1]))),
      el("div", { class: "facts" }, facts.filter(Boolean).map((f) => el("span", {}, f))),
      ERRORS(d) ? el("p", {}, el("span", { class: "pill bad" }, this.wrong(d))) : "",
      ...this.observation(episode, d), ...this.options(d), ...this.answers(d), ...this.pay(d), ...this.about(episode));
    this.detail.scrollTop = 0;
  }

  observation(episode, d) {
    const before = episode.decisions.slice(0, episode.decisions.indexOf(d)).findLast((other) => other.agent === d.agent);
    const known = new Set(before?.saw);
    const fresh = d.saw.map((line) => !known.has(line));
    const lines = d.saw.map((line, k) => el("li", { class: fresh[k] ? "new" : null }, this.text(line)));
    const title = before ? `Saw (marked: new since turn ${before.turn})` : "Saw";
    return [el("h4", {}, title), d.unseen ? el("p", { class: "soft" }, `${d.unseen} earlier lines left out`) : "", el("ul", { class: "saw" }, lines)];
  }

  options(d) {
    const call = el("pre", {}, this.text(d.call));
    const sure = d.p === null ? "" : ` with probability ${d.p.toFixed(3)}`;
    const chose = [el("h4", {}, `Chose${sure}`), call];
    if (!d.options.length) return chose;
    const rows = d.options.map(([place, p, legal, chosen]) => el("tr", { class: chosen ? "chosen" : legal ? null : "illegal" },
      el("td", {}, el("code", {}, this.text(place)), chosen ? " ✓ chosen" : legal ? "" : " not legal"),
      el("td", { class: "odds" }, p === null ? "" : el("i", { style: `width: ${Math.round(70 * p)}px` }), p === null ? "–" : p.toFixed(3))));
    const head = el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "candidate"), el("th", { scope: "col", class: "num" }, "probability")));
    const rest = d.others ? el("p", { class: "soft" }, `and ${d.others} less likely`) : "";
    return [...chose, el("h4", {}, "Could have called"), el("table", { class: "options" }, head, el("tbody", {}, rows)), rest];
  }

  answers(d) {
    const parts = d.got.flatMap(([place, ok, raw]) => [
      el("h4", {}, ok ? "Was answered" : "Failed"), el("pre", {}, pretty(this.text(place))),
      ...(raw === null ? [] : [el("h4", {}, "Before coercion"), el("pre", {}, pretty(this.text(raw)))])]);
    return [...parts, ...d.sent.flatMap((place) => [el("h4", {}, "Sent"), el("pre", {}, this.text(place))])];
  }

  pay(d) {
    if (!d.pay.length) return [el("h4", {}, "Reward"), el("p", { class: "soft" }, "none for this decision")];
    const rows = d.pay.map(([term, value, z, why, everybody]) => el("tr", {},
      el("td", {}, this.text(term)), el("td", { class: "num" }, value === null ? "missing" : shown(value, true)),
      el("td", { class: "num" }, shown(z, true)), el("td", {}, why === null ? (everybody ? "to everybody" : "") : this.text(why))));
    rows.push(el("tr", {}, el("td", {}, el("b", {}, "in all")), el("td", { class: "num" }, el("b", {}, shown(d.paid, true))), el("td", { class: "num" }, shown(d.z, true)), el("td")));
    const head = ["term", "raw", "standardized", ""].map((name, k) => (name ? el("th", { scope: "col", class: k ? "num" : null }, name) : el("td")));
    const note = d.z === null ? "" : el("p", { class: "soft" }, "Standardized: in standard deviations of the agent's rewards, as they stood when the run ended.");
    return [el("h4", {}, "Reward"), el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)), note];
  }

  about(episode) {
    const outcome = episode.outcome === null ? [] : [el("h4", {}, "How the episode ended"), el("pre", {}, `${episode.end} ${this.text(episode.outcome)}`)];
    const id = episode.cid ? [el("h4", {}, "The whole chain as text"), el("pre", {}, `python -m telemetry.trace ${episode.cid} --run RUN_DIR`)] : [];
    return [...outcome, ...id];
  }
}

/** A call without what can be guessed: `resolve(remedy="reroute")` as resolve(reroute), `hand_over()` as hand_over. */
function short(call) { return call.replace(/\(\)$/, "").replace(/(\(|, )\w+=/g, "$1").replaceAll('"', ""); }

/** A text that is JSON, over several lines where it is long. */
function pretty(text) {
  if (text.length < 60 || !"[{".includes(text[0])) return text;
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

function mixed(from, to, share) { return from.map((c, k) => Math.round(c + (to[k] - c) * share)); }

/** Black or white, whichever has the higher contrast (WCAG 2's relative luminance). */
function readableOn(colour) {
  const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

const timelinePlace = document.getElementById("timeline");
if (timelinePlace) new Timeline(timelinePlace, JSON.parse(document.getElementById("episodes").textContent));
retheme();
