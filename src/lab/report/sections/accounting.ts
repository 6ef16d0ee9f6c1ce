import { ACCOUNTS } from "../../../core/accounts.ts";
import { type Block, type Section, table, text } from "../document.ts";
import { NOTHING, number, percent, whole } from "../format.ts";
import { groupAt, type ReportModel } from "../model.ts";
import { levelColumn } from "./levels.ts";

const TITLES = {
  completed: "Completed",
  shed: "Shed",
  rejected: "Rejected",
  failed: "Failed",
  timedOut: "Timed out",
  cancelled: "Cancelled",
  unfinished: "Unfinished",
} as const;

/** What became of every offered request; the accounts add up. */
export function accountingSection(model: ReportModel): Section {
  const column = levelColumn(model);
  const groups = model.levels.flatMap((level) => model.arms.flatMap(({ name }) => groupAt(model, name, level) ?? []));
  const rows = groups.map(({ arm, level, accounting, cells }) => [
    column.of(level),
    arm,
    whole(cells.length),
    whole(accounting.offered),
    ...ACCOUNTS.map((account) => whole(accounting[account])),
    percent(accounting.offered === 0 ? undefined : 1 - accounting.completed / accounting.offered),
  ]);
  const blocks: Block[] = [
    table(
      "Every offered request is in exactly one account",
      [column.title, "<Arm", "Runs", "Offered", ...ACCOUNTS.map((account) => TITLES[account]), "Not completed"],
      rows,
    ),
  ];
  const refusals = groups.flatMap(({ arm, level, refusals: found, accounting }) =>
    found.map(({ account, status, code, message, count }) => [
      column.of(level),
      arm,
      TITLES[account],
      status === null ? NOTHING : String(status),
      [code, message].filter((part) => part !== null && part !== "").join(": ") || NOTHING,
      whole(count),
      percent(count / accounting.offered),
    ]),
  );
  if (refusals.length === 0) blocks.push(text("Every offered request completed, in every arm."));
  else {
    blocks.push(
      table(
        "Why requests did not complete",
        [column.title, "<Arm", "<Account", "HTTP status", "<Message", "Requests", "Of offered"],
        refusals,
      ),
      text("429, 503 and 529 whose message speaks of overload count as shed; other errors as failed."),
    );
  }
  const unsent = groups.flatMap(({ arm, level, cells }) => {
    const counts = cells.map(({ unsentRows = 0 }) => unsentRows);
    return counts.every((count) => count === 0) ? [] : [[column.of(level), arm, counts.map(whole).join(", ")]];
  });
  if (unsent.length > 0) {
    blocks.push(
      table("Rows of the trace that were never sent, run by run", [column.title, "<Arm", "Rows"], unsent),
      text("They were due after the window, or followed a turn that did not complete. They are in no account."),
    );
  }
  const ranOut = groups.filter(({ cells }) => cells.some(({ ranOutSeconds }) => ranOutSeconds !== undefined));
  if (ranOut.length > 0) {
    const names = ranOut.map(({ arm, level }) => `${arm} at ${column.of(level)}`).join(", ");
    blocks.push(
      text(`The trace had nothing more to send long before the window ended, and rates are over all of it: ${names}.`),
    );
  }
  const tokens = groups.map(({ arm, level, tokens: of }) => [
    column.of(level),
    arm,
    number(of.promptMean, 0),
    number(of.completedPromptMean, 0),
    number(of.lostPromptMean, 0),
    number(of.outputMean, 0),
  ]);
  blocks.push(
    table(
      "Tokens per request, mean: arms must have been asked the same and must have answered alike",
      [column.title, "<Arm", "Prompt, offered", "Prompt, completed", "Prompt, not completed", "Output, completed"],
      tokens,
    ),
  );
  return { id: "accounting", title: "Accounting", blocks };
}
