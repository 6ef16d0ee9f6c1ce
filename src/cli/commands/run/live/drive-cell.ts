import { NS_PER_SECOND } from "../../../../core/clock.ts";
import { type RequestRecord, UNAVAILABLE, type Unavailable } from "../../../../core/request-record.ts";
import type { Cell } from "../../../../lab/experiment/cells.ts";
import type { Experiment } from "../../../../lab/experiment/types.ts";
import { cellWorkload, type PreparedTrace } from "../../../../lab/experiment/workload.ts";
import { LiveWindow } from "../../../../lab/live/live-window.ts";
import type { SentPrompts } from "../../../../lab/live/prompt-ledger.ts";
import type { OpenCell } from "../../../../lab/live/target.ts";
import type { WarmUpFacts } from "../../../../lab/preflight/checks.ts";
import { type PageHistory, Sampler } from "../../../../lab/sampler/sampler.ts";
import type { ClientHealth } from "../../../../loadgen/client-health.ts";
import { startLoad } from "../../../../loadgen/start-load.ts";
import { SymbolicPrompts } from "../../../../loadgen/symbolic-prompts.ts";
import type { LoadTarget } from "../../../../loadgen/types.ts";
import type { MeasurementWindow } from "../../../../measure/window.ts";
import { CeilingSource } from "../ceiling-source.ts";
import { HashedPrompts } from "./hashed-prompts.ts";
import { httpText } from "./http-page.ts";
import { OpenRequests } from "./open-requests.ts";
import { waitUntil } from "./wait-until.ts";

const SAMPLE_SECONDS = 1;

/** A cell to be driven on a target that is ready for it. */
export interface DriveRequest {
  readonly experiment: Experiment;
  readonly trace: PreparedTrace | undefined;
  readonly cell: Cell;
  readonly open: OpenCell;
  readonly signal: AbortSignal;
  /** Told what the warm-up has shown, before the window; a false ends the cell there. */
  readonly mayGoOn: (facts: WarmUpFacts) => boolean;
}

/** What came of driving a cell. */
export interface DrivenCell {
  readonly records: readonly RequestRecord[];
  readonly window: MeasurementWindow;
  readonly warmUp: { readonly seconds: number; readonly requests: number };
  readonly cacheCeiling: number | Unavailable;
  readonly sent: SentPrompts;
  readonly histories: readonly PageHistory[];
  readonly client: ClientHealth;
  /** Rows of a replayed trace that were never sent. */
  readonly unsentRows: number | undefined;
  /** Rows of the trace, where there is one. */
  readonly rows: number | undefined;
}

/** Sends the requests of a cell and records what becomes of them; undefined if it was ended before its end. */
export async function driveCell(request: DriveRequest): Promise<DrivenCell | undefined> {
  const { experiment, trace, cell, open, signal } = request;
  if (experiment.cacheState === "primed" && !(await prime(request))) return undefined;
  const { source, lastDueNs } = cellWorkload(experiment, cell, trace);
  const window = new LiveWindow(experiment, lastDueNs);
  const ceiling = new CeilingSource(source, cell.fleet.blockTokens, window.measured);
  const requests = new OpenRequests(ceiling);
  const prompts = new HashedPrompts(new SymbolicPrompts(cell.seeds.workload, open.prompts));
  const records: RequestRecord[] = [];
  const run = startLoad({
    target: loadTarget(open),
    source: requests,
    prompts,
    timeoutMs: timeoutMs(experiment),
    onRecord: (record) => {
      records.push(record);
      requests.settled(record.id);
      if (record.account === "completed") window.completed();
    },
  });
  const sampler = new Sampler({ pages: open.pages, clock: run, read: httpText });
  sampler.start((experiment.live?.sampleSeconds ?? SAMPLE_SECONDS) * 1000);
  try {
    if (!(await waitUntil(() => window.begin(run.nowNs()), signal))) return undefined;
    await sampler.sample();
    if (!request.mayGoOn(warmUpFacts(cell, records, await open.eventsApplied()))) return undefined;
    const { measured } = window;
    const isOver = (): boolean =>
      window.hasPlannedEnd ? run.nowNs() >= measured.endNs : requests.isOver(run.nowNs(), measured.drainNs);
    if (!(await waitUntil(isOver, signal))) return undefined;
    if (!window.hasPlannedEnd) window.end(requests.lastDueNs);
    await sampler.sample();
    // The load goes on while the window's last requests are waited for, so that no emptying fleet serves them.
    const lastNs = measured.endNs + measured.drainNs;
    if (!(await waitUntil(() => requests.hasSettled(measured) || run.nowNs() >= lastNs, signal))) return undefined;
  } finally {
    sampler.stop();
    await run.stop({ drainMs: 0 });
  }
  return {
    records,
    window: window.measured,
    warmUp: window.warmUp,
    cacheCeiling: ceiling.ceiling ?? UNAVAILABLE,
    sent: prompts.sent,
    histories: sampler.histories,
    client: run.clientHealth(),
    rows: trace?.rows.length,
    unsentRows: experiment.load.speed === undefined ? undefined : (trace?.rows.length ?? 0) - records.length,
  };
}

/** Sends the same requests once, without measuring them; false if it was ended before its end. */
async function prime({ experiment, trace, cell, open, signal }: DriveRequest): Promise<boolean> {
  const { source, lastDueNs } = cellWorkload(experiment, cell, trace);
  const seconds = experiment.warmUpSeconds + (experiment.windowSeconds ?? 0);
  const run = startLoad({
    target: loadTarget(open),
    source,
    prompts: new SymbolicPrompts(cell.seeds.workload, open.prompts),
    durationNs: lastDueNs === undefined ? seconds * NS_PER_SECOND : lastDueNs + 1,
    endsWhenIdle: lastDueNs === Infinity,
    drainMs: experiment.drainSeconds * 1000,
    timeoutMs: timeoutMs(experiment),
  });
  const stop = (): void => void run.stop({ drainMs: 0 });
  signal.addEventListener("abort", stop);
  await run.finished;
  signal.removeEventListener("abort", stop);
  return !signal.aborted;
}

function loadTarget({ url, model, body }: OpenCell): LoadTarget {
  // Conversations that open alike are answered each in its own way, as on the twin; a request in every arm in the same way.
  const seedsAnswers = !("seed" in body);
  return { url, model, extraBody: body, seedsAnswers, apiKey: process.env["WARMPATH_API_KEY"] };
}

function timeoutMs({ timeoutSeconds }: Experiment): number | undefined {
  return timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000;
}

function warmUpFacts(cell: Cell, records: readonly RequestRecord[], events: number | undefined): WarmUpFacts {
  const answered = records.filter(({ account }) => account === "completed");
  const known = answered.filter(({ observedCachedTokens }) => observedCachedTokens !== UNAVAILABLE);
  let promptTokens = 0;
  let cachedTokens = 0;
  for (const record of known) {
    promptTokens += record.promptTokens;
    cachedTokens += Number(record.observedCachedTokens);
  }
  return {
    policy: cell.arm.policy,
    events,
    requests: answered.length,
    promptTokens,
    cachedTokens: known.length === 0 ? undefined : cachedTokens,
  };
}
