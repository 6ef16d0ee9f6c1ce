import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pc from "picocolors";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { readTrace } from "../../src/cli/commands/run/experiment-file.ts";
import { runExperiment, type RunOutcome } from "../../src/cli/commands/run/run-experiment.ts";
import { gatewaySettings, workersPlan } from "../../src/cli/commands/run/local/fleet-plan.ts";
import type { FleetStarter, LocalFleet } from "../../src/cli/commands/run/local/local-fleet.ts";
import { LocalTarget } from "../../src/cli/commands/run/local/local-target.ts";
import { serveGateway } from "../../src/cli/commands/gateway/serve-gateway.ts";
import { serveWorkers } from "../../src/cli/commands/run/local/serve-workers.ts";
import { runCli } from "../../src/cli/program.ts";
import { readExperiment } from "../../src/lab/experiment/read.ts";
import { meanSequenceTokens } from "../../src/lab/experiment/workload.ts";
import { readRecords } from "../../src/lab/results/records-file.ts";
import { readProvenance, readResults } from "../../src/lab/results/store.ts";
import type { CellResult, ResultsFile } from "../../src/lab/results/types.ts";
import { REPOSITORY, runProgram } from "../support/run-program.ts";
import { startTestWorker } from "../support/running-worker.ts";

const EXPERIMENT = {
  name: "small-live",
  fleet: {
    model: "llama-3.1-8b",
    gpu: "h100",
    workers: 2,
    engine: { profile: "vllm" },
    blockTokens: 16,
    kvPoolTokens: 40_000,
  },
  workload: {
    conversations: {
      starters: 2,
      starterTokens: [200, 300],
      outputTokensByTurn: [4],
      tailShare: 0,
      userTokens: [5, 10],
      thinkMs: [1, 2],
    },
  },
  load: { concurrency: [3], rampSeconds: 0 },
  arms: [
    { name: "rr", policy: "round-robin" },
    { name: "kv", policy: "kv-cost" },
  ],
  warmUpSeconds: 0.2,
  warmUpRequests: 12,
  windowSeconds: 0.8,
  drainSeconds: 5,
  live: { sampleSeconds: 0.2 },
};

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "warmpath-live-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

/** The fleet of a cell inside this process. */
async function startFleet(
  eventPlane: "http" | "none",
  ...[cell, tokens]: Parameters<FleetStarter>
): Promise<LocalFleet> {
  const serving = await serveWorkers(workersPlan(cell, tokens));
  const gateway = await serveGateway({ ...gatewaySettings(cell, serving.workers, tokens), eventPlane });
  return {
    url: gateway.url,
    adminUrl: gateway.adminUrl,
    workers: serving.workers,
    close: async () => {
      await gateway.close();
      await serving.close();
    },
  };
}

const startHere: FleetStarter = (cell, tokens) => startFleet("http", cell, tokens);
const deaf: FleetStarter = (cell, tokens) => startFleet("none", cell, tokens);

async function runHere(changes: object, options: { start?: FleetStarter; lines?: string[] } = {}): Promise<RunOutcome> {
  const { experiment, problems } = readExperiment({ ...EXPERIMENT, ...changes });
  if (experiment === undefined) throw new Error(problems.join("\n"));
  const tokensPerSequence = meanSequenceTokens(experiment.workload, undefined, experiment.seed);
  return runExperiment({
    setting: { experiment, trace: undefined, tokensPerSequence },
    target: new LocalTarget(tokensPerSequence, options.start ?? startHere),
    out: join(folder, "out"),
    fresh: false,
    threads: 1,
    command: "test",
    version: "0",
    say: (line) => void options.lines?.push(line),
  });
}

async function resultsIn(out: string): Promise<ResultsFile> {
  const { content, problems } = await readResults(out);
  expect(problems).toEqual([]);
  if (content === undefined) throw new Error("no results");
  return content;
}

function statusOf({ checks }: CellResult, code: string): string | undefined {
  return checks?.find((check) => check.code === code)?.status;
}

describe("an experiment on a local fleet", () => {
  test("has the twin's records, and says what only a live fleet can say", async () => {
    const lines: string[] = [];
    await runHere({}, { lines });
    const results = await resultsIn(join(folder, "out"));
    expect(results.target).toBe("local");
    expect(results.comparability?.verdict).toBe("comparable");
    expect(lines).toContain("kv against rr: policy.name kv-cost instead of round-robin");
    expect(results.cells.map(({ arm }) => arm)).toEqual(["rr", "kv"]);
    for (const cell of results.cells) {
      expect(cell.accounting.completed).toBeGreaterThan(5);
      expect(cell.accounting.completed).toBe(cell.accounting.offered);
      expect(cell.warmUp?.requests).toBeGreaterThanOrEqual(12);
      expect(cell.cacheStart).toEqual({ state: "cold", enforcedBy: "restart" });
      expect(cell.cache.observedSource).toBe("usage");
      expect(cell.cache.predictedSource).toBe("gateway-metrics");
      expect(cell.workers.map(({ worker }) => worker)).toEqual(["worker-0", "worker-1"]);
      for (const { busyShare, sampled } of cell.workers) {
        expect(busyShare).toBeTypeOf("number");
        expect(sampled).toMatchObject({ restarts: 0 });
      }
      for (const code of ["kv-events", "cache-hits", "equal-prompts", "cache-start"]) {
        expect({ code, status: statusOf(cell, code) }).toEqual({ code, status: "passed" });
      }
      expect(cell.voided).toBeUndefined();
    }
    expect(results.cells[1].prompts?.sentBefore).toBeGreaterThan(5);
    const recorded = new Map<string, number>();
    for await (const { cell, record } of readRecords(join(folder, "out", "records.jsonl.gz"))) {
      recorded.set(cell, (recorded.get(cell) ?? 0) + 1);
      if (record.account === "completed") expect(record.worker).toMatch(/^worker-[01]$/);
    }
    expect([...recorded.keys()].toSorted()).toEqual(results.cells.map(({ id }) => id).toSorted());
  });

  test("goes on where it was cut short, loses no finished cell, and says so", async () => {
    let started = 0;
    const failing: FleetStarter = (cell, tokens) => {
      started += 1;
      return started > 1 ? Promise.reject(new Error("no more")) : startHere(cell, tokens);
    };
    await expect(runHere({}, { start: failing })).rejects.toThrow("no more");
    const before = await resultsIn(join(folder, "out"));
    expect(before.cells.map(({ arm }) => arm)).toEqual(["rr"]);
    const outcome = await runHere({});
    expect(outcome).toMatchObject({ resumed: 1, planned: 2 });
    const after = await resultsIn(join(folder, "out"));
    expect(after.cells[0]).toEqual(before.cells[0]);
    expect(after.cells.map(({ arm }) => arm)).toEqual(["rr", "kv"]);
    expect(after.cells[1].prompts?.sentBefore).toBeGreaterThan(0);
    const { content } = await readProvenance(join(folder, "out"));
    expect(content?.resumed).toMatchObject([{ finishedCells: 1 }]);
    expect(existsSync(join(folder, "out", ".cells"))).toBe(false);
  });

  test("does not replace what another experiment has finished, unless told", async () => {
    let started = 0;
    const failing: FleetStarter = (cell, tokens) => {
      started += 1;
      return started > 1 ? Promise.reject(new Error("no more")) : startHere(cell, tokens);
    };
    await expect(runHere({}, { start: failing })).rejects.toThrow("no more");
    await expect(runHere({ seed: 7 })).rejects.toThrow("1 finished cells of another run that was cut short");
  });

  test("refuses an arm that chooses by events and hears of none", async () => {
    const lines: string[] = [];
    const { refused, cells } = await runHere({}, { start: deaf, lines });
    expect([...refused]).toEqual([["kv", "0 KV events have reached the router, and kv-cost chooses by them"]]);
    expect(cells.map(({ arm }) => arm)).toEqual(["rr"]);
    expect(lines).toContain("arm kv is not measured: 0 KV events have reached the router, and kv-cost chooses by them");
  });

  test("measures such an arm and labels it where the file wants that", async () => {
    const { refused, cells } = await runHere(
      { arms: [{ name: "kv", policy: "kv-cost" }], live: { unproven: "label" } },
      { start: deaf },
    );
    expect(refused.size).toBe(0);
    expect(statusOf(cells[0], "kv-events")).toBe("failed");
  });

  test("voids a cell in which a worker began anew", async () => {
    const restarting: FleetStarter = async (cell, tokens) => {
      const fleet = await startHere(cell, tokens);
      // The page of a worker whose engine had done more before than it has now.
      const pages = createServer((_, response) => response.end(`vllm:generation_tokens_total ${--total}\n`)).listen(0);
      let total = 1_000_000;
      await once(pages, "listening");
      const url = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
      return {
        ...fleet,
        workers: [{ ...fleet.workers[0], url }, ...fleet.workers.slice(1)],
        close: async () => {
          pages.close();
          pages.closeAllConnections();
          await fleet.close();
        },
      };
    };
    const lines: string[] = [];
    const { cells } = await runHere({ arms: [{ name: "rr", policy: "round-robin" }] }, { start: restarting, lines });
    expect(cells[0].voided).toEqual(["worker worker-0 restarted during the cell"]);
    expect(lines.at(-1)).toBe(`${cells[0].id}: void, worker worker-0 restarted during the cell`);
  });

  test("replays a trace on its own schedule, so many times as fast", async () => {
    const rows = Array.from({ length: 20 }, (_, at) => ({
      timestamp: at * 100,
      input_length: 200,
      output_length: 2,
      hash_ids: [at % 3, 100 + at],
    }));
    const path = join(folder, "trace.jsonl");
    writeFileSync(path, rows.map((row) => JSON.stringify(row)).join("\n"));
    const workload = { trace: { files: [path], blockTokens: 128 } };
    const { experiment } = readExperiment({
      ...EXPERIMENT,
      workload,
      load: { speed: [4] },
      arms: [{ name: "rr", policy: "round-robin" }],
      warmUpSeconds: 0,
      warmUpRequests: undefined,
      windowSeconds: undefined,
    });
    if (experiment?.workload.trace === undefined) throw new Error("no trace");
    const trace = await readTrace(experiment.workload.trace, folder);
    const tokensPerSequence = meanSequenceTokens(experiment.workload, trace, experiment.seed);
    const { cells } = await runExperiment({
      setting: { experiment, trace, tokensPerSequence },
      target: new LocalTarget(tokensPerSequence, startHere),
      out: undefined,
      fresh: false,
      threads: 1,
      command: "test",
      version: "0",
      say: () => {},
    });
    expect(cells[0].accounting).toMatchObject({ offered: 20, completed: 20 });
    expect(cells[0].window).toMatchObject({ startSeconds: 0, endSeconds: 0.475001 });
    expect(cells[0].promptTokensMean).toBe(200);
  });

  test("replays the turns of a trace that wait for answers, to the last", async () => {
    const rows = Array.from({ length: 6 }, (_, session) =>
      Array.from({ length: 4 }, (__, turn) => ({
        ...(turn === 0 ? { timestamp: session * 10 } : { delay: 60 }),
        session_id: session,
        input_length: 200 + 50 * turn,
        output_length: 2,
      })),
    ).flat();
    const path = join(folder, "trace.jsonl");
    writeFileSync(path, rows.map((row) => JSON.stringify(row)).join("\n"));
    const { experiment } = readExperiment({
      ...EXPERIMENT,
      workload: { trace: { files: [path], blockTokens: 128 } },
      load: { speed: [1] },
      arms: [{ name: "rr", policy: "round-robin" }],
      warmUpSeconds: 0,
      warmUpRequests: undefined,
      windowSeconds: undefined,
    });
    if (experiment?.workload.trace === undefined) throw new Error("no trace");
    const trace = await readTrace(experiment.workload.trace, folder);
    const tokensPerSequence = meanSequenceTokens(experiment.workload, trace, experiment.seed);
    const { cells } = await runExperiment({
      setting: { experiment, trace, tokensPerSequence },
      target: new LocalTarget(tokensPerSequence, startHere),
      out: undefined,
      fresh: false,
      threads: 1,
      command: "test",
      version: "0",
      say: () => {},
    });
    expect(cells[0].accounting).toMatchObject({ offered: 24, completed: 24 });
    expect(cells[0].unsentRows).toBeUndefined();
    expect(cells[0].window.endSeconds).toBeGreaterThan(0.23);
    expect(cells[0].window.endSeconds).toBeLessThan(5);
  });

  test("primes caches by a pass of the same requests", async () => {
    const { cells } = await runHere({ cacheState: "primed", arms: [{ name: "rr", policy: "round-robin" }] });
    expect(cells[0].cacheStart).toEqual({ state: "primed", enforcedBy: "pass" });
    // Both workers have seen both starters before the first request of the cell.
    expect(cells[0].cache.observed).toBeGreaterThan(0.8);
  });
});

describe("an experiment on a Dynamo deployment that kubectl switches", () => {
  /** A kubectl that keeps one graph in a file, and writes down what it was asked. */
  const KUBECTL = `#!/bin/sh
echo "$@" >> "$KUBECTL_FOLDER/calls"
case "$*" in
  *"get dynamographdeployments"*jsonpath*) sed 's/^{"spec"://; s/}$//' "$KUBECTL_FOLDER/graph.json" ;;
  *"get dynamographdeployments"*) cat "$KUBECTL_FOLDER/graph.json" ;;
  *replace*) cat > "$KUBECTL_FOLDER/next.json" && mv "$KUBECTL_FOLDER/next.json" "$KUBECTL_FOLDER/graph.json" ;;
  *"get pods"*) for pod in 0 1 2 3 4 5 6 7; do echo "worker-$pod uid-$pod/0 true"; done; echo "worker-8 uid-8/0 false" ;;
esac
`;
  const GRAPH = `{"spec":{"services":{"Frontend":{"envs":[{"name":"DYN_ROUTER_MODE","value":"random"}]}}}}`;

  let example: string;

  beforeEach(() => {
    example = join(folder, "dynamo-ab");
    cpSync(join(REPOSITORY, "examples", "dynamo-ab"), example, { recursive: true });
    const programs = join(folder, "programs");
    mkdirSync(programs);
    writeFileSync(join(programs, "kubectl"), KUBECTL);
    chmodSync(join(programs, "kubectl"), 0o755);
    writeFileSync(join(folder, "graph.json"), GRAPH);
    const environment = {
      PATH: `${programs}:${process.env["PATH"]}`,
      KUBECTL_FOLDER: folder,
      TMPDIR: folder,
    };
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
  });

  const SHORT =
    "--levels 40 --runs 1 --warm-up 0.1 --warm-up-requests 10 --window 0.5 --drain 5 --cache-state cold".split(" ");

  async function run(url: string): Promise<{ code: number; errors: string[] }> {
    const errors: string[] = [];
    const terminal = {
      colours: pc.createColors(false),
      debug: false,
      print: () => {},
      printError: (line: string) => void errors.push(line),
      readStdin: () => Promise.resolve(""),
    };
    const out = join(folder, "out");
    const words = ["run", join(example, "experiment.yaml"), "--on", url, "--out", out, ...SHORT];
    return { code: await runCli(words, terminal), errors };
  }

  test("switches the router's mode and nothing else, and puts it back", async () => {
    const worker = await startTestWorker({ speed: 1000, maxSeqLen: 100_000 });
    onTestFinished(() => worker.close(0));
    const { code, errors } = await run(worker.url);
    expect(errors.filter((line) => line.includes("NOT DECLARED"))).toEqual([]);
    expect(code).toBe(0);
    const calls = readFileSync(join(folder, "calls"), "utf8");
    expect(calls.match(/ replace /g)?.length).toBe(3);
    expect(calls.match(/ delete pods /g)?.length).toBe(2);
    expect(readFileSync(join(folder, "graph.json"), "utf8")).toContain('"DYN_ROUTER_MODE","value":"random"');
    const results = await resultsIn(join(folder, "out"));
    expect(results.target).toBe(worker.url);
    const modes = results.arms?.map(
      ({ settings }) => settings["described.services.Frontend.envs.DYN_ROUTER_MODE.value"],
    );
    expect(modes).toEqual(["round-robin", "kv"]);
    expect(results.comparability).toMatchObject({ verdict: "comparable" });
    for (const cell of results.cells) {
      expect(cell.accounting.completed).toBeGreaterThan(0);
      // Nobody says which of the eight pods answered, how many events came, or what their GPUs did.
      expect(cell.workers).toHaveLength(8);
      expect(cell.workers[0]).toMatchObject({ requests: "unavailable", busyShare: "unavailable" });
      expect(cell.inflightSpread).toBe("unavailable");
      expect(cell.cache.predicted).toBe("unavailable");
      expect(statusOf(cell, "kv-events")).toBe("unavailable");
      expect(statusOf(cell, "cache-start")).toBe("failed");
    }
  });

  test.each([
    ["dynamo-frontend:0.9.0", "", "round_robin"],
    ["dynamo-frontend:1.1.0", "", "round-robin"],
    ["dynamo-frontend:10.9.0", "", "round-robin"],
    ["mine:nightly", "_", "round_robin"],
  ])("calls the baseline of %s with separator '%s' %s", async (image, separator, mode) => {
    writeFileSync(join(folder, "graph.json"), GRAPH.replace('"envs"', `"image": "registry/${image}","envs"`));
    const environment = { WARMPATH_POLICY: "round-robin", MODE_SEPARATOR: separator };
    const { status, stderr } = await runProgram("sh", [join(example, "hooks", "before-arm.sh")], { environment });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(readFileSync(join(folder, "graph.json"), "utf8")).toContain(`"DYN_ROUTER_MODE","value":"${mode}"`);
  });

  test("puts the mode back after a failure", async () => {
    writeFileSync(join(example, "hooks", "describe-arm.sh"), "echo lost the cluster >&2; exit 3\n");
    const worker = await startTestWorker({ speed: 1000 });
    onTestFinished(() => worker.close(0));
    const { code, errors } = await run(worker.url);
    expect(code).toBe(2);
    expect(errors.at(-1)).toContain("hook describe_arm ended with 3: lost the cluster");
    expect(readFileSync(join(folder, "graph.json"), "utf8")).toContain('"DYN_ROUTER_MODE","value":"random"');
  });
});
