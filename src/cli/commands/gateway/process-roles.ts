import { fileURLToPath } from "node:url";
import type { ReloadOutcome } from "../../../gateway/reload.ts";
import type { TakenLease } from "../../../planes/discovery/lease-registry.ts";
import type { GatewaySettings, GivenSettings } from "./settings.ts";
import type { ReadSettings } from "./written-settings.ts";

/** What a process that serves needs to know. */
export interface ServingTask {
  readonly settings: GatewaySettings;
  /** Socket of the decider, where that is another process. */
  readonly socket: string;
  /** What is taken over from those who serve now; undefined if nobody does. */
  readonly estate?: Estate | undefined;
  /** How reading the settings again went so far. */
  readonly reloads?: ReloadHistory | undefined;
}

export interface ReloadHistory {
  readonly last: ReloadOutcome;
  readonly applied: number;
  readonly refused: number;
}

/** What a process that reads settings needs to know. */
export interface SettingsTask {
  readonly flags: GivenSettings;
  readonly file: string | undefined;
  /** Undefined to read them for a new start. */
  readonly inForce?: GatewaySettings | undefined;
}

/** What a decider knows that its successor could not find out by itself. */
export interface Estate {
  readonly leases: readonly TakenLease[];
  /** Workers that an operator has drained. */
  readonly drained: readonly string[];
  readonly readyWorkers: number;
}

/** What processes are told by the one that started them. */
export type ToChild =
  | { readonly kind: "serve"; readonly task: ServingTask }
  | { readonly kind: "read-settings"; readonly task: SettingsTask }
  | { readonly kind: "reloaded"; readonly settings: GatewaySettings; readonly reloads: ReloadHistory }
  /** Others are to follow: say what they must know. */
  | { readonly kind: "hand-over" }
  /** Others serve now: finish what is under way, take nothing new, end. */
  | { readonly kind: "retire" }
  | { readonly kind: "stop" };

/** What processes tell the one that started them. */
export type FromChild =
  /** Hears what it is told from now on: what was said before may have been missed. */
  | { readonly kind: "listening" }
  | { readonly kind: "serving"; readonly url: string; readonly adminUrl: string }
  | { readonly kind: "settings-read"; readonly read: ReadSettings }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "log"; readonly line: string }
  /** Somebody asked for the settings to be read again. */
  | { readonly kind: "reload" }
  | { readonly kind: "estate"; readonly estate: Estate };

interface Tasks {
  readonly serve: ServingTask;
  readonly "read-settings": SettingsTask;
}

/** Asks what this process is for. */
export function taskOf<Kind extends keyof Tasks>(kind: Kind): Promise<Tasks[Kind]> {
  return new Promise((resolve) => {
    const hear = (message: ToChild): void => {
      if (message.kind !== kind) return;
      process.off("message", hear);
      resolve(message.task as Tasks[Kind]);
    };
    process.on("message", hear);
    tellParent({ kind: "listening" });
  });
}

/** Hears what this process is told while it serves. */
export function onMessage(hear: (message: ToChild) => void): void {
  process.on("message", hear);
}

/** Tells the process that started this one; without one there is nobody to tell. */
export function tellParent(message: FromChild): void {
  if (process.connected) process.send?.(message);
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The file of a process as it is run: the source itself, or what was built of it. */
export function processFile(source: URL): string {
  const isBuilt = import.meta.url.endsWith(".js");
  return fileURLToPath(source).replace(/\.ts$/, isBuilt ? ".js" : ".ts");
}
