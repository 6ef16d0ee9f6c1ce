import { levelTitle, type ReportLevel } from "../cell.ts";
import type { ReportModel } from "../model.ts";

/** How levels are named in this report's tables: by what differs between them. */
export interface LevelColumn {
  readonly title: string;
  readonly of: (level: ReportLevel) => string;
}

export function levelColumn({ levels }: Pick<ReportModel, "levels">): LevelColumn {
  const has = (name: "concurrency" | "rateRps" | "speed"): boolean =>
    levels.every((level) => level[name] !== undefined);
  const isOneFleet = new Set(levels.map(({ workers }) => workers)).size <= 1;
  const kind = has("concurrency") ? "concurrency" : has("rateRps") ? "rateRps" : has("speed") ? "speed" : undefined;
  const isOneLoad = kind !== undefined && new Set(levels.map((level) => level[kind])).size <= 1;
  if (isOneLoad && !isOneFleet) return { title: "Workers", of: ({ workers }) => String(workers ?? "?") };
  if (kind === undefined) return { title: "Level", of: levelTitle };
  const title = { concurrency: "Concurrency", rateRps: "Arrivals/s", speed: "Speed" }[kind];
  if (isOneFleet) return { title, of: (level) => String(level[kind]) };
  return { title: `${title}, workers`, of: (level) => `${level[kind]}, ${level.workers ?? "?"}` };
}

/** Several levels in a row; one that is named by load and workers, with a comma of its own, in brackets. */
export function levelList(levels: readonly ReportLevel[], { of }: LevelColumn): string {
  const names = levels.map((level) => of(level));
  return names.map((name) => (names.length > 1 && name.includes(", ") ? `(${name})` : name)).join(", ");
}
