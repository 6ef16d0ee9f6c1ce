import { fileURLToPath } from "node:url";
import type { GatewaySettings } from "./settings.ts";

/** What a process of a gateway needs to know; it comes in its environment. */
export interface ProcessRole {
  readonly settings: GatewaySettings;
  /** Socket of the decider. */
  readonly socket: string;
}

/** What a process tells the one that started it. */
export type ProcessMessage =
  | { readonly kind: "serving"; readonly url: string }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "log"; readonly line: string };

const VARIABLE = "WARMPATH_GATEWAY_ROLE";

/** The environment of a process with this role. */
export function roleEnvironment(role: ProcessRole): Record<string, string> {
  return { [VARIABLE]: JSON.stringify(role) };
}

/** The role of this process. */
export function ownRole(): ProcessRole {
  return JSON.parse(process.env[VARIABLE] ?? "") as ProcessRole;
}

/** Tells the process that started this one; without one there is nobody to tell. */
export function tellParent(message: ProcessMessage): void {
  if (process.connected) process.send?.(message);
}

/** The file of a process as it is run: the source itself, or what was built of it. */
export function processFile(source: URL): string {
  const isBuilt = import.meta.url.endsWith(".js");
  return fileURLToPath(source).replace(/\.ts$/, isBuilt ? ".js" : ".ts");
}
