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
    dot.style.background = `var(--${color})`;
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
  const moment = (tooltip, i) => {
    const round = `round ${tooltip.at[i].toLocaleString("en")}`;
    return tooltip.when ? `${tooltip.when[i]} (${round})` : round;
  };
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

  for (const plot of document.querySelectorAll(".plot[data-tooltip]")) {
    const svg = plot.querySelector("svg"), tooltip = JSON.parse(plot.dataset.tooltip);
    if (tooltip.dots) {
      listen(svg, (event) => {
        const [x, y] = inside(svg, event);
        const far = (dot) => Math.hypot(dot[0] - x, dot[1] - y);
        const near = tooltip.dots.reduce((best, dot) => (far(dot) < far(best) ? dot : best), [1e9, 1e9]);
        if (far(near) < 24) show(event.clientX, event.clientY, row(near[2], near[3], "")); else hide();
      });
      continue;
    }
    const share = ([, , low, high], at) => Math.max(0, Math.min(.9999, (at - low) / (high - low)));
    if (tooltip.cells) {
      listen(svg, (event) => {
        const [x, y] = inside(svg, event);
        const line = Math.floor(tooltip.names.length * (1 - share(tooltip.y, y)) - 1e-9), column = Math.floor(tooltip.when.length * share(tooltip.x, x));
        const words = document.createElement("div");
        words.append(`${tooltip.names[line]} `, Object.assign(document.createElement("b"), { textContent: say(tooltip.cells[line][column]) }));
        show(event.clientX, event.clientY, head(tooltip.when[column]), words);
      });
      continue;
    }
    const names = [...plot.closest("figure").querySelectorAll(".legend span")].map((each) => each.textContent);
    const place = ([from, to, low, high], value) => low + ((value - from) / (to - from)) * (high - low);
    const guide = mark(svg, "path", { class: "guide", d: "" });
    const dots = tooltip.lines.map((_, i) => mark(svg, "circle", { class: "dot", r: 3.5, style: `fill: var(--line-${tooltip.hues[i]})` }));
    let chosen = tooltip.at.length - 1;
    const leave = () => { hide(); guide.setAttribute("d", ""); dots.forEach((dot) => dot.removeAttribute("cx")); };
    const tell = (clientX, clientY) => {
      const x = place(tooltip.x, tooltip.at[chosen]);
      guide.setAttribute("d", `M${x} ${tooltip.y[3]}V${tooltip.y[2]}`);
      dots.forEach((dot, i) => { dot.setAttribute("cx", x); dot.setAttribute("cy", place(tooltip.y, (tooltip.tops || tooltip.lines)[i][chosen])); });
      const lines = tooltip.lines.map((values, i) => row(`line-${tooltip.hues[i]}`, names[i], say(values[chosen])));
      show(clientX, clientY, head(moment(tooltip, chosen)), ...lines);
    };
    listen(svg, (event) => {
      const round = place([tooltip.x[2], tooltip.x[3], tooltip.x[0], tooltip.x[1]], inside(svg, event)[0]);
      chosen = tooltip.at.reduce((best, at, i) => (Math.abs(at - round) < Math.abs(tooltip.at[best] - round) ? i : best), 0);
      tell(event.clientX, event.clientY);
    }, leave);
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      chosen = Math.max(0, Math.min(tooltip.at.length - 1, chosen + step));
      const box = svg.getBoundingClientRect();
      tell(box.left + (place(tooltip.x, tooltip.at[chosen]) / svg.viewBox.baseVal.width) * box.width, box.top + box.height / 3);
    });
  }
})();
