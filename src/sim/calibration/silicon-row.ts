import { WarmpathError } from "../../core/errors.ts";

/** One measured point of a serving engine. */
export interface SiliconRow {
  readonly id: string;
  readonly dataSource: string;
  readonly backend: string;
  readonly backendVersion: string;
  readonly model: string;
  readonly system: string;
  /** `bf16`, `fp8` or whatever else the file says. */
  readonly precision: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly concurrency: number;
  readonly tensorParallel: number;
  readonly ttftMs: number;
  readonly tpotMs: number;
}

const COLUMNS = [
  "id",
  "silicon_data_source",
  "backend",
  "backend_version",
  "model_path",
  "system",
  "precision",
  "isl",
  "osl",
  "batch_size",
  "tp_size",
  "silicon_ttft_ms",
  "silicon_tpot_ms",
] as const;

type Column = (typeof COLUMNS)[number];

/** Reads a measurements file; a line that cannot be read is an error that names file, line and reason. */
export function parseSiliconRows(text: string, fileName: string): SiliconRow[] {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  const fail = (line: number, reason: string): never => {
    throw new WarmpathError("WP_INVALID_INPUT", `${fileName} line ${line}: ${reason}`);
  };
  const header = splitCsvLine(lines[0]) ?? fail(1, "a quote is not closed");
  const at = new Map<Column, number>();
  for (const column of COLUMNS) {
    const index = header.indexOf(column);
    if (index < 0) fail(1, `the column ${column} is missing`);
    at.set(column, index);
  }
  const rows: SiliconRow[] = [];
  const seen = new Map<string, number>();
  for (let number = 2; number <= lines.length; number++) {
    const line = lines[number - 1];
    if (line === "") continue;
    const cells = splitCsvLine(line) ?? fail(number, "a quote is not closed");
    if (cells.length !== header.length) fail(number, `has ${cells.length} fields, the header has ${header.length}`);
    const read = (column: Column): string => cells[at.get(column) ?? 0].trim();
    const readText = (column: Column): string => read(column) || fail(number, `${column} is empty`);
    const readNumber = (column: Column, whole: boolean): number => {
      const value = Number(read(column) || Number.NaN);
      const wanted = whole ? "a whole number above 0" : "a number above 0";
      if (!(value > 0) || !Number.isFinite(value) || (whole && !Number.isInteger(value))) {
        fail(number, `${column} must be ${wanted}, got "${read(column)}"`);
      }
      return value;
    };
    const id = readText("id");
    const earlier = seen.get(id);
    if (earlier !== undefined) fail(number, `the id ${id} is already on line ${earlier}`);
    seen.set(id, number);
    rows.push({
      id,
      dataSource: read("silicon_data_source"),
      backend: readText("backend"),
      backendVersion: read("backend_version"),
      model: readText("model_path"),
      system: readText("system"),
      precision: precisionName(read("precision")),
      inputTokens: readNumber("isl", true),
      outputTokens: readNumber("osl", true),
      concurrency: readNumber("batch_size", true),
      tensorParallel: readNumber("tp_size", true),
      ttftMs: readNumber("silicon_ttft_ms", false),
      tpotMs: readNumber("silicon_tpot_ms", false),
    });
  }
  if (rows.length === 0) fail(2, "there are no rows");
  return rows;
}

/** An empty precision means BF16; block-scaled FP8 is FP8 to the timing model. */
function precisionName(written: string): string {
  const name = written.toLowerCase();
  if (name === "" || name === "bfloat16") return "bf16";
  return name.startsWith("fp8") ? "fp8" : name;
}

/** The fields of one CSV line, quotes removed; undefined where a quote is left open. */
export function splitCsvLine(line: string): string[] | undefined {
  const cells: string[] = [];
  let cell = "";
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const character = line[i];
    if (quoted && character === '"' && line[i + 1] === '"') {
      cell += '"';
      i += 1;
    } else if (character === '"') {
      quoted = !quoted;
    } else if (character === "," && !quoted) {
      cells.push(cell);
      cell = "";
    } else {
      cell += character;
    }
  }
  if (quoted) return undefined;
  cells.push(cell);
  return cells;
}

/** A row whose client is public: closed loop, ten prompts per slot, end of sequence ignored. */
export function hasDocumentedClient(row: SiliconRow): boolean {
  return row.dataSource.startsWith("source_file=");
}

/** Measured TTFT from which on a row is queueing, not serving. */
export const SATURATED_TTFT_MS = 5000;
