import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Range } from "../../../workload/draw.ts";
import { inputProblem } from "../../input-problem.ts";

/** The articles that come with the project. */
const STARTERS_FOLDER: string = fileURLToPath(new URL("../../../../presets/starters", import.meta.url));

const SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600 };

/** On the command line all is text. */
function number(schema: z.ZodType<number>): z.ZodType<number> {
  return z.preprocess((value) => (typeof value === "string" && value.trim() !== "" ? Number(value) : value), schema);
}

/** A time such as `90`, `90s`, `5m` or `1h`, as seconds. */
function seconds(schema: z.ZodType<number>): z.ZodType<number> {
  return z.preprocess((value) => {
    const [, amount, unit = "s"] = /^([\d.]+)(ms|s|m|h)?$/.exec(String(value)) ?? [];
    return amount === undefined ? value : Number(amount) * SECONDS[unit];
  }, schema);
}

/** One whole number, or two with a dash between them. */
function range(least: number, most: number): z.ZodType<Range> {
  const read = (value: unknown): unknown => {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(String(value)) ?? [];
    return from === undefined ? value : [Number(from), Number(to)];
  };
  const error = `must be a whole number or a range such as 3-5, between ${least} and ${most}`;
  const pair = z.custom<Range>(
    (value) =>
      Array.isArray(value) && value.length === 2 && value[0] >= least && value[1] <= most && value[0] <= value[1],
    { error },
  );
  return z.preprocess(read, pair);
}

function jsonObject(): z.ZodType<Readonly<Record<string, unknown>>> {
  const read = (value: unknown): unknown => {
    try {
      return typeof value === "string" ? (JSON.parse(value) as unknown) : value;
    } catch {
      return value;
    }
  };
  return z.preprocess(read, z.record(z.string(), z.unknown()));
}

const text = z.string().min(1);
const count = number(z.int().min(1));
const address = z.url({ protocol: /^https?$/ });
const rate = number(z.number().gt(0).max(1_000_000));
const port = number(z.int().min(0).max(65_535));

/** Every setting of `warmpath load`; validation, `--help` and the reference are made from this. */
const settingsSchema = z.strictObject({
  url: address.describe("the endpoint, such as http://127.0.0.1:8000, with or without /v1"),
  model: text.optional().describe("model to ask for; the first that the endpoint serves unless told"),
  concurrency: number(z.int().min(0).max(100_000))
    .optional()
    .describe("conversations under way at once (closed loop); 10 unless --rate or --schedule is given"),
  maxRate: rate.optional().describe("most requests per second of a closed loop"),
  ramp: seconds(z.number().min(0).max(86_400)).default(0).describe("time over which the first conversations begin"),
  rate: rate.optional().describe("conversations that begin per second, whatever the answers (open loop)"),
  arrivals: z
    .enum(["poisson", "constant"])
    .default("poisson")
    .describe("how they begin with --rate: poisson, constant"),
  schedule: text.optional().describe("trace file whose rows are sent at their times; - reads stdin"),
  speed: number(z.number().gt(0).max(10_000)).default(1).describe("how much faster than written a schedule is sent"),
  duration: seconds(z.number().gt(0).max(10_000_000))
    .optional()
    .describe("stop after this time, such as 90s or 5m; until Ctrl-C or the end of the schedule unless told"),
  drain: seconds(z.number().min(0).max(86_400)).default(30).describe("time for requests under way to end after that"),
  turns: range(1, 64).default([3, 5]).describe("turns of a conversation, such as 3-5"),
  maxTokens: count
    .optional()
    .describe("most tokens of an answer; by turn as in the H200 study, about 830, unless told"),
  think: range(0, 3_600_000)
    .optional()
    .describe("milliseconds between an answer and the next turn; 300-1000, with --user-model-url 0, unless told"),
  starters: text.default(STARTERS_FOLDER).describe("folder of .md or .txt files that conversations open with"),
  userModelUrl: address
    .optional()
    .describe("endpoint of a small model that plays the user; a built-in user unless told"),
  userModel: text.optional().describe("its model; the first it serves unless told"),
  seed: number(z.int().min(0).max(4_294_967_295)).default(0).describe("root of all chance"),
  timeout: seconds(z.number().gt(0).max(86_400)).optional().describe("give a request up after this; never unless told"),
  body: jsonObject().optional().describe('fields added to every request, such as {"ignore_eos":true}'),
  processes: number(z.int().min(1).max(256))
    .default(1)
    .describe("processes that share the load, for more than one core can make"),
  out: text.optional().describe("folder for records.jsonl.gz and summary.json"),
  tokenTimes: z
    .enum(["full", "gaps", "none"])
    .default("full")
    .describe("what records keep of every chunk: full times, only gaps, or none"),
  metricsPort: port.optional().describe("serve Prometheus metrics on this port; 0 takes any"),
  metricsHost: text.default("127.0.0.1").describe("address of those"),
});

/** The settings of a load with all defaults in place. */
export interface LoadSettings {
  readonly url: string;
  readonly model?: string | undefined;
  readonly concurrency?: number | undefined;
  readonly maxRate?: number | undefined;
  readonly ramp: number;
  readonly rate?: number | undefined;
  readonly arrivals: "poisson" | "constant";
  readonly schedule?: string | undefined;
  readonly speed: number;
  readonly duration?: number | undefined;
  readonly drain: number;
  readonly turns: Range;
  readonly maxTokens?: number | undefined;
  readonly think?: Range | undefined;
  readonly starters: string;
  readonly userModelUrl?: string | undefined;
  readonly userModel?: string | undefined;
  readonly seed: number;
  readonly timeout?: number | undefined;
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  readonly processes: number;
  readonly out?: string | undefined;
  readonly tokenTimes: "full" | "gaps" | "none";
  readonly metricsPort?: number | undefined;
  readonly metricsHost: string;
}

/** Reads flags, or throws with one line that names the first that cannot be used. */
export function readLoadSettings(flags: Readonly<Record<string, unknown>>): LoadSettings {
  const { data, error } = settingsSchema.safeParse(flags);
  if (error === undefined) return data;
  const named = Object.fromEntries(Object.entries(flags).map(([name, value]) => [flagOf(name), value]));
  const issues = error.issues.map((issue) => ({ ...issue, path: issue.path.map((part) => flagOf(String(part))) }));
  throw inputProblem(new z.ZodError(issues), named, "see warmpath load --help");
}

/** A setting's name as it is written on the command line. */
function flagOf(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The settings with what is said about each, for help and reference. */
export function loadSettingKeys(): readonly {
  readonly flag: string;
  readonly about: string;
  readonly default: string;
}[] {
  return Object.entries(settingsSchema.shape).map(([key, schema]) => {
    const { data } = schema.safeParse(undefined);
    const isPlain = typeof data === "string" || typeof data === "number";
    const shown = key === "starters" ? "ten articles" : Array.isArray(data) ? data.join("-") : isPlain ? `${data}` : "";
    return { flag: flagOf(key), about: schema.description ?? "", default: shown };
  });
}
