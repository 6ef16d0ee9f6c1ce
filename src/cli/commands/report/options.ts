import { WarmpathError } from "../../../core/errors.ts";
import type { Slo } from "../../../measure/slo.ts";

const FORMATS = ["md", "html", "tsv"] as const;

export type ReportFormat = (typeof FORMATS)[number];

/** Reads `--format md,html`. */
export function readFormats(written: string): ReportFormat[] {
  return written.split(",").map((part) => {
    const format = FORMATS.find((one) => one === part.trim());
    if (format !== undefined) return format;
    throw new WarmpathError("WP_INVALID_INPUT", `--format must be of ${FORMATS.join(", ")}, got "${written}"`);
  });
}

const TERMS: Readonly<Record<string, keyof Slo>> = { ttft: "ttftMs", tpot: "tpotMs", e2e: "e2eMs" };

/** Reads `--slo ttft=600,tpot=60`; milliseconds. */
export function readSlo(written: string): Slo {
  const limits = written.split(",").map((part): [keyof Slo, number] => {
    const [, name = "", value = ""] = /^\s*(\w+)=(\d+(?:\.\d+)?)\s*$/.exec(part) ?? [];
    const term = TERMS[name];
    if (term === undefined || Number(value) <= 0) {
      throw new WarmpathError(
        "WP_INVALID_INPUT",
        `--slo must be limits in ms such as ttft=600,tpot=60 (${Object.keys(TERMS).join(", ")}), got "${written}"`,
      );
    }
    return [term, Number(value)];
  });
  const again = limits.find(([term], at) => limits.findIndex(([other]) => other === term) !== at);
  if (again !== undefined) {
    throw new WarmpathError("WP_INVALID_INPUT", `--slo must have each limit once, got "${written}"`);
  }
  return Object.fromEntries(limits);
}
