import { escape } from "../escape.ts";

/** Colours that stay apart for colour-blind eyes, one set per ground. */
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#a64d9b", "#3b9fd9", "#b58900", "#7a5c3e", "#5f6b7a", "#c2185b"];
const DARK = ["#56b4e9", "#ff9f4a", "#3ddc9f", "#e08fd3", "#9bd3ff", "#f0d44c", "#d0a77c", "#b4bfcc", "#ff7aa8"];

const STYLE = `
svg.wp{--g:#fff;--i:#16191d;--q:#5b6470;--l:#d8dde3;--h:#0b57d0;${vars(LIGHT)}font:12px system-ui,sans-serif}
@media(prefers-color-scheme:dark){svg.wp{--g:#14171b;--i:#e8eaed;--q:#9aa4b0;--l:#343b44;--h:#8ab4f8;${vars(DARK)}}}
svg.wp text{fill:var(--i)}svg.wp .q{fill:var(--q)}svg.wp .t{font-weight:600;font-size:13px}
svg.wp .grid{stroke:var(--l);stroke-width:1}svg.wp .axis{stroke:var(--q);stroke-width:1}
svg.wp .line{fill:none;stroke-width:2;stroke-linejoin:round}svg.wp .thin{fill:none;stroke-width:1.2;stroke-linejoin:round}
svg.wp .limit{stroke:var(--i);stroke-width:1.2;stroke-dasharray:5 4}svg.wp .dot{stroke:var(--g);stroke-width:1.2}
${LIGHT.map((_, at) => `svg.wp .s${at}{stroke:var(--s${at})}svg.wp .f${at}{fill:var(--s${at})}`).join("")}`
  .trim()
  .replaceAll("\n", "");

export const COLOURS: number = LIGHT.length;

/** A whole figure; `label` is what it says to those who cannot see it. */
export function figure(width: number, height: number, label: string, content: readonly string[]): string {
  return (
    `<svg class="wp" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escape(label)}">` +
    `<style>${STYLE}</style><rect width="${width}" height="${height}" fill="var(--g)"/>${content.join("")}</svg>`
  );
}

/** A text; `anchor` is where it is held. */
export function text(
  x: number,
  y: number,
  content: string,
  options: { readonly anchor?: "start" | "middle" | "end"; readonly kind?: string; readonly rotate?: number } = {},
): string {
  const { anchor = "start", kind, rotate } = options;
  const turn = rotate === undefined ? "" : ` transform="rotate(${rotate} ${n(x)} ${n(y)})"`;
  const style = kind === undefined ? "" : ` class="${kind}"`;
  return `<text x="${n(x)}" y="${n(y)}" text-anchor="${anchor}"${style}${turn}>${escape(content)}</text>`;
}

export function line(x1: number, y1: number, x2: number, y2: number, kind: string): string {
  return `<line x1="${n(x1)}" y1="${n(y1)}" x2="${n(x2)}" y2="${n(y2)}" class="${kind}"/>`;
}

/** A line through points. */
export function path(points: readonly (readonly [x: number, y: number])[], kind: string): string {
  if (points.length === 0) return "";
  return `<path d="M${points.map(([x, y]) => `${n(x)} ${n(y)}`).join("L")}" class="${kind}"/>`;
}

export function dot(x: number, y: number, kind: string, radius = 3.5): string {
  return `<circle cx="${n(x)}" cy="${n(y)}" r="${radius}" class="dot ${kind}"/>`;
}

/** About how wide a text is, for leaving room. */
export function widthOf(content: string): number {
  return content.length * 6.4;
}

/** Two decimals are a hundredth of a pixel. */
export function n(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function vars(colours: readonly string[]): string {
  return colours.map((colour, at) => `--s${at}:${colour};`).join("");
}
