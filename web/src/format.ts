/** A number and its unit, apart, so that the unit can be set smaller. */
export interface Quantity {
  readonly value: string;
  readonly unit: string;
}

/** Stands where there is nothing to tell. */
export const NOTHING = "–";

const whole: Intl.NumberFormat = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function formatCount(value: number): string {
  return whole.format(value);
}

/** Milliseconds up to a second, seconds from there on, with three digits at most. */
export function duration(milliseconds: number): Quantity {
  if (milliseconds < 10) return { value: milliseconds.toFixed(1), unit: "ms" };
  if (milliseconds < 1000) return { value: milliseconds.toFixed(0), unit: "ms" };
  return { value: (milliseconds / 1000).toFixed(milliseconds < 10_000 ? 2 : 1), unit: "s" };
}

export function share(value: number): Quantity {
  const percent = 100 * value;
  return { value: percent.toFixed(percent !== 0 && percent < 0.95 ? 2 : 1), unit: "%" };
}

export function rate(value: number): Quantity {
  return { value: value < 100 ? value.toFixed(value < 10 ? 2 : 1) : formatCount(value), unit: "/s" };
}

export function plain(value: number): Quantity {
  return { value: formatCount(value), unit: "" };
}

export function written({ value, unit }: Quantity): string {
  return unit === "%" || unit === "/s" || unit === "" ? `${value}${unit === "%" ? " %" : unit}` : `${value} ${unit}`;
}

/** Where there is little room: rates stand without their unit, shares close to it. */
export function short(quantity: Quantity): string {
  const { value, unit } = quantity;
  return unit === "/s" ? value : unit === "%" ? `${value}%` : written(quantity);
}

/** Ticks of an axis are round numbers, so they need no more digits than they have. */
export function tick(value: number, { unit }: Quantity): string {
  if (unit === "%") return `${Number((100 * value).toPrecision(3))} %`;
  if (unit === "ms" || unit === "s") return value >= 1000 ? `${value / 1000} s` : `${value} ms`;
  return value >= 1000 ? `${value / 1000}k` : String(value);
}

/** A cost in whatever unit a policy counts in. */
export function formatCost(value: number): string {
  return Math.abs(value) >= 100 ? formatCount(value) : String(Number(value.toPrecision(3)));
}

/** How far a live value is from a baseline, in per cent of it: `−32 %`, or `× 4.2` where it is a multiple. */
export function difference(live: number, baseline: number): string {
  if (baseline === 0) return live === 0 ? "±0 %" : "";
  const ratio = live / baseline;
  if (ratio >= 2) return `× ${ratio.toFixed(ratio < 10 ? 1 : 0)}`;
  const percent = Math.round((100 * (live - baseline)) / baseline);
  return percent === 0 ? "±0 %" : `${percent > 0 ? "+" : "−"}${formatCount(Math.abs(percent))} %`;
}

export function seconds(milliseconds: number): string {
  const count = Math.max(0, Math.round(milliseconds / 1000));
  return count < 90 ? `${count} s` : `${Math.round(count / 60)} min`;
}
