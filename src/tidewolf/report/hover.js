"use strict";
(() => {
  const tip = document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip", hidden: true }));
  tip.setAttribute("role", "status");
  const say = (x) => {
    const size = Math.abs(x);
    if (size === 0) return "0";
    if (size >= 1e9 || size < 1e-3) return x.toExponential(1);
    return size >= 1000 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(4)));
  };
  const row = (color, name, value) => {
    const line = document.createElement("div"), dot = document.createElement("i");
    dot.style.background = `var(--line-${color})`;
    line.append(dot, name, Object.assign(document.createElement("b"), { textContent: value }));
    return line;
  };
  const show = (x, y, ...parts) => {
    tip.replaceChildren(...parts);
    tip.hidden = false;
    const width = tip.offsetWidth, height = tip.offsetHeight, seen = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(8, Math.min(x + 14, seen - width - 8))}px`;
    tip.style.top = `${y - height - 14 < 4 ? y + 18 : y - height - 14}px`;
  };
  const hide = () => { tip.hidden = true; };
  const head = (text) => Object.assign(document.createElement("strong"), { textContent: text });
  const inside = (svg, event) => {
    const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    return [((event.clientX - box.left) / box.width) * view.width, ((event.clientY - box.top) / box.height) * view.height];
  };
  const mark = (svg, name, set) => {
    const made = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(set)) made.setAttribute(key, value);
    return svg.appendChild(made);
  };
  const listen = (element, move, leave = hide) => {
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerdown", move);
    element.addEventListener("pointerleave", leave);
  };
  addEventListener("scroll", hide, { passive: true });

  for (const figure of document.querySelectorAll("figure[data-told]")) {
    const svg = figure.querySelector("svg"), told = JSON.parse(figure.dataset.told);
    if (told.dots) {
      listen(svg, (event) => {
        const [x, y] = inside(svg, event);
        const far = (dot) => Math.hypot(dot[0] - x, dot[1] - y);
        const near = told.dots.reduce((best, dot) => (far(dot) < far(best) ? dot : best), [1e9, 1e9]);
        if (far(near) < 24) show(event.clientX, event.clientY, row(near[2], near[3], "")); else hide();
      });
      continue;
    }
    const names = [...figure.querySelectorAll(".legend span")].map((each) => each.textContent);
    const place = ([from, to, low, high], value) => low + ((value - from) / (to - from)) * (high - low);
    const guide = mark(svg, "path", { class: "guide", d: "" });
    const dots = told.lines.map((_, i) => mark(svg, "circle", { class: "dot", r: 3.5, style: `fill: var(--line-${told.hues[i]})` }));
    let chosen = told.at.length - 1;
    const leave = () => { hide(); guide.setAttribute("d", ""); dots.forEach((dot) => dot.removeAttribute("cx")); };
    const tell = (clientX, clientY) => {
      const x = place(told.x, told.at[chosen]);
      guide.setAttribute("d", `M${x} ${told.y[3]}V${told.y[2]}`);
      dots.forEach((dot, i) => { dot.setAttribute("cx", x); dot.setAttribute("cy", place(told.y, told.lines[i][chosen])); });
      const lines = told.lines.map((values, i) => row(told.hues[i], names[i], say(values[chosen])));
      show(clientX, clientY, head(`round ${told.at[chosen].toLocaleString("en")}`), ...lines);
    };
    listen(svg, (event) => {
      const round = place([told.x[2], told.x[3], told.x[0], told.x[1]], inside(svg, event)[0]);
      chosen = told.at.reduce((best, at, i) => (Math.abs(at - round) < Math.abs(told.at[best] - round) ? i : best), 0);
      tell(event.clientX, event.clientY);
    }, leave);
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      chosen = Math.max(0, Math.min(told.at.length - 1, chosen + step));
      const box = svg.getBoundingClientRect();
      tell(box.left + (place(told.x, told.at[chosen]) / svg.viewBox.baseVal.width) * box.width, box.top + box.height / 3);
    });
  }

  for (const map of document.querySelectorAll("[data-heat]")) {
    const svg = map.querySelector("svg"), told = JSON.parse(map.dataset.heat);
    const names = [...map.querySelectorAll("li")].map((each) => each.textContent);
    const bytes = Uint8Array.from(atob(told.values), (letter) => letter.charCodeAt(0));
    const values = new DataView(bytes.buffer);
    listen(svg, (event) => {
      const [x, y] = inside(svg, event), parts = told.ends.length;
      const column = Math.max(0, Math.min(parts - 1, Math.floor(x))), line = Math.max(0, Math.min(told.rows - 1, Math.floor(y)));
      const value = (values.getInt16(2 * (line * parts + column), true) / 32767) * told.scale;
      const from = told.begins[column], to = told.ends[column];
      const when = from === to ? `round ${from.toLocaleString("en")}` : `rounds ${from.toLocaleString("en")} to ${to.toLocaleString("en")}`;
      const words = document.createElement("div");
      words.append(`${names[line]} `, Object.assign(document.createElement("b"), { textContent: String(Number(value.toPrecision(3))) }));
      show(event.clientX, event.clientY, head(when), words);
    });
  }

  for (const title of document.querySelectorAll(".network title")) {
    const part = title.parentNode, words = title.textContent;
    title.remove();
    listen(part, (event) => show(event.clientX, event.clientY, words));
  }
})();
