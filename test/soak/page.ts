import { cpus } from "node:os";
import { ACCOUNTS } from "../../src/core/accounts.ts";
import type { SoakResult } from "./soak.ts";
import { type Finding, quartersOf } from "./verdict.ts";

/** A soak as a page of the documentation. */
export function soakPage(result: SoakResult, findings: readonly Finding[], startedAt: string, command: string): string {
  const { plan, samples, gateway, client } = result;
  const processors = cpus();
  const quarters = quartersOf(samples, plan.seconds).map((quarter) => [
    `${minutes(quarter.fromSeconds)}–${minutes(quarter.toSeconds)} min`,
    quarter.residentMegabytes.toFixed(1),
    quarter.heapFloorMegabytes.toFixed(1),
    quarter.indexPages,
    quarter.evictedPages,
    quarter.requests,
    quarter.streams,
  ]);
  return [
    "# Soak",
    "",
    `A gateway in front of ${plan.workers} simulated workers, ${plan.streams} conversations at once and an index that is far too small for what the workers hold:`,
    "everything that can fill up is full, and stays so. Gateway, workers and clients are processes of their own on one machine. Written by",
    "`test/soak`; no number is typed in by hand. A shorter one runs in CI.",
    "",
    "```sh",
    command,
    "```",
    "",
    `Begun ${startedAt}, on ${processors.length} cores (${processors[0].model.trim()}), Node ${process.versions.node}, beside other work on the machine.`,
    "",
    ...table(
      ["what must hold", "figures", "holds"],
      findings.map(({ what, figures, isGood }) => [what, figures, isGood ? "yes" : "NO"]),
    ),
    "",
    "## Over time",
    "",
    `The gateway as it told of itself every ${plan.sampleSeconds} s: medians of each quarter; for the heap the least that was seen, which is what is left after`,
    "a collection. The first quarter is for warming up.",
    "",
    ...table(
      ["time", "resident MB", "heap MB, least", "index pages", "pages forgotten", "requests", "under way"],
      quarters,
    ),
    "",
    "## Accounts",
    "",
    `${client.requestsPerSecond.toFixed(1)} requests and ${client.outputTokensPerSecond.toFixed(0)} tokens a second were answered; ${(100 * client.cacheHitRate).toFixed(0)} % of the prompts' tokens were found in caches.`,
    "",
    ...table(
      ["account", "gateway", "client"],
      (["offered", ...ACCOUNTS] as const).map((account) => [account, gateway[account], client.accounting[account]]),
    ),
    "",
  ].join("\n");
}

function minutes(seconds: number): string {
  return (seconds / 60).toFixed(1);
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)];
}
