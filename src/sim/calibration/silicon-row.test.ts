import { describe, expect, it } from "vitest";
import { hasDocumentedClient, parseSiliconRows, splitCsvLine } from "./silicon-row.ts";

const HEADER =
  "id,silicon_data_source,backend,backend_version,model_path,system,precision,isl,osl,gemm_quant_mode,batch_size,tp_size,silicon_ttft_ms,silicon_tpot_ms";
const LINE = '"a, b",source_file=x,vllm,,Qwen/Qwen3-8B,h100_sxm,,1024,128,,16,2,800.5,16.5';

describe("parseSiliconRows", () => {
  it("reads quotes, empty precisions and trailing lines", () => {
    const [row] = parseSiliconRows(`${HEADER}\r\n${LINE}\r\n`, "rows.csv");
    expect(row).toMatchObject({ id: "a, b", precision: "bf16", inputTokens: 1024, concurrency: 16, tpotMs: 16.5 });
    expect(hasDocumentedClient(row)).toBe(true);
  });

  it("finds columns by name, in any order", () => {
    const reversed = [HEADER, LINE.replace("a, b", "a")].map((line) =>
      (splitCsvLine(line) ?? []).toReversed().join(","),
    );
    expect(parseSiliconRows(reversed.join("\n"), "rows.csv")[0]).toMatchObject({ id: "a", ttftMs: 800.5 });
  });

  const broken: readonly (readonly [string, string, RegExp])[] = [
    ["a missing column", `${HEADER.replace(",isl", ",x")}\n${LINE}`, /^rows\.csv line 1: the column isl is missing$/],
    ["too few fields", `${HEADER}\n${LINE}\nfoo,bar`, /^rows\.csv line 3: has 2 fields, the header has 14$/],
    [
      "a number that is none",
      `${HEADER}\n${LINE.replace("1024", "many")}`,
      /^rows\.csv line 2: isl must be a whole number above 0, got "many"$/,
    ],
    [
      "a negative time",
      `${HEADER}\n${LINE.replace("16.5", "-1")}`,
      /^rows\.csv line 2: silicon_tpot_ms must be a number above 0, got "-1"$/,
    ],
    ["an open quote", `${HEADER}\n${LINE.replace('"a', '""a')}`, /^rows\.csv line 2: a quote is not closed$/],
    ["a repeated id", `${HEADER}\n${LINE}\n${LINE}`, /^rows\.csv line 3: the id a, b is already on line 2$/],
    ["no rows", HEADER, /^rows\.csv line 2: there are no rows$/],
    ["an empty file", "", /^rows\.csv line 1: the column id is missing$/],
  ];
  it.each(broken)("names file, line and problem for %s", (_, text, message) => {
    expect(() => parseSiliconRows(text, "rows.csv")).toThrow(message);
  });
});
