import pc from "picocolors";
import { afterEach, describe, expect, test } from "vitest";
import { doctorCommand } from "../../src/cli/commands/doctor/command.ts";
import { NegativeVerdict } from "../../src/cli/negative-verdict.ts";
import { startTestGateway, type GatewayUnderTest } from "../support/running-gateway.ts";
import { startTestWorker, type WorkerFlags, type WorkerUnderTest } from "../support/running-worker.ts";

interface Diagnosis {
  readonly isMeaningful: boolean;
  readonly failed: readonly string[];
  readonly text: string;
}

describe("warmpath doctor", () => {
  const workers: WorkerUnderTest[] = [];
  let gateway: GatewayUnderTest | undefined;

  afterEach(async () => {
    await gateway?.close();
    gateway = undefined;
    await Promise.all(workers.splice(0).map((worker) => worker.close(0)));
  });

  async function fleet(second: WorkerFlags = {}, settings: object = {}): Promise<GatewayUnderTest> {
    workers.push(await startTestWorker({ name: "a" }), await startTestWorker({ name: "b", ...second }));
    const worker = workers.map(({ name, url }) => `${name}=${url}`);
    gateway = await startTestGateway({ worker, tokenizer: "word", blockTokens: 16, eventPlane: "http", ...settings });
    const { decider } = gateway;
    await expect.poll(() => decider.readiness().workers.ready, { timeout: 10_000 }).toBe(2);
    return gateway;
  }

  async function diagnose(words: readonly string[]): Promise<Diagnosis> {
    const lines: string[] = [];
    const command = doctorCommand({
      colours: pc.createColors(false),
      debug: false,
      print: (line) => lines.push(line),
      printError: () => undefined,
      readStdin: () => Promise.resolve(""),
    });
    const verdict: unknown = await command
      .parseAsync(["--json", ...words], { from: "user" })
      .catch((thrown: unknown) => thrown);
    const isRefused = verdict instanceof NegativeVerdict;
    const text = lines.join("\n");
    const { isMeaningful, findings } = JSON.parse(text) as {
      isMeaningful: boolean;
      findings: { code: string; status: string }[];
    };
    const failed = findings.filter(({ status }) => status === "failed").map(({ code }) => code);
    expect(isRefused).toBe(!isMeaningful);
    return { isMeaningful, failed, text };
  }

  const addressed = ({ url, adminUrl }: GatewayUnderTest): string[] => ["--gateway", url, "--admin", adminUrl];

  test("finds nothing wrong with a fleet that is well", async () => {
    const { isMeaningful, failed, text } = await diagnose(addressed(await fleet()));
    expect(failed).toEqual([]);
    expect(isMeaningful).toBe(true);
    // Every check could be made: our own workers tell everything.
    expect(text).not.toContain("unavailable");
  });

  test("examines engines without a gateway by putting one before them", async () => {
    workers.push(await startTestWorker({ name: "a" }), await startTestWorker({ name: "b" }));
    const { isMeaningful, failed } = await diagnose(workers.flatMap(({ name, url }) => ["--worker", `${name}=${url}`]));
    expect(failed).toEqual([]);
    expect(isMeaningful).toBe(true);
  });

  test("says that nobody answers", async () => {
    const nobody = ["--gateway", "http://127.0.0.1:1", "--admin", "http://127.0.0.1:1"];
    expect(await diagnose(nobody)).toMatchObject({ isMeaningful: false, failed: ["reachable", "tokenizer"] });
  });

  test.each([
    ["another model", { modelPath: "qwen3-8b", kvPoolTokens: 100_000 }, "same-model"],
    ["a smaller cache", { kvPoolTokens: 100_000 }, "equal-workers"],
    ["no events", { publishEventsAndMetrics: false }, "kv-events"],
    ["no reuse", { enableBlockReuse: false }, "cache-hits"],
    ["other blocks", { kvBlockSize: 32 }, "same-block-size"],
  ] as const)("finds a worker with %s", async (_, flags, code) => {
    const { isMeaningful, failed } = await diagnose(addressed(await fleet(flags)));
    expect(failed).toContain(code);
    expect(isMeaningful).toBe(false);
  });

  test("finds a gateway that guesses tokens", async () => {
    const { isMeaningful, failed } = await diagnose(addressed(await fleet({}, { tokenizer: "none" })));
    expect(failed).toContain("tokenizer");
    expect(isMeaningful).toBe(false);
  });
});
