import { fileURLToPath } from "node:url";
import { z } from "zod";
import { POLICIES } from "../../../core/policy/registry.ts";
import { LEAST_CONCURRENCY, MOST_CONCURRENCY } from "../../../dashboard/protocol.ts";
import { inputProblem } from "../../input-problem.ts";

/** The articles that come with the project. */
const STARTERS_FOLDER: string = fileURLToPath(new URL("../../../../presets/starters", import.meta.url));

const number = (schema: z.ZodType<number>): z.ZodType<number> =>
  z.preprocess((value) => (typeof value === "string" && value.trim() !== "" ? Number(value) : value), schema);
const text = z.string().min(1);
const port = (): z.ZodType<number> => number(z.int().min(1).max(65_000));

/** Every setting of `warmpath up`; validation and `--help` are made from this. */
const settingsSchema = z.strictObject({
  preset: text.default("live-demo").describe("experiment whose fleet and SLO are used, by name or file"),
  workers: number(z.int().min(1).max(64)).optional().describe("number of workers; the preset's unless told"),
  policy: z
    .enum(POLICIES.map(({ name }) => name))
    .default("warmpath")
    .describe("policy to begin with; the page can change it"),
  concurrency: number(z.int().min(LEAST_CONCURRENCY).max(MOST_CONCURRENCY))
    .default(6)
    .describe("conversations to begin with; the page can change it"),
  stopped: z.boolean().default(false).describe("send nothing until somebody starts the load on the page"),
  host: text.default("127.0.0.1").describe("address of the page; whoever reaches it may steer the demo"),
  port: port().default(8080).describe("port of the page; the next free one if it is taken"),
  gatewayPort: port().default(8000).describe("port of the gateway; likewise"),
  adminPort: port().default(8900).describe("port of the gateway's admin API; likewise"),
  workerPort: port().default(8001).describe("port of the first worker; likewise"),
  starters: text.default(STARTERS_FOLDER).describe("folder of .md or .txt files that conversations open with"),
  baselines: z
    .array(text)
    .default([])
    .describe("results of warmpath run to show beside live values; those of the preset unless told; repeatable"),
  speed: number(z.number().gt(0).max(100)).default(1).describe("how much faster than real time the workers run"),
  seed: number(z.int().min(0).max(4_294_967_295)).default(1).describe("root of all chance in the load"),
});

/** The settings of the demo with all defaults in place. */
export interface UpSettings {
  readonly preset: string;
  readonly workers?: number | undefined;
  readonly policy: string;
  readonly concurrency: number;
  readonly stopped: boolean;
  readonly host: string;
  readonly port: number;
  readonly gatewayPort: number;
  readonly adminPort: number;
  readonly workerPort: number;
  readonly starters: string;
  readonly baselines: readonly string[];
  readonly speed: number;
  readonly seed: number;
}

/** Reads flags, or throws with one line that names the first that cannot be used. */
export function readUpSettings(flags: Readonly<Record<string, unknown>>): UpSettings {
  const { data, error } = settingsSchema.safeParse(flags);
  if (error === undefined) return data;
  const named = Object.fromEntries(Object.entries(flags).map(([name, value]) => [flagOf(name), value]));
  const issues = error.issues.map((issue) => ({ ...issue, path: issue.path.map((part) => flagOf(String(part))) }));
  throw inputProblem(new z.ZodError(issues), named, "see warmpath up --help");
}

/** The settings with what is said about each, for help. */
export function upSettingKeys(): readonly {
  readonly flag: string;
  readonly about: string;
  readonly kind: "switch" | "list" | "value";
  readonly default: string;
}[] {
  return Object.entries(settingsSchema.shape).map(([key, schema]) => {
    const { data } = schema.safeParse(undefined);
    const kind = typeof data === "boolean" ? "switch" : Array.isArray(data) ? "list" : "value";
    const shown = key === "starters" ? "ten articles" : kind === "value" ? String(data ?? "") : "";
    return { flag: flagOf(key), about: schema.description ?? "", kind, default: shown };
  });
}

function flagOf(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
