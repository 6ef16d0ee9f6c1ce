/** One of several processes that make a load together; started by `process-group.ts`. */
import { NS_PER_SECOND } from "../../../core/clock.ts";
import type { RollingSlice } from "../../../measure/rolling/rolling-metrics.ts";
import { type OwnLoad, startOwnLoad } from "./compose.ts";
import type { LoadNews, LoadOrder, LoadReport } from "./process-messages.ts";
import { RecordsOutput } from "./records-output.ts";

const NEWS_MS = 1000;

let toldSeconds = 0;
let begin: (load: OwnLoad) => void = () => {};
/** Orders may come before there is anything to follow them. */
const begun = new Promise<OwnLoad>((resolve) => (begin = resolve));

// Ctrl-C reaches every process of a terminal; when to end is for the one that started this to say.
process.on("SIGINT", () => {});
process.on("disconnect", () => process.exit(1));
process.on("message", (order: LoadOrder) => {
  if (order.kind === "concurrency") void begun.then(({ run }) => run.setConcurrency(order.concurrency));
  else if (order.kind === "stop") void begun.then(({ run }) => run.stop({ drainMs: order.drainMs }));
  else start(order).catch((error: unknown) => end({ kind: "failed", message: String(error) }, 1));
});
tell({ kind: "ready" });

async function start({
  prepared,
  index,
  of,
  originHrtimeNs,
  recordsPath,
}: LoadOrder & { kind: "start" }): Promise<void> {
  const records = recordsPath === undefined ? undefined : new RecordsOutput(recordsPath, prepared.settings.tokenTimes);
  const share = { index, of, originHrtimeNs: BigInt(originHrtimeNs) };
  const own = await startOwnLoad(prepared, { onRecord: (record) => records?.add(record) }, share);
  begin(own);
  const timer = setInterval(() => tell({ kind: "news", news: newsOf(own) }), NEWS_MS);
  await own.run.finished;
  clearInterval(timer);
  await own.close();
  await records?.close();
  end({ kind: "finished", news: newsOf(own, 1) }, 0);
}

/** Seconds that are over do not change any more; at the end the last one counts too. */
function newsOf({ run, userFailures }: OwnLoad, ahead = 0): LoadNews {
  const { totals, health, seconds } = run.summary();
  const untilSecond = Math.floor(run.nowNs() / NS_PER_SECOND) + ahead;
  const slices: RollingSlice[] = [];
  for (; toldSeconds < untilSecond; toldSeconds++) {
    const slice = run.metrics.slice(toldSeconds);
    if (slice !== undefined) slices.push(slice);
  }
  const inFlight = run.metrics.inFlight();
  return {
    seconds,
    accounts: run.accounts(),
    totals: totals.toData(),
    health,
    inFlight,
    slices,
    userFailures: userFailures(),
  };
}

function tell(report: LoadReport): void {
  if (process.connected) process.send?.(report);
}

/** Not before the last word has left. */
function end(report: LoadReport, code: number): void {
  if (process.connected) process.send?.(report, () => process.exit(code));
  else process.exit(code);
}
