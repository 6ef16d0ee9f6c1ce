import type { Stages } from "../anatomy.ts";
import { type Section, table, text } from "../document.ts";
import { number, whole } from "../format.ts";
import { groupAt, type ReportModel } from "../model.ts";
import { levelColumn } from "./levels.ts";

/** Where the time to the first token went. */
export function anatomySection(model: ReportModel): Section {
  const id = "anatomy";
  const title = "Latency anatomy";
  if (model.anatomies.size === 0) {
    const why = "Needs a record of each request with the moment it reached its worker, which the sources do not have.";
    return { id, title, blocks: [text(why)] };
  }
  const column = levelColumn(model);
  const rowsOf = (pick: "all" | "slowest"): string[][] =>
    model.levels.flatMap((level) =>
      model.arms.flatMap(({ name }) => {
        const group = groupAt(model, name, level);
        const anatomy = group === undefined ? undefined : model.anatomies.get(group);
        if (anatomy === undefined) return [];
        const stages: Stages = anatomy[pick];
        const total = stages.clientMs + stages.routerMs + stages.prefillMs + stages.waitingMs;
        return [
          [
            column.of(level),
            name,
            ...(pick === "all" ? [whole(anatomy.requests)] : []),
            number(stages.clientMs),
            number(stages.routerMs),
            number(stages.prefillMs),
            number(stages.waitingMs),
            number(total),
          ],
        ];
      }),
    );
  const stages = ["Late at the client", "To the worker", "Own prefill", "Waiting on the worker", "TTFT"];
  return {
    id,
    title,
    blocks: [
      table("Mean TTFT of completed requests, by stage (ms)", [column.title, "<Arm", "n", ...stages], rowsOf("all")),
      table("The slowest twentieth of them, by stage (ms)", [column.title, "<Arm", ...stages], rowsOf("slowest")),
      text(
        "To the worker: network, router and its queue. Own prefill: the fastest time seen for a prompt with at least as many tokens to compute. Waiting is what is left, so it is a lower bound.",
      ),
    ],
  };
}
