import { UNAVAILABLE } from "../../../../core/request-record.ts";
import type { Cell } from "../../../../lab/experiment/cells.ts";
import type { CacheState, Experiment } from "../../../../lab/experiment/types.ts";
import type { PromptLedger } from "../../../../lab/live/prompt-ledger.ts";
import type { OpenCell } from "../../../../lab/live/target.ts";
import { checkCacheStart, failed, passed, restartedWorkers } from "../../../../lab/preflight/checks.ts";
import { buildCell } from "../../../../lab/results/build-cell.ts";
import { roundNumbers } from "../../../../lab/results/round-numbers.ts";
import type { CacheStart, CellResult, Check, PromptProof } from "../../../../lab/results/types.ts";
import { ranOutSeconds } from "../../../../lab/experiment/target.ts";
import { withCounters } from "../../../../lab/sampler/cache-figures.ts";
import { workerFigures } from "../../../../lab/sampler/worker-figures.ts";
import type { ClientHealth } from "../../../../loadgen/client-health.ts";
import { isInWindow } from "../../../../measure/window.ts";
import type { DrivenCell } from "./drive-cell.ts";

/** A cell that was driven, and all that was found beside it. */
export interface LiveCell {
  readonly experiment: Experiment;
  readonly cell: Cell;
  readonly open: OpenCell;
  readonly driven: DrivenCell;
  readonly ledger: PromptLedger;
  /** What the warm-up was checked for. */
  readonly warmUpChecks: readonly Check[];
  readonly before: ReadonlyMap<string, string> | undefined;
  readonly after: ReadonlyMap<string, string> | undefined;
}

/** The entry of a live cell: what the twin's has, and what only a live target can say. */
export function measureLiveCell(live: LiveCell): CellResult {
  const { experiment, cell, open, driven, ledger } = live;
  const { records, window, histories } = driven;
  const workers = workerFigures(workerNames(open, driven), histories, window);
  const result = buildCell({
    arm: cell.arm.name,
    policy: cell.arm.policy,
    level: cell.level,
    run: cell.run,
    seed: cell.seeds.run,
    records,
    window,
    slo: experiment.slo,
    snapshots: experiment.snapshots,
    workers,
    cacheCeiling: driven.cacheCeiling,
    unsentRows: driven.unsentRows,
    ranOutSeconds: ranOutSeconds(driven.rows, records, window),
  });
  const inWindow = new Set(records.flatMap((record) => (isInWindow(record, window) ? record.id : [])));
  const prompts = ledger.add(cell.run, driven.sent, (id) => inWindow.has(id));
  const cacheStart = cacheStartOf(experiment.cacheState, open.emptiedBy);
  const voided = [
    ...restartedWorkers(live.before, live.after),
    ...workers.flatMap(({ worker, sampled }) => {
      const restarts = sampled?.restarts ?? UNAVAILABLE;
      return restarts === UNAVAILABLE || restarts === 0 ? [] : `worker ${worker} restarted during the cell`;
    }),
  ];
  return roundNumbers({
    ...result,
    cache: withCounters(result.cache, histories, window, result.accounting.offered),
    warmUp: driven.warmUp,
    cacheStart,
    prompts,
    client: clientFigures(driven.client),
    checks: [
      checkCacheStart(cacheStart.state, cacheStart.enforcedBy),
      ...live.warmUpChecks,
      checkPrompts(prompts),
      checkClient(driven.client),
    ],
    ...(voided.length === 0 ? {} : { voided: [...new Set(voided)] }),
  });
}

/** Those that the target names, else those that answers name. */
function workerNames({ workers }: OpenCell, { records }: DrivenCell): string[] {
  if (workers.length > 0) return [...workers];
  const named = new Set(records.flatMap(({ worker }) => worker ?? []));
  named.delete(UNAVAILABLE);
  return [...named].toSorted();
}

function cacheStartOf(state: CacheState, emptiedBy: CacheStart["enforcedBy"]): CacheStart {
  if (state === "carried-over") return { state, enforcedBy: "load" };
  return { state, enforcedBy: state === "primed" ? "pass" : emptiedBy };
}

function checkPrompts({ sentBefore, equalToBefore }: PromptProof): Check {
  const detail = `${equalToBefore} of ${sentBefore} prompts are those that another arm or level got`;
  return equalToBefore === sentBefore ? passed("equal-prompts", detail) : failed("equal-prompts", detail);
}

function checkClient({ verdict, reasons }: ClientHealth): Check {
  const detail = reasons.length === 0 ? "the client kept up" : reasons.join("; ");
  return verdict === "bottleneck" ? failed("client-health", detail) : passed("client-health", detail);
}

function clientFigures(health: ClientHealth): CellResult["client"] {
  const { verdict, reasons, scheduleLagP99Ms, loopDelayP99Ms, loopUtilisation } = health;
  return { verdict, reasons, scheduleLagP99Ms, loopDelayP99Ms, loopUtilisation };
}
