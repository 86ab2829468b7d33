"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const slider = byId("slider"), now = byId("now"), zoom = byId("zoom"), chooser = byId("episode"), run = byId("run");
  let view = null, time = 0, running = null;

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const make = (tag, parent, text) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  };

  /* ---- axes ---- */
  const niceStep = (span, count) => {
    const raw = span / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= raw);
  };

  const label = (value, step) => {
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
    return Math.abs(value) >= 1e6 ? value.toExponential(1) : value.toFixed(digits);
  };

  const surface = (canvas) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    return { pen, width, height };
  };

  const axes = (canvas, low, high, start, end, unit) => {
    const { pen, width, height } = surface(canvas);
    const left = 48, right = width - 8, top = 8, bottom = height - 24;
    if (!(high > low)) { low -= 0.5; high += 0.5; }
    const margin = 0.06 * (high - low);
    low -= margin; high += margin;
    const x = (value) => left + (value - start) / (end - start || 1) * (right - left);
    const y = (value) => bottom - (value - low) / (high - low) * (bottom - top);
    pen.lineWidth = 1;
    pen.strokeStyle = color("line");
    pen.fillStyle = color("soft");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const stepY = niceStep(high - low, height / 45);
    for (let value = Math.ceil(low / stepY) * stepY; value <= high; value += stepY) {
      pen.beginPath(); pen.moveTo(left, y(value)); pen.lineTo(right, y(value)); pen.stroke();
      pen.fillText(label(value, stepY), left - 6, y(value));
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const stepX = niceStep(end - start || 1, width / 90);
    for (let value = Math.ceil(start / stepX) * stepX; value <= end + 1e-9; value += stepX) {
      pen.beginPath(); pen.moveTo(x(value), bottom); pen.lineTo(x(value), bottom + 4); pen.stroke();
      pen.fillText(label(value, stepX) + unit, Math.min(x(value), width - 16), bottom + 7);
    }
    pen.save();
    pen.beginPath(); pen.rect(left, top - 6, right - left + 1, bottom - top + 12); pen.clip();
    return { pen, x, y, left, right, top, bottom, start, end };
  };

  const line = (plot, xs, ys, style, width, alpha = 1, dash = []) => {
    const { pen } = plot;
    pen.strokeStyle = style;
    pen.lineWidth = width;
    pen.globalAlpha = alpha;
    pen.setLineDash(dash);
    pen.beginPath();
    let down = false;
    for (let index = 0; index < xs.length; index++) {
      if (ys[index] === null || ys[index] === undefined) { down = false; continue; }
      const px = plot.x(xs[index]), py = plot.y(ys[index]);
      if (down) pen.lineTo(px, py); else pen.moveTo(px, py);
      down = true;
    }
    pen.stroke();
    pen.globalAlpha = 1;
    pen.setLineDash([]);
  };

  /* ---- the episode ---- */
  const range = () => {
    const span = Number(zoom.value);
    if (!span || span >= view.duration) return [0, view.duration];
    const start = Math.max(0, Math.min(time - span / 2, view.duration - span));
    return [start, start + span];
  };

  const chunkAt = (when) => {
    let found = view.chunks[0];
    for (const chunk of view.chunks) if (chunk.time <= when + 1e-6) found = chunk; else break;
    return found;
  };

  const limits = (column) => {
    let low = Infinity, high = -Infinity;
    const take = (values) => { for (const value of values) if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); } };
    take(view.recorded[column]);
    take(view.executed[column]);
    for (const chunk of view.chunks) if (chunk.rows.length) take(chunk.rows[column]);
    return [low, high];
  };

  const drawPlot = (canvas, column) => {
    const [start, end] = range(), [low, high] = canvas.limits;
    const plot = axes(canvas, low, high, start, end, " s");
    const chunk = chunkAt(time), orange = color("predicted");
    line(plot, view.times, view.recorded[column], color("recorded"), 3, 0.75);
    for (const other of view.chunks) {
      if (!other.rows.length || other.time > end || other.time + data.period * data.horizon < start) continue;
      line(plot, other.rows[column].map((_, row) => other.time + row * data.period), other.rows[column], orange, 1.2, 0.45);
    }
    line(plot, view.times, view.executed[column], color("executed"), 1.6);
    if (chunk && chunk.rows.length) {
      const xs = chunk.rows[column].map((_, row) => chunk.time + row * data.period);
      line(plot, xs, chunk.rows[column], orange, 2.6);
      plot.pen.fillStyle = orange;
      for (let row = 0; row < xs.length; row++) {
        plot.pen.beginPath(); plot.pen.arc(plot.x(xs[row]), plot.y(chunk.rows[column][row]), 2.4, 0, 7); plot.pen.fill();
      }
    }
    plot.pen.strokeStyle = color("cursor");
    plot.pen.lineWidth = 1.5;
    plot.pen.beginPath(); plot.pen.moveTo(plot.x(time), plot.top - 6); plot.pen.lineTo(plot.x(time), plot.bottom); plot.pen.stroke();
    plot.pen.restore();
    canvas.cursor = plot.x(time);
    canvas.plot = plot;
  };

  const drawTimeline = () => {
    const { pen, width, height } = surface(byId("timeline"));
    const x = (value) => 4 + value / (view.duration || 1) * (width - 8);
    pen.fillStyle = color("back");
    pen.fillRect(4, 10, width - 8, height - 22);
    pen.strokeStyle = color("line");
    pen.strokeRect(4, 10, width - 8, height - 22);
    for (const moment of view.moments) {
      pen.fillStyle = moment.kind === "hold" ? color("stop") : moment.kind === "chunk" ? color("predicted") : color("executed");
      pen.fillRect(x(moment.time) - 1.5, 10, 3, height - 22);
    }
    pen.fillStyle = color("cursor");
    pen.fillRect(x(time) - 1, 4, 2, height - 10);
  };

  const showPictures = () => {
    const chunk = chunkAt(time);
    for (const image of byId("pictures").querySelectorAll("img")) {
      const picture = chunk && chunk.pictures[image.dataset.camera];
      if (picture) image.src = `data:image/jpeg;base64,${picture}`; else image.removeAttribute("src");
    }
  };

  const show = () => {
    now.textContent = `${time.toFixed(2)} of ${view.duration.toFixed(1)} s`;
    slider.value = view.duration ? 1000 * time / view.duration : 0;
    for (const canvas of byId("plots").querySelectorAll("canvas")) drawPlot(canvas, Number(canvas.dataset.column));
    drawTimeline();
    showPictures();
  };

  const go = (seconds) => { time = Math.max(0, Math.min(seconds, view.duration)); show(); };

  const stop = () => { if (running) cancelAnimationFrame(running); running = null; run.textContent = "▶ play"; };

  const play = () => {
    if (running) { stop(); return; }
    if (time >= view.duration - 0.01) time = 0;
    run.textContent = "❚❚ pause";
    let last = performance.now();
    const step = (stamp) => {
      go(time + (stamp - last) / 1000);
      last = stamp;
      if (time >= view.duration) stop(); else running = requestAnimationFrame(step);
    };
    running = requestAnimationFrame(step);
  };

  const listMoments = () => {
    const list = byId("moments");
    list.replaceChildren();
    if (!view.moments.length) make("li", list, "none in this episode");
    for (const moment of view.moments.slice(0, 200)) {
      const item = make("li", list);
      make("time", item, `${moment.time.toFixed(2)} s`);
      make("span", item, ` ${moment.text || moment.reason}`);
      item.addEventListener("click", () => go(moment.time));
    }
  };

  const choose = (number) => {
    stop();
    view = data.episodes[number];
    chooser.value = String(number);
    for (const row of document.querySelectorAll("tr.choose")) row.classList.toggle("chosen", Number(row.dataset.episode) === number);
    zoom.value = view.duration > 30 ? "20" : "0";
    const pictures = byId("pictures"), cameras = view.chunks.length ? Object.keys(view.chunks[0].pictures) : [];
    pictures.replaceChildren();
    for (const camera of cameras) {
      const figure = make("figure", pictures);
      make("figcaption", figure, camera);
      const image = make("img", figure);
      image.alt = `camera ${camera} at the cursor`;
      image.dataset.camera = camera;
    }
    for (const canvas of byId("plots").querySelectorAll("canvas")) canvas.limits = limits(Number(canvas.dataset.column));
    listMoments();
    go(view.chunks.length ? view.chunks[0].time : 0);
  };

  /* ---- once ---- */
  data.columns.forEach((name, column) => {
    const figure = make("figure", byId("plots")), caption = make("figcaption", figure);
    make("b", caption, name);
    make("span", caption, data.errors[column] === null ? "" : `  mean error ${data.errors[column]}`);
    const canvas = make("canvas", figure);
    canvas.dataset.column = column;
    canvas.setAttribute("aria-label", `${name} over time: recorded, predicted and sent`);
    canvas.addEventListener("click", (event) => {
      const { left, right, start, end } = canvas.plot;
      go(start + (event.offsetX - left) / (right - left) * (end - start));
    });
  });

  const drawHorizon = () => {
    for (const canvas of byId("horizon").querySelectorAll("canvas")) {
      const curves = data.horizon_errors[canvas.dataset.group];
      const all = Object.values(curves).flat().filter((value) => value !== null);
      const rows = curves.policy.map((_, row) => row);
      const plot = axes(canvas, 0, all.length ? Math.max(...all) : 1, 0, Math.max(rows.length - 1, 1), "");
      line(plot, rows, curves.hold_still, color("recorded"), 2, 1, [6, 4]);
      line(plot, rows, curves.repeat_last, color("executed"), 2, 1, [6, 4]);
      line(plot, rows, curves.policy, color("predicted"), 2.6);
      plot.pen.restore();
    }
  };
  for (const group of Object.keys(data.horizon_errors)) {
    const figure = make("figure", byId("horizon"));
    const caption = make("figcaption", figure);
    make("b", caption, group);
    make("span", caption, "  mean absolute error by row of the chunk");
    make("canvas", figure).dataset.group = group;
  }

  data.episodes.forEach((episode, number) => { make("option", chooser, episode.name).value = String(number); });
  chooser.addEventListener("change", () => choose(Number(chooser.value)));
  slider.addEventListener("input", () => go(Number(slider.value) / 1000 * view.duration));
  zoom.addEventListener("change", show);
  run.addEventListener("click", play);
  byId("timeline").addEventListener("click", (event) => go(event.offsetX / event.currentTarget.clientWidth * view.duration));
  for (const row of document.querySelectorAll("tr.choose")) {
    const open = () => { choose(Number(row.dataset.episode)); byId("player").scrollIntoView({ behavior: "smooth" }); };
    row.addEventListener("click", open);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
  }
  for (const button of document.querySelectorAll("button.jump")) {
    /* The first such moment of the worst episode that has one; errors are all over an episode. */
    button.addEventListener("click", () => {
      const of = (number) => data.episodes[number].moments.find((moment) => moment.kind === button.dataset.kind);
      const number = data.order.find(of);
      choose(number === undefined ? data.order[0] : number);
      if (number !== undefined) go(of(number).time);
      byId("player").scrollIntoView({ behavior: "smooth" });
    });
  }
  const redraw = () => { drawHorizon(); show(); };
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  choose(data.first);
  drawHorizon();
})();
