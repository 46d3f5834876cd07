// Lets a reader look into the pictures of the page: dragging zooms, Esc shows everything again, a click on
// a name hides its line, arrows and + - move and zoom, and a cursor runs over all plots of time at once. On
// a heat map dragging marks a rectangle, and says its share. Values are read from the coordinates of a
// picture, which are written anew where it moves. All text goes into text nodes, never into markup.
"use strict";
(() => {
  const root = document.documentElement;
  let errors = 0;
  root.dataset.errors = "0";
  addEventListener("error", () => { root.dataset.errors = String(++errors); });

  const plots = [];
  const element = (name, properties, ...inside) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...inside);
    return made;
  };
  const set = (target, attributes) => {
    for (const [name, value] of Object.entries(attributes)) target.setAttribute(name, value);
    return target;
  };

  // Numbers as the tables of the page print them: three digits and a prefix.
  const LARGE = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const STEPS = {
    s: [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]],
    B: [[2 ** 30, "Gi"], [2 ** 20, "Mi"], [1024, "Ki"], [1, ""]],
    "%": [[1, ""]],
  };
  const digits = value => {
    const before = value && Math.floor(Math.log10(Math.abs(+value.toPrecision(3)))) + 1;
    return value ? value.toFixed(Math.min(12, Math.max(0, 3 - before))) : "0";
  };
  const print = (value, unit) => {
    if (unit === "nines") return (100 - 100 * 10 ** -value).toFixed(Math.min(12, Math.max(0, Math.ceil(value - 2 - 1e-9)))) + " %";
    const size = Math.abs(value) || 1, steps = STEPS[unit] || LARGE;
    const [factor, letters] = steps.find(([factor]) => size >= factor * 0.9995) || steps.at(-1);
    return (digits(value / factor) + " " + letters + (letters && unit === "ops/s" ? " " : "") + unit).trim();
  };

  const span = (from, to) => print(from, "s") + " … " + print(to, "s");

  // A place in a picture as it was drawn, alone or with the one upright; 0 is none.
  const PLACES = /([MLH(])([\d.]+)(?:([ V])([\d.]+))?/g;
  const points = path => [...path.getAttribute("d").matchAll(PLACES)].map(([, act, x, , y]) => ({ act, x: +x, y: +y }));

  class Axis {
    // Its groups of ticks, and the places of its ends.
    constructor(groups, from, to, which) {
      const { name, unit, axis } = groups[0].dataset;
      const [low, high, log] = axis.split(" ").map(Number), all = [low, high];
      Object.assign(this, { name, unit, from, to, all, range: all, wasLog: log > 0, log: log > 0 });
      this.texts = groups.flatMap(group => [...group.querySelectorAll("text")]).map(text => {
        const line = text.previousElementSibling;
        return { text, drawn: text.textContent, at: line && line.getAttribute("d").match(/[\d.]+/g)[which] };
      });
    }

    place(value, [low, high] = this.range, log = this.log) {
      const part = log ? Math.log(Math.max(0, value) / low) / Math.log(high / low) : (value - low) / (high - low);
      return this.from + (this.to - this.from) * Math.max(-999, Math.min(999, part));
    }

    value(place, [low, high] = this.range, log = this.log) {
      const part = (place - this.from) / (this.to - this.from);
      return log ? low * (high / low) ** part : low + part * (high - low);
    }

    drawn(place) { return this.value(place, this.all, this.wasLog); }
    moved(place) { return +place && this.place(this.drawn(+place)).toFixed(2); }
    isMoved() { return this.range !== this.all || this.log !== this.wasLog; }

    // The lines of the grid stay, and their texts say what they are at now.
    label() {
      const { name, unit } = this, long = unit.length > 3 && unit !== "nines";
      const title = !long ? name : name ? name + " (" + unit + ")" : unit;
      for (const { text, drawn, at } of this.texts) {
        text.textContent = !this.isMoved() ? drawn : at ? print(this.value(+at), long ? "" : unit) : title;
      }
    }
  }

  class Plot {
    constructor(figure) {
      this.picture = figure.querySelector(".picture");
      this.svg = set(this.picture.firstElementChild, { tabindex: 0, role: "group" });
      this.name = figure.dataset.name;
      const [edges, panels] = JSON.parse(figure.dataset.plot || "[null,[]]");
      this.edges = edges;
      const views = [...this.svg.querySelectorAll("svg")], box = views[0].viewBox.baseVal;
      this.x = new Axis([...this.svg.querySelectorAll(".x")], box.x + 4, box.x + box.width - 4, 0);
      this.isTime = this.x.name === "time" && this.x.unit === "s";
      this.lines = [...this.svg.querySelectorAll(".series")].map(group => ({
        group, points: points(group.querySelector(".line")), band: [...group.querySelectorAll(".band")].flatMap(points),
      })).filter(line => line.points.length);
      this.panes = views.map((view, i) => this.pane(view, this.svg.querySelectorAll(".y")[i], panels[i]));
      this.tip = element("div", { className: "tip", hidden: true });
      this.share = element("p", { className: "share", hidden: true });
      this.share.setAttribute("role", "status");
      this.picture.append(this.tip, this.share);
      this.picture.before(this.tools());
      this.keys();
      this.svg.addEventListener("keydown", event => {
        const act = { ArrowLeft: [-0.2, 1], ArrowRight: [0.2, 1], "+": [0, 0.5], "=": [0, 0.5], "-": [0, 2] }[event.key];
        if (act) { this.move(...act); event.preventDefault(); }
      });
    }

    pane(view, group, panel = []) {
      const columns = panel.map(([from, to, counts]) => {
        const cells = [];
        for (let i = 0, row = 0; i < counts.length; i += 2, row++) cells.push([row += counts[i], counts[i + 1]]);
        return [from, to, cells];
      });
      const box = view.viewBox.baseVal, own = name => document.createElementNS(view.namespaceURI, name);
      const parts = [...view.querySelectorAll("[d],[transform]")].map(part => {
        const name = part.hasAttribute("d") ? "d" : "transform";
        return [part, name, part.getAttribute(name)];
      });
      const y = new Axis([group], box.y + box.height - 4, box.y + 4, 1);
      const [cursor, pick, ground] = [set(own("path"), { class: "axis" }), set(own("rect"), { class: "pick" }), own("rect")];
      // Where nothing is drawn there is something to point at.
      view.prepend(set(ground, { x: box.x, y: box.y, width: box.width, height: box.height, fill: "transparent" }));
      view.append(cursor, pick);
      const pane = { view, y, columns, parts, cursor, pick, mark: null };
      this.listen(pane);
      return pane;
    }

    tools() {
      const y = this.panes[0].y, other = () => y.log ? "linear" : "log";
      const button = (textContent, title, act) => {
        const made = element("button", { type: "button", textContent, title });
        made.addEventListener("click", act);
        return made;
      };
      const scale = button(other(), "scale of the upright axis", () => {
        y.log = !y.log;
        scale.textContent = other();
        this.show();
      });
      const hasScale = this.lines.some(line => line.points.some(point => y.unit !== "nines" && y.drawn(point.y) > 0));
      const png = button("PNG", "save the picture", () => this.save());
      return element("div", { className: "tools" }, ...(hasScale ? [scale] : []), png);
    }

    // The names of the lines as switches.
    keys() {
      const groups = this.svg.querySelectorAll(".series");
      this.svg.querySelectorAll(".key").forEach((key, i) => {
        set(key, { role: "button", tabindex: 0, "aria-pressed": true });
        const act = () => {
          key.setAttribute("aria-pressed", !groups[i].toggleAttribute("hidden"));
          this.show();
        };
        key.addEventListener("click", act);
        key.addEventListener("keydown", event => { if (event.key === "Enter") act(); });
      });
    }

    save() {
      const { width, height } = this.svg.viewBox.baseVal, copy = this.svg.cloneNode(true), image = new Image();
      copy.prepend(document.querySelector("style").cloneNode(true));
      set(copy, { width: 2 * width, height: 2 * height, style: "background:var(--panel)", "data-theme": isDark() ? "dark" : "light" });
      image.addEventListener("load", () => {
        const canvas = element("canvas", { width: 2 * width, height: 2 * height });
        canvas.getContext("2d").drawImage(image, 0, 0);
        element("a", { href: canvas.toDataURL(), download: this.name + ".png" }).click();
      });
      image.src = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(copy));
    }

    shown() { return this.lines.filter(line => !line.group.hasAttribute("hidden")); }

    // The upright axis over what is seen.
    fit(y) {
      y.range = y.all;
      const shown = this.shown(), [from, to] = this.x.range;
      if (!this.x.isMoved() && shown.length === this.lines.length && !y.isMoved()) return;
      let low = Infinity, high = -Infinity;
      for (const point of shown.flatMap(line => [...line.points, ...line.band])) {
        const x = this.x.drawn(point.x), value = y.drawn(point.y);
        if (x < from || x > to) continue;
        if (!y.log || value > 0) low = Math.min(low, value);
        high = Math.max(high, value);
      }
      if (!(high > 0)) return;
      y.range = y.log ? [Math.min(low, high / 1.5) / 1.1, high * 1.25] : y.unit === "nines" ? [0, high] : [Math.min(0, low), high * 1.08];
    }

    show() {
      for (const pane of this.panes) {
        const { y } = pane;
        if (!this.edges) this.fit(y);
        for (const [part, name, text] of pane.parts) {
          part.setAttribute(name, text.replace(PLACES, (_, act, at, gap, up) => act + this.x.moved(at) + (gap ? gap + y.moved(up) : "")));
        }
        y.label();
        this.outline(pane);
      }
      this.x.label();
    }

    // Plots of time move together.
    linked() { return this.isTime ? plots.filter(plot => plot.isTime) : [this]; }

    zoom(low, high) {
      for (const plot of this.linked()) {
        const all = plot.x.all, range = [Math.max(all[0], low), Math.min(all[1], high)];
        const isPart = range[0] < range[1] && (range[0] > all[0] || range[1] < all[1]);
        plot.x.range = isPart ? range : all;
        plot.show();
      }
    }

    move(share, factor) {
      const { x } = this, width = x.to - x.from, from = x.from + width * (share + (1 - factor) / 2);
      this.zoom(x.value(from), x.value(from + width * factor));
    }

    point(value) {
      for (const { x, panes } of this.linked()) {
        for (const { cursor } of panes) cursor.setAttribute("d", value === null ? "" : "M" + x.place(value) + " 0v9999");
      }
    }

    // What every line is at the cursor.
    read(pane, px) {
      const { x } = this, { y } = pane, value = x.value(px), at = x.place(value, x.all);
      const rows = this.shown().slice(0, 12).map(({ group, points, band }) => {
        const best = points.reduce((a, b) => Math.abs(b.x - at) < Math.abs(a.x - at) ? b : a);
        const next = points[points.indexOf(best) + (best.x < at)];
        const isGap = next && next !== points[0] && next.act === "M" && next.x > at;
        const [high, low] = band.filter(corner => corner.x === best.x).map(corner => print(y.drawn(corner.y), y.unit));
        return group.dataset.name + ": " + (isGap ? "nothing" : print(y.drawn(best.y), y.unit) + (low ? " (" + low + " … " + high + ")" : ""));
      });
      return [print(value, x.unit), ...rows];
    }

    // What the cell at the cursor holds.
    count({ y, view, columns }, px, py) {
      const time = this.x.value(px), row = this.edges.findIndex(edge => y.value(py) < edge) - 1;
      const [from, to, cells] = columns.find(([, to]) => time <= to) || columns.at(-1);
      const counts = those => those.reduce((sum, [, n]) => sum + n, 0).toLocaleString("en");
      const rows = this.panes.length > 1 ? [view.previousElementSibling.textContent] : [];
      rows.push(span(from, to));
      if (row >= 0) rows.push(span(...this.edges.slice(row, row + 2)), counts(cells.filter(cell => cell[0] === row)) + " of " + counts(cells) + " operations");
      return rows;
    }

    say(pane, [px, py]) {
      this.tip.textContent = (this.edges ? this.count(pane, px, py) : this.read(pane, px)).join("\n");
      this.tip.hidden = false;
      const { width, height } = this.svg.viewBox.baseVal;
      this.tip.style.left = 100 * px / width + "%";
      this.tip.style.top = 100 * pane.y.to / height + "%";
      this.tip.style.translate = px > width / 2 ? "calc(-100% - 14px)" : "14px";
    }

    // The rectangle between two places of a pane.
    mark(pane, a, b) {
      this.unmark();
      if (Math.hypot(a[0] - b[0], this.edges ? a[1] - b[1] : 0) < 5) return;
      const range = (axis, i) => [axis.value(a[i]), axis.value(b[i])].sort((m, n) => m - n);
      pane.mark = { x: range(this.x, 0), y: this.edges ? range(pane.y, 1) : pane.y.range };
      this.outline(pane);
      if (this.edges) this.weigh(pane);
    }

    outline({ mark, pick, y }) {
      const [left, right] = mark ? mark.x.map(value => this.x.place(value)) : [0, 0];
      const [bottom, top] = mark ? mark.y.map(value => y.place(value)) : [0, 0];
      set(pick, { x: left, y: top, width: right - left, height: bottom - top });
    }

    // The share of the operations that is in the rectangle.
    weigh({ mark: { x, y }, columns }) {
      let inside = 0, all = 0;
      for (const [from, to, cells] of columns) {
        const time = (from + to) / 2;
        for (const [row, n] of cells) {
          const latency = Math.sqrt(this.edges[row] * this.edges[row + 1]);
          all += n;
          if (time >= x[0] && time <= x[1] && latency >= y[0] && latency <= y[1]) inside += n;
        }
      }
      this.share.textContent = digits(100 * inside / (all || 1)) + " % of the operations (" + inside.toLocaleString("en") + ") took "
        + span(...y) + ", within " + span(...x);
      this.share.hidden = false;
    }

    unmark() {
      for (const pane of this.panes) { pane.mark = null; this.outline(pane); }
      this.share.hidden = true;
    }

    reset() { this.unmark(); if (this.x.isMoved()) this.zoom(-Infinity, Infinity); }

    listen(pane) {
      const { view, y } = pane, { x } = this;
      let drag = null;
      const within = (at, low, high) => Math.min(Math.max(at, low), high);
      const place = event => {
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
        return [within(at.x, x.from, x.to), within(at.y, y.to, y.from)];
      };
      view.addEventListener("pointerdown", event => {
        if (event.isTrusted) view.setPointerCapture(event.pointerId);
        drag = place(event);
      });
      view.addEventListener("pointermove", event => {
        const at = place(event);
        if (drag) this.mark(pane, drag, at);
        this.point(x.value(at[0]));
        this.say(pane, at);
      });
      view.addEventListener("pointerup", event => {
        if (drag) this.mark(pane, drag, place(event));
        drag = null;
        const { mark } = pane;
        if (this.edges || !mark) return;
        this.unmark();
        this.zoom(...mark.x);
      });
      view.addEventListener("pointerleave", () => {
        this.tip.hidden = true;
        if (!drag) this.point(null);
      });
      view.addEventListener("dblclick", () => this.reset());
    }
  }

  // `#job=…&theme=…` says what is shown and how.
  const words = () => new URLSearchParams(location.hash.slice(1));
  const say = (name, value) => {
    const all = words();
    all.set(name, value);
    location.replace("#" + all);
  };
  const sections = [...document.querySelectorAll("section.job")];
  const names = new Set(sections.map(section => section.dataset.job));
  const option = (value, textContent) => element("option", { value, textContent });
  const chooser = element("select", { title: "show one job" }, option("", "all jobs"), ...[...names].map(name => option(name, name)));
  chooser.addEventListener("change", () => say("job", chooser.value));
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const theme = element("button", { type: "button", textContent: "light / dark" });
  theme.addEventListener("click", () => say("theme", isDark() ? "light" : "dark"));
  document.querySelector("header").append(element("nav", {}, ...(names.size > 1 ? [chooser] : []), theme));
  const obey = () => {
    root.dataset.theme = words().get("theme") || "";
    const job = words().get("job"), isKnown = names.has(job);
    for (const section of sections) section.hidden = isKnown && section.dataset.job !== job;
    chooser.value = isKnown ? job : "";
  };

  for (const figure of document.querySelectorAll("figure[data-plot]")) {
    try { plots.push(new Plot(figure)); } catch (error) { reportError(error); }
  }
  obey();
  addEventListener("hashchange", obey);
  addEventListener("keydown", event => { if (event.key === "Escape") plots.forEach(plot => plot.reset()); });
  root.dataset.ready = "1";
})();
