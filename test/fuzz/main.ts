/**
 * `npm run fuzz -- --cases N [--seed S] [--parser NAME] [--record]`: every parser in a process of its own, watched for hangs; with
 * `--record` what was borne is written into docs/reference/fuzzing.md.
 */
import { fork } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { REPOSITORY, runTool } from "../support/run-program.ts";
import { PARSERS } from "./parsers.ts";
import { recorded } from "./record.ts";
import { describeFailure, runCases } from "./run-cases.ts";

/** Cases between two signs of life; if the next one does not come, it is one of these that hangs. */
const LOT = 1000;
const HANG_MS = 60_000;

type Message = { readonly kind: "alive"; readonly seed: number } | { readonly kind: "done"; readonly problem?: string };

const { values } = parseArgs({
  options: {
    cases: { type: "string", default: "100000" },
    seed: { type: "string", default: "1" },
    parser: { type: "string", multiple: true },
    record: { type: "boolean", default: false },
    child: { type: "boolean", default: false },
  },
});
const [cases, seed] = [Number(values.cases), Number(values.seed)];
const names = values.parser ?? PARSERS.map(({ name }) => name);

if (values.child) await work(names[0]);
else for (const name of names) await report(name);

async function report(name: string): Promise<void> {
  const startedMs = performance.now();
  const problem = await inProcess(name);
  const tookSeconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  console.log(problem ?? `${name}: ${cases} cases from seed ${seed}, no crash, no hang, ${tookSeconds} s`);
  if (problem !== undefined) process.exitCode = 1;
  else if (values.record) await record(name);
}

async function record(parser: string): Promise<void> {
  const path = join(REPOSITORY, "docs", "reference", "fuzzing.md");
  const day = new Date().toISOString().slice(0, 10);
  await writeFile(path, recorded(await readFile(path, "utf8"), { parser, cases, seed, day }));
  await runTool("oxfmt", [path]);
}

/** Runs one parser's cases; what is wrong, if anything. */
function inProcess(name: string): Promise<string | undefined> {
  const words = ["--child", "--parser", name, "--cases", String(cases), "--seed", String(seed)];
  const child = fork(fileURLToPath(import.meta.url), words, { execArgv: ["--import", "tsx"] });
  return new Promise((resolve) => {
    let last = seed;
    const hang = (): void =>
      end(`${name}: hangs: npm run fuzz -- --parser ${name} --seed ${last} --cases ${Math.min(LOT, cases)}`);
    let watch = setTimeout(hang, HANG_MS);
    const end = (problem: string | undefined): void => {
      clearTimeout(watch);
      child.kill();
      resolve(problem);
    };
    child.on("message", (message: Message) => {
      if (message.kind === "done") end(message.problem);
      else {
        last = message.seed;
        clearTimeout(watch);
        watch = setTimeout(hang, HANG_MS);
      }
    });
    child.once("exit", (code) => end(`${name}: ended with ${code} after seed ${last}`));
  });
}

async function work(name: string): Promise<void> {
  const parser = PARSERS.find((one) => one.name === name);
  if (parser === undefined) throw new Error(`there is no parser ${name}`);
  const tell = (message: Message): void => void process.send?.(message);
  const failure = await runCases(parser, cases, seed, (at) => {
    if ((at - seed) % LOT === 0) tell({ kind: "alive", seed: at });
  });
  tell({ kind: "done", ...(failure !== undefined && { problem: describeFailure(failure) }) });
}
