/** Maps values to places along an axis, and says where its marks are. */
export interface Scale {
  readonly ticks: readonly number[];
  readonly at: (value: number) => number;
}

/** An axis from `low` to `high`, widened to round numbers. */
export function linearScale(low: number, high: number, from: number, to: number, wanted = 5): Scale {
  const span = high > low ? high - low : Math.max(1, Math.abs(high));
  const step = roundStep(span / wanted);
  const first = Math.floor(low / step + 1e-9) * step;
  const last = Math.ceil((high > low ? high : low + span) / step - 1e-9) * step;
  const count = Math.round((last - first) / step);
  return {
    ticks: Array.from({ length: count + 1 }, (_, i) => rounded(first + i * step)),
    at: (value) => from + ((value - first) / (last - first)) * (to - from),
  };
}

/** A logarithmic axis; all values must be above 0. */
export function logScale(low: number, high: number, from: number, to: number): Scale {
  const decades = Math.log10(high / low);
  const steps = decades > 4 ? [1] : decades > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)) - 1; power <= Math.ceil(Math.log10(high)); power++) {
    for (const step of steps) ticks.push(rounded(step * 10 ** power));
  }
  const first = ticks.findLast((tick) => tick <= low) ?? low;
  const last = ticks.find((tick) => tick >= high && tick > first) ?? high;
  const width = Math.log(last / first);
  return {
    ticks: ticks.filter((tick) => tick >= first && tick <= last),
    at: (value) => from + (Math.log(Math.max(value, first) / first) / width) * (to - from),
  };
}

/** Marks at given values alone, evenly apart: levels that were tested. */
export function pointScale(values: readonly number[], from: number, to: number): Scale {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return {
    ticks: values,
    at: (value) => (high === low ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from)),
  };
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5, 10].find((step) => step * power >= rough) ?? 10;
  return factor * power;
}

function rounded(value: number): number {
  return Number(value.toPrecision(12));
}
