import { levelName, type Metric } from "../../../lab/experiment/metrics.ts";
import { type Comparison, summariseErrors } from "../../../lab/experiment/compare-published.ts";
import type { PublishedStudy } from "../../../lab/experiment/published.ts";
import { tableLines, type TableColumn } from "../../table.ts";
import type { Colours } from "../../terminal.ts";

const VALUE_COLUMNS: readonly TableColumn[] = [
  { title: "arm", align: "left" },
  { title: "level", align: "left" },
  { title: "metric", align: "left" },
  { title: "published", align: "right" },
  { title: "simulated", align: "right" },
  { title: "error", align: "right" },
  { title: "", align: "left" },
];

const SUMMARY_COLUMNS: readonly TableColumn[] = [
  { title: "arm", align: "left" },
  { title: "metric", align: "left" },
  { title: "cells", align: "right" },
  { title: "mean |error|", align: "right" },
  { title: "worst", align: "right" },
  { title: "bias", align: "right" },
];

const CONTRAST_COLUMNS: readonly TableColumn[] = [
  { title: "contrast", align: "left" },
  { title: "level", align: "left" },
  { title: "published", align: "right" },
  { title: "simulated", align: "right" },
  { title: "", align: "left" },
];

/** The study beside the run: every cell, then contrasts between arms, then errors by metric. */
export function comparisonLines(study: PublishedStudy, comparison: Comparison, colours: Colours): string[] {
  const { values, contrasts, missing } = comparison;
  const lines = [`published: ${study.study} (${study.source})`, ...study.notes.map((note) => `note: ${note}`)];
  lines.push(...fittedLines(study), "");
  const rows = values.map(({ arm, level, metric, published, simulated, error, saturated, fitted }) => ({
    cells: [
      arm,
      levelName(level),
      metric.title,
      shown(metric, published),
      simulated === undefined ? "-" : shown(metric, simulated),
      error === undefined ? "-" : signed(metric, error),
      [saturated ? "saturated" : "", fitted === undefined ? "" : "fitted"].filter((mark) => mark !== "").join(", "),
    ],
  }));
  lines.push(...tableLines(VALUE_COLUMNS, rows, colours));
  if (contrasts.length > 0) {
    const contrastRows = contrasts.map(({ metric, arm, against, as, level, published, simulated, sameSign }) => {
      const write = (value: number): string => {
        if (as === "ratio") return `${value.toFixed(2)}x`;
        return metric.endsWith("Share") ? `${signedNumber(100 * value)} pp` : signedNumber(value);
      };
      const name = `${metric}: ${arm} ${as === "ratio" ? "/" : "-"} ${against}`;
      return { cells: [name, levelName(level), write(published), write(simulated), sameSign ? "" : "OTHER SIGN"] };
    });
    lines.push("", ...tableLines(CONTRAST_COLUMNS, contrastRows, colours));
  }
  const summaries = summariseErrors(comparison).map(({ arm, metric, n, meanAbsolute, worst, bias }) => ({
    cells: [
      arm,
      metric.title,
      String(n),
      signed(metric, meanAbsolute).replace("+", ""),
      signed(metric, worst),
      signed(metric, bias),
    ],
  }));
  if (summaries.length > 0) {
    lines.push("", "errors over the cells that are neither fitted nor saturated (rates: not fitted)");
    lines.push(...tableLines(SUMMARY_COLUMNS, summaries, colours));
  }
  if (missing.length > 0) lines.push("", `published but not run: ${missing.join("; ")}`);
  return lines;
}

/** The comparison for machines. */
export function comparisonJson(study: PublishedStudy, comparison: Comparison): object {
  return {
    study: study.study,
    source: study.source,
    notes: study.notes,
    fitted: study.fitted,
    cells: comparison.values.map(({ metric, fitted, ...value }) => ({
      ...value,
      metric: metric.name,
      simulated: value.simulated ?? null,
      error: value.error ?? null,
      errorUnit: metric.kind === "share" ? "percentage points" : "percent",
      fitted: fitted ?? null,
    })),
    contrasts: comparison.contrasts,
    errors: summariseErrors(comparison).map(({ metric, ...summary }) => ({ ...summary, metric: metric.name })),
    missing: comparison.missing,
  };
}

function fittedLines({ fitted }: PublishedStudy): string[] {
  if (fitted.length === 0) return ["fitted to this study: nothing"];
  return fitted.map(({ what }) => `fitted to this study: ${what}`);
}

function shown(metric: Metric, value: number): string {
  return metric.kind === "share" ? `${(100 * value).toFixed(1)} %` : value.toFixed(metric.decimals);
}

function signed(metric: Metric, error: number): string {
  return metric.kind === "share" ? `${signedNumber(error)} pp` : `${signedNumber(error)} %`;
}

function signedNumber(value: number): string {
  return `${value < 0 ? "" : "+"}${value.toFixed(1)}`;
}
