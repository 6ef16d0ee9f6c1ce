import type { Accounting } from "../../../core/accounts.ts";
import { keepTicksFast } from "../../fast-ticks.ts";
import type { Log } from "./compose.ts";
import {
  type Estate,
  type ServingTask,
  type ToChild,
  onMessage,
  reasonOf,
  taskOf,
  tellParent,
} from "./process-roles.ts";

/** A process of a gateway, once it serves. */
export interface ServingProcess {
  readonly url: string;
  readonly adminUrl: string;
  reloaded(message: ToChild & { readonly kind: "reloaded" }): void;
  /** What a successor must know; undefined where another process knows it. */
  estate?(): Estate;
  /** Ends what is under way and takes nothing new; undefined where others say when this process may end. */
  stop?(): Promise<void>;
  /** The same, but whoever is connected is served until its connection ends. */
  retire(): Promise<void>;
}

/** Runs a process of a gateway from its task to its end, and says why if it cannot begin. */
export async function runServingProcess(
  start: (task: ServingTask, log: Log) => Promise<ServingProcess>,
): Promise<void> {
  const log = (line: string): void => tellParent({ kind: "log", line });
  void keepTicksFast();
  // Signals for all of a group, as from a terminal, are the first process's to act on.
  for (const signal of ["SIGHUP", "SIGUSR2", "SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
  process.on("disconnect", () => process.exit(0));
  try {
    const serving = await start(await taskOf("serve"), log);
    onMessage((message) => hear(serving, message));
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => hear(serving, { kind: "stop" }));
    tellParent({ kind: "serving", url: serving.url, adminUrl: serving.adminUrl });
  } catch (error) {
    tellParent({ kind: "failed", message: reasonOf(error) });
    process.exitCode = 1;
    process.disconnect();
  }
}

function hear(serving: ServingProcess, message: ToChild): void {
  switch (message.kind) {
    case "reloaded":
      serving.reloaded(message);
      break;
    case "hand-over":
      if (serving.estate !== undefined) tellParent({ kind: "estate", estate: serving.estate() });
      break;
    case "retire":
      endAfter(serving.retire());
      break;
    case "stop":
      if (serving.stop !== undefined) endAfter(serving.stop());
      break;
    case "serve":
    case "read-settings":
      break;
  }
}

function endAfter(ending: Promise<void>): void {
  ending.then(
    () => process.exit(0),
    (error: unknown) => {
      tellParent({ kind: "log", line: reasonOf(error) });
      process.exit(1);
    },
  );
}

/** Accounts in one line, for those who watch processes come and go. */
export function accountLine(accounting: Accounting): string {
  const { offered, ...accounts } = accounting;
  const parts = Object.entries(accounts).filter(([, count]) => count > 0);
  return [`${offered} offered`, ...parts.map(([account, count]) => `${count} ${account}`)].join(", ");
}
