// Replaces the still pictures of the page by ones that can be looked into: dragging zooms, Esc shows
// everything again, a click on a name hides its line, arrows and + - move and zoom, and a cursor runs
// over all plots of time at once. On a heat map dragging marks a rectangle, and says its share. All text goes into text nodes or onto a canvas, never into markup.
"use strict";
(() => {
  const root = document.documentElement;
  let errors = 0;
  const failed = () => { root.dataset.errors = String(++errors); };
  root.dataset.errors = "0";
  addEventListener("error", failed);
  addEventListener("unhandledrejection", failed);

  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = [];
  const element = (name, properties, ...inside) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...inside);
    return made;
  };
  const color = name => getComputedStyle(root).getPropertyValue("--" + name).trim();

  // Numbers as the tables of the page print them: three digits and a prefix.
  const SMALL = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  const LARGE = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const BINARY = [[2 ** 30, "Gi"], [2 ** 20, "Mi"], [1024, "Ki"], [1, ""]];
  const prefix = (unit, most) => {
    const steps = unit === "s" ? SMALL : unit === "B" ? BINARY
      : unit === "%" || unit === "nines" ? [[1, ""]] : LARGE;
    return steps.find(([factor]) => most >= factor * 0.9995) || steps[steps.length - 1];
  };
  const withPrefix = (unit, letters) => letters && unit === "ops/s" ? letters + " " + unit
    : letters + (unit === "nines" ? "percentile" : unit);
  const digits = value => {
    if (value === 0) return "0";
    const before = Math.floor(Math.log10(Math.abs(value))) + 1;
    return value.toFixed(Math.min(12, Math.max(0, 3 - before)));
  };
  const nines = value => (100 - 100 * 10 ** -value).toFixed(Math.min(12, Math.max(0, Math.ceil(value - 2 - 1e-9))));
  const print = (value, unit) => {
    if (unit === "nines") return nines(value) + " %";
    const [factor, letters] = prefix(unit, Math.abs(value));
    return (digits(value / factor) + " " + withPrefix(unit, letters)).trim();
  };

  const ticks = (axis, [low, high]) => {
    const found = [];
    if (axis.unit === "nines") {
      const all = (high < 5.5 ? [0, Math.log10(2)] : [0]).concat(Array.from({ length: 18 }, (_, i) => i + 1));
      return all.filter(at => at >= low && at <= high).map(at => [at, at < 0.5 && at > 0 ? "50" : nines(at)]);
    }
    if (axis.log) {
      const base = axis.unit === "B" || (axis.unit === "" && high / low < 5000) ? 2 : 10;
      const multiples = base === 10 && high / low < 300 ? [1, 2, 5] : [1];
      const last = Math.ceil(Math.log(high) / Math.log(base));
      for (let power = Math.floor(Math.log(low) / Math.log(base)); power <= last; power++) {
        for (const multiple of multiples) {
          const at = multiple * base ** power;
          if (at >= low * 0.999 && at <= high * 1.001) found.push(at);
        }
      }
      if (found.length > 1) {
        const every = Math.ceil(found.length / 9);
        return found.filter((_, i) => i % every === 0).map(at => {
          const [factor, letters] = prefix(axis.unit, at);
          return [at, (String(+(at / factor).toPrecision(3)) + " " + withPrefix(axis.unit, letters)).trim()];
        });
      }
      return [[low, print(low, axis.unit)], [high, print(high, axis.unit)]];
    }
    const factor = prefix(axis.unit, Math.max(Math.abs(low), Math.abs(high)))[0];
    const rough = (high - low) / factor / 6;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find(m => m * power >= rough * 0.999) * power;
    const after = Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
    for (let i = Math.ceil(low / factor / step - 1e-9); i * step <= high / factor + 1e-9 * step; i++) {
      found.push([i * step * factor, (i * step).toFixed(after)]);
    }
    return found;
  };
  const titled = (axis, high) => {
    const unit = axis.log ? "" : withPrefix(axis.unit, prefix(axis.unit, high)[1]);
    return !unit ? axis.name : axis.name ? axis.name + " (" + unit + ")" : unit;
  };

  const LEFT = 66, RIGHT = 18, ABOVE = 26, BELOW = 42, HEIGHT = 300;

  class Plot {
    constructor(figure, data) {
      Object.assign(this, { figure, data, hidden: new Set(), zoom: null, cursor: null, drag: null });
      this.panels = 1;
      this.yLog = data.y.log;
      this.isTime = data.x.name === "time" && data.x.unit === "s";
      this.picture = figure.querySelector(".picture");
      const still = this.picture.querySelector("svg");
      this.canvas = element("canvas", { tabIndex: 0 });
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", still.getAttribute("aria-label"));
      this.tip = element("div", { className: "tip", hidden: true });
      still.setAttribute("hidden", "");
      still.style.display = "none";
      this.picture.append(this.canvas, this.tip);
      this.picture.before(this.tools());
      this.listen();
    }

    tools() {
      const bar = element("div", { className: "tools" });
      if (this.data.lines.length > 1) {
        this.data.lines.forEach((line, i) => {
          const sample = element("canvas", { width: 52, height: 12 });
          sample.style.cssText = "width:26px;height:6px;flex:none";
          const key = element("button", { className: "key", type: "button" }, sample, line.name);
          key.setAttribute("aria-pressed", "true");
          key.addEventListener("click", () => {
            if (!this.hidden.delete(i)) this.hidden.add(i);
            key.setAttribute("aria-pressed", String(!this.hidden.has(i)));
            this.draw();
          });
          bar.append(key);
          line.sample = sample;
        });
      }
      bar.append(element("span", { className: "gap" }));
      if (this.data.y.unit !== "nines" && this.lowest() > 0) {
        const scale = element("button", { type: "button" });
        const say = () => { scale.textContent = this.yLog ? "linear" : "log"; };
        say();
        scale.title = "scale of the upright axis";
        scale.addEventListener("click", () => { this.yLog = !this.yLog; say(); this.draw(); });
        bar.append(scale);
      }
      const png = element("button", { type: "button", textContent: "PNG", title: "save the picture" });
      png.addEventListener("click", () => this.canvas.toBlob(blob => {
        const link = element("a", { href: URL.createObjectURL(blob), download: this.data.name + ".png" });
        link.click();
        URL.revokeObjectURL(link.href);
      }));
      bar.append(png);
      return bar;
    }

    lowest() {
      let least = Infinity;
      for (const line of this.data.lines) for (const y of line.y) if (y > 0 && y < least) least = y;
      return isFinite(least) ? least : 0;
    }

    shown() { return this.data.lines.filter((_, i) => !this.hidden.has(i)); }
    xRange() { return this.zoom || this.data.x.range; }

    yRange() {
      const axis = this.data.y;
      if (!this.zoom && !this.hidden.size && this.yLog === axis.log) return axis.range;
      const [from, to] = this.xRange();
      let low = Infinity, high = -Infinity;
      for (const line of this.shown()) {
        line.y.forEach((y, i) => {
          if (y === null || line.x[i] < from || line.x[i] > to) return;
          const least = line.low && line.low[i] !== null ? line.low[i] : y;
          const most = line.high && line.high[i] !== null ? line.high[i] : y;
          if (!this.yLog || least > 0) low = Math.min(low, least);
          high = Math.max(high, most);
        });
      }
      if (!(high > low || high > 0)) return axis.range;
      if (this.yLog) return [Math.min(low, high / 1.5) / 1.1, high * 1.25];
      return axis.unit === "nines" ? [0, high] : [Math.min(0, low), high * 1.08];
    }

    places() {
      const [x0, x1] = this.xRange(), [y0, y1] = this.yRange();
      const width = this.width - LEFT - RIGHT, height = HEIGHT - ABOVE - BELOW;
      const share = (v, low, high, log) => log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low);
      return {
        x: v => LEFT + width * share(v, x0, x1, this.data.x.log),
        y: v => ABOVE + height * (1 - share(v, y0, y1, this.yLog)),
        back: px => {
          const part = (px - LEFT) / width;
          return this.data.x.log ? x0 * (x1 / x0) ** part : x0 + part * (x1 - x0);
        },
      };
    }

    draw() {
      this.width = Math.max(280, this.picture.clientWidth);
      const density = devicePixelRatio || 1;
      this.canvas.width = this.width * density;
      this.canvas.height = HEIGHT * this.panels * density;
      const pen = this.canvas.getContext("2d");
      pen.scale(density, density);
      pen.font = "12px system-ui, sans-serif";
      pen.fillStyle = color("panel");
      pen.fillRect(0, 0, this.width, HEIGHT * this.panels);
      for (let panel = 0; panel < this.panels; panel++) {
        pen.save();
        pen.translate(0, panel * HEIGHT);
        this.drawPanel(pen, panel);
        pen.restore();
      }
      for (const line of this.data.lines) if (line.sample) this.sample(line);
    }

    drawPanel(pen, panel) {
      const at = this.places();
      const right = this.width - RIGHT, bottom = HEIGHT - BELOW;
      this.grid(pen, at, right, bottom);
      pen.beginPath();
      pen.rect(LEFT - 4, ABOVE - 4, right - LEFT + 8, bottom - ABOVE + 8);
      pen.clip();
      for (const [from, to] of this.shades(panel)) {
        pen.fillStyle = color("shade");
        pen.fillRect(at.x(from), ABOVE, Math.max(1, at.x(to) - at.x(from)), bottom - ABOVE);
      }
      this.body(pen, at, panel, bottom);
      this.marks(pen, at, right, bottom);
    }

    shades() { return this.data.shades; }

    body(pen, at, panel, bottom) {
      for (const line of this.shown()) this.line(pen, at, line, bottom);
    }

    grid(pen, at, right, bottom) {
      const axis = { ...this.data.y, log: this.yLog };
      pen.lineWidth = 1;
      pen.strokeStyle = color("grid");
      pen.fillStyle = color("dim");
      pen.textAlign = "right";
      for (const [value, text] of ticks(axis, this.yRange())) {
        const y = Math.round(at.y(value)) + 0.5;
        pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(right, y); pen.stroke();
        pen.fillText(text, LEFT - 7, y + 4);
      }
      pen.textAlign = "center";
      let free = -Infinity;
      for (const [value, text] of ticks(this.data.x, this.xRange())) {
        const x = Math.round(at.x(value)) + 0.5, half = pen.measureText(text).width / 2;
        pen.beginPath(); pen.moveTo(x, ABOVE); pen.lineTo(x, bottom); pen.stroke();
        if (x - half > free) { pen.fillText(text, Math.min(x, this.width - half - 1), bottom + 17); free = x + half + 6; }
      }
      pen.strokeStyle = color("dim");
      pen.beginPath(); pen.moveTo(LEFT, bottom + 0.5); pen.lineTo(right, bottom + 0.5); pen.stroke();
      pen.fillText(titled(this.data.x, this.xRange()[1]), (LEFT + right) / 2, bottom + 35);
      pen.textAlign = "left";
      pen.fillText(titled(axis, this.yRange()[1]), 8, ABOVE - 10);
    }

    line(pen, at, line, bottom) {
      const ink = color("line" + line.slot);
      // What lies below a logarithmic axis is on its edge.
      const height = value => this.yLog && !(value > 0) ? bottom : at.y(value);
      if (line.low) {
        pen.fillStyle = ink;
        pen.globalAlpha = 0.22;
        let piece = [];
        const close = () => {
          if (piece.length > 1) {
            pen.beginPath();
            piece.forEach(i => pen.lineTo(at.x(line.x[i]), height(line.high[i])));
            piece.reverse().forEach(i => pen.lineTo(at.x(line.x[i]), height(line.low[i])));
            pen.fill();
          }
          piece = [];
        };
        line.low.forEach((low, i) => { if (low === null) close(); else piece.push(i); });
        close();
        pen.globalAlpha = 1;
      }
      pen.strokeStyle = ink;
      pen.lineWidth = 1.8;
      pen.lineJoin = "round";
      pen.setLineDash(data.dashes[line.slot].split(" ").filter(Boolean).map(Number));
      pen.beginPath();
      let joined = false, before = 0;
      line.y.forEach((y, i) => {
        if (y === null) { joined = false; return; }
        const px = at.x(line.x[i]), py = height(y);
        if (!joined) pen.moveTo(px, py);
        else {
          if (line.shape === "steps") pen.lineTo(px, before);
          pen.lineTo(px, py);
        }
        joined = true;
        before = py;
      });
      pen.stroke();
      pen.setLineDash([]);
      if (line.shape === "dots") {
        pen.fillStyle = ink;
        line.y.forEach((y, i) => {
          if (y === null) return;
          pen.beginPath(); pen.arc(at.x(line.x[i]), height(y), 3, 0, 7); pen.fill();
        });
      }
    }

    sample(line) {
      const pen = line.sample.getContext("2d");
      pen.clearRect(0, 0, 52, 12);
      pen.strokeStyle = color("line" + line.slot);
      pen.lineWidth = 4;
      pen.setLineDash(data.dashes[line.slot].split(" ").filter(Boolean).map(n => 2 * n));
      pen.beginPath(); pen.moveTo(0, 6); pen.lineTo(52, 6); pen.stroke();
    }

    marks(pen, at, right, bottom) {
      // Readable upon a line.
      const label = (text, x, y) => {
        pen.save();
        pen.setLineDash([]);
        pen.strokeStyle = color("panel");
        pen.lineWidth = 3;
        pen.strokeText(text, x, y);
        pen.fillText(text, x, y);
        pen.restore();
      };
      pen.strokeStyle = color("text");
      pen.fillStyle = color("text");
      pen.lineWidth = 1;
      for (const [value, upright, name] of this.data.rules) {
        pen.setLineDash([3, 3]);
        pen.beginPath();
        if (upright) {
          const x = at.x(value), left = x < (LEFT + right) / 2;
          pen.moveTo(x, ABOVE); pen.lineTo(x, bottom);
          pen.textAlign = left ? "left" : "right";
          label(name, left ? x + 5 : x - 5, bottom - 8);
        } else if (!this.yLog || value > 0) {
          const y = at.y(value);
          pen.moveTo(LEFT, y); pen.lineTo(right, y);
          pen.textAlign = "right";
          label(name, right - 4, y < ABOVE + 16 ? y + 14 : y - 5);
        }
        pen.stroke();
        pen.setLineDash([]);
      }
      if (this.cursor !== null) {
        const x = at.x(this.cursor);
        pen.beginPath(); pen.moveTo(x, ABOVE); pen.lineTo(x, bottom); pen.stroke();
      }
      this.dragged(pen, bottom);
    }

    dragged(pen, bottom) {
      if (!this.drag) return;
      pen.globalAlpha = 0.15;
      pen.fillRect(Math.min(...this.drag), ABOVE, Math.abs(this.drag[1] - this.drag[0]), bottom - ABOVE);
      pen.globalAlpha = 1;
    }

    // Plots of time move together.
    linked() { return this.isTime ? plots.filter(plot => plot.isTime) : [this]; }

    setZoom(range) {
      const [low, high] = this.data.x.range;
      if (range) {
        range = [Math.max(low, range[0]), Math.min(high, range[1])];
        if (!(range[1] > range[0])) return;
      }
      for (const plot of this.linked()) {
        const all = plot.data.x.range;
        plot.zoom = range && range[0] < all[1] ? [range[0], Math.min(all[1], range[1])] : null;
        plot.draw();
      }
    }

    move(share, factor) {
      const [low, high] = this.xRange();
      if (this.data.x.log) {
        const width = Math.log(high / low) * factor, middle = Math.log(low * high) / 2 + share * width;
        this.setZoom([Math.exp(middle - width / 2), Math.exp(middle + width / 2)]);
      } else {
        const width = (high - low) * factor, middle = (low + high) / 2 + share * width;
        this.setZoom([middle - width / 2, middle + width / 2]);
      }
    }

    point(x) {
      for (const plot of this.linked()) { plot.cursor = x; plot.draw(); }
    }

    // What every line is at the cursor.
    tell(px) {
      const x = this.cursor, unit = this.data.y.unit;
      const rows = [print(x, this.data.x.unit)];
      for (const line of this.shown().slice(0, 12)) {
        let best = -1, least = Infinity;
        line.x.forEach((at, i) => {
          const away = this.data.x.log ? Math.abs(Math.log(at / x)) : Math.abs(at - x);
          if (away < least) { least = away; best = i; }
        });
        if (best < 0) continue;
        const y = line.y[best];
        let text = line.name + ": " + (y === null ? "nothing" : print(y, unit));
        if (line.low && line.low[best] !== null) text += " (" + print(line.low[best], unit) + " … " + print(line.high[best], unit) + ")";
        rows.push(text);
      }
      this.say(rows, px, 30);
    }

    say(rows, px, py) {
      this.tip.textContent = rows.join("\n");
      this.tip.hidden = false;
      const left = px > this.width / 2;
      this.tip.style.left = left ? "auto" : px + 14 + "px";
      this.tip.style.right = left ? this.width - px + 14 + "px" : "auto";
      this.tip.style.top = py + "px";
    }

    beginDrag([px]) { this.drag = [px, px]; }
    continueDrag([px]) { this.drag[1] = px; }

    endDrag(drag) {
      if (Math.abs(drag[1] - drag[0]) > 5) {
        this.setZoom(drag.map(this.places().back).sort((a, b) => a - b));
      } else this.draw();
    }

    reset() { if (this.zoom) this.setZoom(null); }

    listen() {
      // Where a pointer is, on the canvas.
      const inside = event => {
        const box = this.canvas.getBoundingClientRect();
        const px = event.clientX - box.left;
        return [Math.min(Math.max(px, LEFT), this.width - RIGHT), event.clientY - box.top];
      };
      this.canvas.addEventListener("pointerdown", event => {
        if (event.isTrusted) this.canvas.setPointerCapture(event.pointerId);
        this.beginDrag(inside(event));
      });
      this.canvas.addEventListener("pointermove", event => {
        const place = inside(event);
        if (this.drag) this.continueDrag(place);
        this.point(this.places().back(place[0]));
        this.tell(...place);
      });
      this.canvas.addEventListener("pointerup", () => {
        const drag = this.drag;
        this.drag = null;
        if (drag) this.endDrag(drag);
      });
      this.canvas.addEventListener("pointerleave", () => {
        this.tip.hidden = true;
        if (!this.drag) this.point(null);
      });
      this.canvas.addEventListener("dblclick", () => this.reset());
      this.canvas.addEventListener("keydown", event => {
        const act = {
          ArrowLeft: () => this.move(-0.2, 1), ArrowRight: () => this.move(0.2, 1),
          "+": () => this.move(0, 0.5), "=": () => this.move(0, 0.5), "-": () => this.move(0, 2),
        }[event.key];
        if (act) { act(); event.preventDefault(); }
      });
    }
  }

  // Counts of time and latency: a cell is the stronger the more it holds, by its logarithm.
  class HeatMap extends Plot {
    constructor(figure, data) {
      super(figure, Object.assign(data, { lines: [], rules: [] }));
      this.panels = data.panels.length;
      this.marked = null;
      this.share = element("p", { className: "share", hidden: true });
      this.share.setAttribute("role", "status");
      this.picture.append(this.share);
    }

    shades(panel) { return this.data.panels[panel].shades; }

    body(pen, at, panel, bottom) {
      pen.drawImage(this.cells(panel), 0, 0, this.width, HEIGHT);
      const { name } = this.data.panels[panel];
      if (this.panels > 1) {
        pen.fillStyle = color("text");
        pen.textAlign = "right";
        pen.fillText(name, this.width - RIGHT - 4, ABOVE + 12);
      }
      if (this.marked && this.marked.panel === panel) {
        const { x, y } = this.marked;
        pen.strokeStyle = color("text");
        pen.lineWidth = 1.5;
        pen.strokeRect(at.x(x[0]), at.y(y[1]), at.x(x[1]) - at.x(x[0]), at.y(y[0]) - at.y(y[1]));
      }
    }

    // A picture of the cells, which stay the same while the cursor moves.
    cells(panel) {
      const density = devicePixelRatio || 1, ink = color("line0");
      const key = [this.width, density, ink, this.xRange()].join();
      this.kept = this.kept || [];
      const kept = this.kept[panel];
      if (kept && kept.key === key) return kept.canvas;
      const canvas = element("canvas", { width: this.width * density, height: HEIGHT * density });
      const pen = canvas.getContext("2d"), at = this.places();
      const [from, to] = this.xRange(), all = Math.log1p(this.data.most);
      const round = v => Math.round(v * density);
      pen.fillStyle = ink;
      this.each(panel, (start, end, row, n) => {
        if (end < from || start > to) return;
        const left = round(at.x(start)), top = round(at.y(this.data.edges[row + 1]));
        pen.globalAlpha = 0.12 + 0.88 * Math.log1p(n) / all;
        pen.fillRect(left, top, Math.max(1, round(at.x(end)) - left),
          Math.max(1, round(at.y(this.data.edges[row])) - top));
      });
      this.kept[panel] = { key, canvas };
      return canvas;
    }

    // Every cell of a panel that holds something: its begin and end, its row, its count.
    each(panel, see) {
      const { ends, columns } = this.data.panels[panel];
      columns.forEach((runs, i) => {
        for (const [first, ...counts] of runs) counts.forEach((n, j) => { if (n > 0) see(ends[i], ends[i + 1], first + j, n); });
      });
    }

    place([px, py]) {
      const panel = Math.min(this.panels - 1, Math.max(0, Math.floor(py / HEIGHT)));
      const [low, high] = this.data.y.range, height = HEIGHT - ABOVE - BELOW;
      const part = 1 - (py - panel * HEIGHT - ABOVE) / height;
      return { panel, x: this.places().back(px), y: low * (high / low) ** Math.min(1, Math.max(0, part)) };
    }

    tell(px, py) {
      const { panel, x, y } = this.place([px, py]), { ends, name } = this.data.panels[panel];
      const column = ends.findIndex((end, i) => i > 0 && x <= end) - 1;
      if (column < 0) return;
      const row = this.data.edges.findIndex(edge => y < edge) - 1;
      let here = 0, all = 0;
      for (const [first, ...counts] of this.data.panels[panel].columns[column]) {
        counts.forEach((n, j) => { all += n; if (first + j === row) here = n; });
      }
      const rows = [print(ends[column], "s") + " … " + print(ends[column + 1], "s")];
      if (this.panels > 1) rows.unshift(name);
      if (row >= 0 && row + 1 < this.data.edges.length) {
        rows.push(print(this.data.edges[row], "s") + " … " + print(this.data.edges[row + 1], "s"));
        rows.push(here.toLocaleString("en") + " of " + all.toLocaleString("en") + " operations");
      }
      this.say(rows, px, panel * HEIGHT + 30);
    }

    beginDrag(place) { this.drag = [place, place]; }
    continueDrag(place) { this.drag[1] = place; this.mark(this.drag); }
    dragged() {}

    endDrag(drag) { this.mark(drag); this.draw(); }

    // The rectangle between two places, and what share of the operations is in it.
    mark(drag) {
      const [a, b] = drag.map(place => this.place(place));
      const order = (one, other) => [Math.min(one, other), Math.max(one, other)];
      if (Math.abs(drag[1][0] - drag[0][0]) < 5 && Math.abs(drag[1][1] - drag[0][1]) < 5) return this.unmark();
      const panel = a.panel, x = order(a.x, b.x);
      const y = b.panel === panel ? order(a.y, b.y) : [b.panel > panel ? this.data.y.range[0] : a.y, b.panel > panel ? a.y : this.data.y.range[1]];
      let inside = 0, all = 0;
      this.each(panel, (start, end, row, n) => {
        all += n;
        const time = (start + end) / 2, latency = Math.sqrt(this.data.edges[row] * this.data.edges[row + 1]);
        if (time >= x[0] && time <= x[1] && latency >= y[0] && latency <= y[1]) inside += n;
      });
      this.marked = { panel, x, y };
      const share = all > 0 ? 100 * inside / all : 0;
      this.share.textContent = digits(share) + " % of the operations (" + inside.toLocaleString("en") + ") took "
        + print(y[0], "s") + " … " + print(y[1], "s") + " between " + print(x[0], "s") + " and " + print(x[1], "s");
      this.share.hidden = false;
    }

    unmark() { this.marked = null; this.share.hidden = true; }
    reset() { this.unmark(); super.reset(); this.draw(); }
  }

  // `#job=…&theme=…` says what is shown and how.
  const words = () => new URLSearchParams(location.hash.slice(1));
  const say = (name, value) => {
    const all = words();
    if (value) all.set(name, value); else all.delete(name);
    const text = all.toString();
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
    obey();
  };
  const redraw = () => plots.forEach(plot => { if (plot.figure.offsetParent !== null) plot.draw(); });
  const obey = () => {
    const theme = words().get("theme");
    if (theme === "dark" || theme === "light") root.dataset.theme = theme; else delete root.dataset.theme;
    const job = words().get("job");
    const sections = [...document.querySelectorAll("section.job")];
    const is = section => section.dataset.job === job;
    const known = sections.some(is);
    for (const section of sections) section.hidden = known && !is(section);
    if (chooser) chooser.value = known ? job : "";
    redraw();
  };
  const bar = element("nav", {});
  const names = [...document.querySelectorAll("section.job")].map(section => section.dataset.job);
  let chooser = null;
  if (names.length > 1) {
    chooser = element("select", { title: "show one job" }, element("option", { value: "", textContent: "all jobs" }));
    for (const name of new Set(names)) chooser.append(element("option", { value: name, textContent: name }));
    chooser.addEventListener("change", () => say("job", chooser.value));
    bar.append(chooser);
  }
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const theme = element("button", { type: "button", textContent: "light / dark" });
  theme.addEventListener("click", () => say("theme", isDark() ? "light" : "dark"));
  bar.append(theme);
  document.querySelector("header").append(bar);

  document.querySelectorAll("figure[data-plot]").forEach((figure, i) => {
    try { plots.push(new (data.plots[i].panels ? HeatMap : Plot)(figure, data.plots[i])); } catch (error) { failed(); console.error(error); }
  });
  try { obey(); } catch (error) { failed(); console.error(error); }
  addEventListener("hashchange", obey);
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("keydown", event => {
    if (event.key === "Escape") plots.forEach(plot => plot.reset());
  });
  root.dataset.ready = "1";
})();
