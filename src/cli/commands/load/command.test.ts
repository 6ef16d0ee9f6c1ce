import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pc from "picocolors";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import {
  type ScriptedRequest,
  startScriptedEndpoint,
  streamWhole,
} from "../../../../test/support/scripted-endpoint.ts";
import { runCli } from "../../program.ts";
import type { Terminal } from "../../terminal.ts";

async function warmpath(...words: string[]): Promise<{ code: number; out: string; errors: string[] }> {
  const out: string[] = [];
  const errors: string[] = [];
  const terminal: Terminal = {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => void out.push(line),
    printError: (line) => void errors.push(line),
    readStdin: () => Promise.resolve(""),
  };
  return { code: await runCli(words, terminal), out: out.join("\n"), errors };
}

async function endpointUrl(answer: (request: ScriptedRequest) => void): Promise<string> {
  const endpoint = await startScriptedEndpoint(answer);
  onTestFinished(() => endpoint.close());
  return endpoint.url;
}

function startersFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-starters-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "tides.md"), "# Tides\n\nThe sea rises and falls.");
  return folder;
}

/** A folder of `warmpath run`. */
function withResults(): string {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-load-"));
  writeFileSync(join(folder, "results.json"), "{}");
  afterAll(() => rmSync(folder, { recursive: true }));
  return folder;
}

const NOWHERE = "http://127.0.0.1:1";

describe("warmpath load", () => {
  test.each([
    [[], /--url is missing/],
    [["--url", "nowhere"], /--url must be valid/],
    [["--url", NOWHERE], /cannot be asked for its models: connect ECONNREFUSED/],
    [["--url", NOWHERE, "--concurrency", "many"], /--concurrency must be a number, got "many"/],
    [["--url", NOWHERE, "--turns", "5-3"], /--turns must be a whole number or a range such as 3-5/],
    [["--url", NOWHERE, "--duration", "soon"], /--duration must be a number, got "soon"/],
    [["--url", NOWHERE, "--body", "[]"], /--body must be an object/],
    [["--url", NOWHERE, "--rate", "2", "--concurrency", "3"], /--concurrency has no effect with --rate/],
    [["--url", NOWHERE, "--rate", "2", "--schedule", "a.jsonl"], /--rate and --schedule exclude each other/],
    [["--url", NOWHERE, "--schedule", "/nowhere.jsonl"], /nowhere\.jsonl: no such file/],
    [["--url", NOWHERE, "--starters", "/nowhere"], /\/nowhere: no such folder/],
    [["--url", NOWHERE, "--model", "m", "--out", withResults()], /: has the results of an experiment; name another/],
    [["--url", NOWHERE, "--admin-url", "127.0.0.1:8900"], /"127\.0\.0\.1:8900" is not an address; write http:/],
    [["--url", NOWHERE, "--unknown"], /unknown option '--unknown'/],
  ])("%j is refused with exit code 2 and one line", async (words, message) => {
    const { code, out, errors } = await warmpath("load", ...words);
    expect({ code, out, lines: errors.length }).toEqual({ code: 2, out: "", lines: 1 });
    expect(errors[0]).toMatch(message);
  });

  test("prints the accounts, the latencies and the client's health", async () => {
    const url = await endpointUrl(({ response }) =>
      streamWhole(response, ["All", " of", " it", " follows", " the", " moon."]),
    );
    const flags = ["--starters", startersFolder(), "--concurrency", "2", "--duration", "300ms", "--think", "0"];
    const { code, out, errors } = await warmpath("load", "--url", url, ...flags);
    expect({ code, errors }).toEqual({ code: 0, errors: [] });
    expect(out).toMatch(/^\d+ offered = \d+ completed \+ 0 shed \+ 0 rejected \+ 0 failed/m);
    expect(out).toMatch(/^TTFT +[\d.]+/m);
    expect(out).toMatch(/cache hit rate 60\.0 %/);
    expect(out).toMatch(/^workers: w1 \d+$/m);
    expect(out).toMatch(/^client: not judged, the run was too short/m);
  });

  test("says what went wrong and how often, and ends well all the same", async () => {
    const url = await endpointUrl(({ response }) => void response.writeHead(500).end("{}"));
    const flags = ["--starters", startersFolder(), "--concurrency", "3", "--duration", "200ms", "--json"];
    const { code, out } = await warmpath("load", "--url", url, ...flags);
    expect(code).toBe(0);
    const summary = JSON.parse(out) as Record<string, unknown>;
    expect(summary["accounting"]).toMatchObject({ offered: 3, completed: 0, failed: 3 });
    expect(summary["failures"]).toEqual({ "failed: answered with 500": 3 });
    expect(summary["cacheHitRate"]).toBe("unavailable");
    expect(summary["ttftMs"]).toMatchObject({ completed: { n: 0, p50: null }, offered: { n: 3, p50: null } });
  });

  test.each(["records.jsonl.gz", "summary.json"])(
    "prints the summary also where %s cannot be written",
    async (file) => {
      const url = await endpointUrl(({ response }) => streamWhole(response, ["yes"]));
      const out = mkdtempSync(join(tmpdir(), "warmpath-load-"));
      onTestFinished(() => rmSync(out, { recursive: true }));
      mkdirSync(join(out, file));
      const flags = ["--starters", startersFolder(), "--concurrency", "1", "--duration", "100ms", "--out", out];
      const { code, out: printed, errors } = await warmpath("load", "--url", url, ...flags);
      expect(printed).toMatch(/^[1-9]\d* offered = [1-9]\d* completed/m);
      expect(printed).not.toContain("written to");
      expect({ code, errors }).toEqual({
        code: 2,
        errors: [`warmpath load: --out ${out}: cannot be written (EISDIR)`],
      });
    },
  );

  test("a port that is taken is one line, and nothing is left running", async () => {
    const url = await endpointUrl(({ response }) => streamWhole(response, ["yes"]));
    const { port } = new URL(url);
    const { code, errors } = await warmpath("load", "--url", url, "--metrics-port", port);
    expect(code).toBe(2);
    expect(errors).toEqual([`warmpath load: --metrics-port ${port}: cannot listen on it (EADDRINUSE)`]);
  });
});
