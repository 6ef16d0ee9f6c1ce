/** One measurement of ticks; started by `bench.ts` with what to measure, prints the figures as JSON. */
import { keepTicksFast } from "../../src/cli/fast-ticks.ts";

export interface TicksRequest {
  /** Whether one tick is kept from the beginning. */
  readonly isKept: boolean;
}

const COLLECTIONS = 10;
const WARM_UP = 100_000;
const MEASURED = 1_000_000;

const { isKept } = JSON.parse(process.argv[2] ?? "{}") as TicksRequest;
if (isKept) void keepTicksFast();
const freshNs = await nsPerTick();
for (let i = 0; i < COLLECTIONS; i++) {
  globalThis.gc?.();
  await ticks(1);
}
process.stdout.write(`${JSON.stringify({ freshNs, laterNs: await nsPerTick() })}\n`);

async function nsPerTick(): Promise<number> {
  await ticks(WARM_UP);
  const before = process.cpuUsage();
  await ticks(MEASURED);
  const { user, system } = process.cpuUsage(before);
  return (1000 * (user + system)) / MEASURED;
}

/** So many ticks, one after the other. */
function ticks(count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    const next = (): void => {
      if (--left > 0) process.nextTick(next);
      else resolve();
    };
    process.nextTick(next);
  });
}
