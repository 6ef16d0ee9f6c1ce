import { UNAVAILABLE, type Unavailable } from "../../core/request-record.ts";
import type { Reading } from "./reading.ts";

/** What stands in a table where there is nothing to say. */
export const NOTHING = "–";

/** A whole number with separators. */
export function whole(value: number | undefined): string {
  return isNumber(value) ? Math.round(value).toLocaleString("en-US") : NOTHING;
}

/** A number with as many decimals as make three digits, or as told. */
export function number(value: number | undefined, decimals?: number): string {
  if (!isNumber(value)) return NOTHING;
  const size = Math.abs(value);
  const places = decimals ?? (size >= 100 ? 0 : size >= 10 ? 1 : 2);
  return value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
}

/** A reading in milliseconds, without its unit. */
export function ms(reading: Reading): string {
  switch (reading.state) {
    case "ok":
      return number(reading.value);
    case "between":
      return `${number(reading.low)}–${number(reading.high)}`;
    case "not-reached":
      return "not reached";
    case "too-few":
      return "too few";
    case "unavailable":
      return NOTHING;
  }
}

/** A duration for a sentence. */
export function duration(valueMs: number | undefined): string {
  if (!isNumber(valueMs)) return NOTHING;
  return Math.abs(valueMs) >= 1000 ? `${number(valueMs / 1000)} s` : `${number(valueMs)} ms`;
}

/** A share in per cent. */
export function percent(share: number | Unavailable | undefined, decimals = 1): string {
  return share === UNAVAILABLE || !isNumber(share) ? NOTHING : `${(100 * share).toFixed(decimals)} %`;
}

/** A change with its sign. */
export function signed(value: number | undefined, decimals?: number): string {
  if (!isNumber(value)) return NOTHING;
  const written = number(Math.abs(value), decimals);
  return Number(written.replaceAll(",", "")) === 0 ? written : `${value < 0 ? "−" : "+"}${written}`;
}

/** A relative change in per cent. */
export function signedPercent(change: number | undefined): string {
  return isNumber(change) ? `${signed(100 * change, 1)} %` : NOTHING;
}

/** A difference of two shares. */
export function points(difference: number | undefined): string {
  return isNumber(difference) ? `${signed(100 * difference, 1)} pp` : NOTHING;
}

/** A number that a target may not be able to tell. */
export function known(value: number | Unavailable | undefined): number | undefined {
  return value === UNAVAILABLE ? undefined : value;
}

/** Bytes as people count memory. */
export function gigabytes(bytes: number | undefined): string {
  return isNumber(bytes) ? `${number(bytes / 1e9, 1)} GB` : NOTHING;
}

function isNumber(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value);
}
