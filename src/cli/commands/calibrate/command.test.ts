import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pc from "picocolors";
import { describe, expect, it, onTestFinished } from "vitest";
import { runCli } from "../../program.ts";

const HEADER =
  "id,silicon_data_source,backend,backend_version,model_path,system,precision,isl,osl,gemm_quant_mode,batch_size,tp_size,silicon_ttft_ms,silicon_tpot_ms";
const ROWS = [
  "first,source_file=x,trtllm,,meta-llama/Llama-3.1-70B,h200_sxm,fp8,1024,1024,fp8,4,1,550,20",
  "second,unknown,vllm,0.12.0,Qwen/Qwen3-32B,h100_sxm,,1024,128,,8,2,9000,17",
  "third,unknown,vllm,,meta-llama/Llama-3.1-70B,b200_sxm,fp4,1024,128,nvfp4,8,2,100,17",
];

async function run(
  text: string,
  ...words: readonly string[]
): Promise<{ code: number; out: string; errors: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-calibrate-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "rows.csv");
  writeFileSync(file, text);
  const out: string[] = [];
  const errors: string[] = [];
  const code = await runCli(["calibrate", "--rows", file, ...words], {
    colours: pc.createColors(false),
    debug: false,
    print: (line) => void out.push(line),
    printError: (line) => void errors.push(line),
    readStdin: () => Promise.resolve(""),
  });
  return { code, out: out.join("\n"), errors };
}

describe("warmpath calibrate", () => {
  it("prints every row, covered or not, and the error per group", async () => {
    const { code, out } = await run([HEADER, ...ROWS].join("\n"));
    expect(code).toBe(0);
    expect(out).toMatch(/^first +20\.00 +\d/m);
    expect(out).toMatch(/^third .*not covered: fp4 weights are not modelled/m);
    expect(out).toContain("TPOT median %");
    expect(out).toContain("3 rows, 2 covered, 1 not covered");
  });

  it("prints rows as JSON with the fields that machines read", async () => {
    const { out } = await run([HEADER, ...ROWS].join("\n"), "--json");
    const { rows } = JSON.parse(out) as { rows: Record<string, unknown>[] };
    expect(rows.map((row) => [row["id"], row["covered"], row["ttftSaturated"], typeof row["tpotErrorPct"]])).toEqual([
      ["first", true, false, "number"],
      ["second", true, true, "number"],
      ["third", false, false, "object"],
    ]);
  });

  it("keeps measured values out of what is published", async () => {
    const { out } = await run([HEADER, ROWS[0].replace(",20", ",20.125")].join("\n"), "--markdown");
    expect(out).toContain("| first |");
    expect(out).not.toContain("20.125");
    expect(out).not.toContain("550");
  });

  it("fits on a named subset and says what it changed", async () => {
    const slow = ROWS[0].replace(",20", ",26").replace("1024,1024", "256,32");
    const { code, out, errors } = await run([HEADER, slow].join("\n"), "--fit", "--subset", "all");
    expect(code).toBe(0);
    expect(errors[0]).toMatch(/^fitted trtllm fp8 hopper: loss/);
    expect(errors[1]).toMatch(/^too few rows to tell 12 constants apart: trtllm fp8 hopper \(1\); /);
    expect(out).toContain("constants fitted on the subset all");
    expect(out).toContain("  trtllm fp8 hopper, on 1 row");
  });

  it("answers a malformed line with one line and exit code 2", async () => {
    const { code, errors } = await run([HEADER, "a,b"].join("\n"));
    expect([code, errors]).toEqual([2, ["warmpath calibrate: rows.csv line 2: has 2 fields, the header has 14"]]);
  });
});
