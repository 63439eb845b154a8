import { createSvg } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 120;
/** Keeps the line's width and its end inside. */
const MARGIN = 6;

/**
 * Draws how arrivals add up over time, as steps. `arrivals` have `at` (ms) and `lamports`, oldest
 * first; there is at least one. The SVG stretches to its box, so it has no text.
 */
export function drawPlot(arrivals, now, label) {
  const total = arrivals.reduce((sum, { lamports }) => sum + lamports, 0n);
  const last = Math.max(now, arrivals.at(-1).at + 1_000);
  // The line starts a little before the first arrival.
  const first = arrivals[0].at - Math.max(1_000, (last - arrivals[0].at) * 0.08);
  const toX = (at) => round(((at - first) / (last - first)) * (WIDTH - MARGIN));
  const toY = (sum) =>
    round(HEIGHT - MARGIN - (Number((sum * 10_000n) / total) / 10_000) * (HEIGHT - 2 * MARGIN));

  let sum = 0n;
  let line = `M0 ${toY(0n)}`;
  for (const { at, lamports } of arrivals) {
    sum += lamports;
    line += `H${toX(at)}V${toY(sum)}`;
  }
  line += `H${WIDTH - MARGIN}`;
  return createSvg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
      class: "plot",
    },
    createSvg("path", { class: "area", d: `${line}V${HEIGHT}H0Z` }),
    createSvg("path", { class: "line", d: line }),
    // A line without length, whose round ends do not stretch.
    createSvg("path", { class: "end", d: `M${WIDTH - MARGIN} ${toY(total)}h0` }),
  );
}

const round = (value) => Math.round(value * 10) / 10;
