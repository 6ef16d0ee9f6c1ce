import { Counter, Gauge, type Registry } from "prom-client";
import type { Reloading } from "../reload.ts";

/** Puts into a registry whether the settings in force are those that are written. */
export function registerReloadGauges(registry: Registry, reloading: Reloading): void {
  const ok: Gauge = new Gauge({
    name: "warmpath_reload_last_ok",
    help: "1 if the settings were applied when they were last read again, or were never read again; 0 if something was wrong.",
    registers: [registry],
    collect: () => ok.set(reloading.last?.isApplied === false ? 0 : 1),
  });
  const time: Gauge = new Gauge({
    name: "warmpath_reload_last_timestamp_seconds",
    help: "When the settings were last read again, in seconds since 1970; 0 if never.",
    registers: [registry],
    collect: () => time.set((reloading.last?.atMs ?? 0) / 1000),
  });
  const waiting: Gauge = new Gauge({
    name: "warmpath_reload_need_restart",
    help: "Settings that are written differently and wait for a restart.",
    registers: [registry],
    collect: () => waiting.set(reloading.last?.needRestart.length ?? 0),
  });
  const reloads: Counter = new Counter({
    name: "warmpath_reloads_total",
    help: "Times the settings were read again, by whether they were applied or refused.",
    labelNames: ["result"],
    registers: [registry],
    collect: () => {
      reloads.reset();
      for (const [result, count] of Object.entries(reloading.counts)) reloads.inc({ result }, count);
    },
  });
}
