import { usage } from "./options.ts";

/** A trace that its authors publish. */
export interface PublicTrace {
  readonly name: string;
  readonly file: string;
  readonly url: string;
  readonly sha256: string;
  readonly rows: number;
}

const MOONCAKE = "https://raw.githubusercontent.com/kvcache-ai/Mooncake/main/FAST25-release/traces";

/** The traces of the Mooncake paper (FAST 2025); the sha256 pins what the branch may change. */
export const PUBLIC_TRACES: readonly PublicTrace[] = [
  mooncake("conversation", 12_031, "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df"),
  mooncake("synthetic", 3993, "bd070915a98fc0ed264d7cfef2ce746002eb3076a695ec31ba2674c0111ec131"),
  mooncake("toolagent", 23_608, "48a2db1a13d3bc05e6330140c64f604ba366df20d3c9e128b5c35a01c1fa5f71"),
];

/** The public trace of a name; throws with the names there are. */
export function publicTrace(name: string): PublicTrace {
  const trace = PUBLIC_TRACES.find((one) => one.name === name);
  if (trace !== undefined) return trace;
  throw usage(`unknown trace "${name}"; there are ${PUBLIC_TRACES.map((one) => one.name).join(", ")}`);
}

function mooncake(name: string, rows: number, sha256: string): PublicTrace {
  const file = `${name}_trace.jsonl`;
  return { name, file, url: `${MOONCAKE}/${file}`, sha256, rows };
}
