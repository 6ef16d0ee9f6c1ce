import { ACCOUNTS } from "../../core/accounts.ts";
import type { Slo } from "../../measure/slo.ts";
import type { LatencyName, ReportCell } from "./cell.ts";
import type { CellEvidence, RequestColumns } from "./evidence.ts";
import type { ArmAtLevel } from "./groups.ts";
import { type Reading, readingOf, valueOf } from "./reading.ts";

/** A number on which arms are judged against each other; latencies over all offered requests. */
export interface JudgedMetric {
  readonly name: string;
  readonly title: string;
  readonly kind: "latency" | "rate" | "share";
  readonly better: "lower" | "higher";
  of(group: ArmAtLevel): Reading;
  /** The same of one run. */
  ofRun(cell: ReportCell): number | undefined;
  /** The value of each request, and the percentile of them; a mean where there is none. */
  readonly requests?: {
    readonly column: (columns: RequestColumns) => ArrayLike<number>;
    readonly share: number | undefined;
  };
  /** Of a rate: its value in each part of a run, of which the rate is the mean. */
  readonly parts?: (evidence: CellEvidence) => Float64Array;
}

const COMPLETED = ACCOUNTS.indexOf("completed");

/**
 * What arms are judged on. The share that kept an SLO only where there is one. Throughput by what was delivered in the
 * window; where a source has only the rate from first request to last answer, which an arm raises by turning work away,
 * by tokens per offered request.
 */
export function judgedMetrics(slo: Slo, hasWindowRates: boolean): JudgedMetric[] {
  const hasLimits = Object.values(slo).some((limit) => limit !== undefined);
  return [
    {
      name: "completedShare",
      title: "completed",
      kind: "share",
      better: "higher",
      of: ({ accounting: { offered, completed } }) => readingOf(offered === 0 ? undefined : completed / offered),
      ofRun: ({ accounting: { offered, completed } }) => (offered === 0 ? undefined : completed / offered),
      requests: {
        column: ({ account }) => Float64Array.from(account, (index) => (index === COMPLETED ? 1 : 0)),
        share: undefined,
      },
    },
    latency("ttftMs", "TTFT", "p50", 0.5),
    latency("ttftMs", "TTFT", "p95", 0.95),
    latency("tpotMs", "TPOT", "p50", 0.5),
    latency("tpotMs", "TPOT", "p95", 0.95),
    latency("e2eMs", "E2E", "p50", 0.5),
    latency("e2eMs", "E2E", "p95", 0.95),
    hasWindowRates ? TOKENS_PER_SECOND : TOKENS_PER_OFFERED,
    ...(hasLimits ? [GOODPUT] : []),
  ];
}

const TOKENS_PER_SECOND: JudgedMetric = {
  name: "outputTokensPerSecond",
  title: "tokens/s",
  kind: "rate",
  better: "higher",
  of: ({ rates }) => readingOf(rates.outputTokensPerSecond),
  ofRun: ({ rates }) => rates.outputTokensPerSecond,
  parts: ({ tokensPerSecondByPart }) => tokensPerSecondByPart,
};

const TOKENS_PER_OFFERED: JudgedMetric = {
  name: "outputTokensPerOffered",
  title: "output tokens per offered request",
  kind: "rate",
  better: "higher",
  of: ({ tokens, accounting }) => readingOf(perOffered(tokens.outputTotal, accounting.offered)),
  ofRun: ({ tokens, accounting }) => perOffered(tokens.outputTotal, accounting.offered),
  requests: {
    column: ({ account, outputTokens }) => outputTokens.map((count, at) => (account[at] === COMPLETED ? count : 0)),
    share: undefined,
  },
};

function perOffered(total: number | undefined, offered: number): number | undefined {
  return total === undefined || offered === 0 ? undefined : total / offered;
}

const GOODPUT: JudgedMetric = {
  name: "goodputShare",
  title: "within the SLO",
  kind: "share",
  better: "higher",
  of: ({ goodputShare }) => readingOf(goodputShare),
  ofRun: ({ goodputShare }) => goodputShare,
  requests: { column: ({ keptSlo }) => keptSlo, share: undefined },
};

function latency(
  of: Exclude<LatencyName, "itlMs">,
  title: string,
  statistic: "p50" | "p95",
  share: number,
): JudgedMetric {
  return {
    name: `${of.replace(/Ms$/, "")}${statistic.toUpperCase()}Ms`,
    title: `${title} ${statistic}`,
    kind: "latency",
    better: "lower",
    of: (group) => group.latencies[of].offered[statistic],
    ofRun: (cell) => valueOf(cell.latencies[of].readings.offered[statistic]),
    requests: { column: (columns) => columns[of], share },
  };
}
