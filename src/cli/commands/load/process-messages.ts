import type { Accounting } from "../../../core/accounts.ts";
import type { ClientHealth } from "../../../loadgen/client-health.ts";
import type { LoadTotalsData } from "../../../loadgen/load-totals.ts";
import type { InFlightElsewhere, RollingSlice } from "../../../measure/rolling/rolling-metrics.ts";
import type { PreparedLoad } from "./compose.ts";

/** What a process of a load is told. */
export type LoadOrder =
  | {
      readonly kind: "start";
      readonly prepared: PreparedLoad;
      readonly index: number;
      readonly of: number;
      /** The moment that is 0 in the times of all processes, by the clock they share; JSON has no integers so large. */
      readonly originHrtimeNs: string;
      /** Where its records go. */
      readonly recordsPath: string | undefined;
    }
  | { readonly kind: "concurrency"; readonly concurrency: number }
  | { readonly kind: "stop"; readonly drainMs: number };

/** Everything a process has counted so far, and the seconds that are over since it last told. */
export interface LoadNews {
  readonly seconds: number;
  readonly accounts: Accounting;
  readonly totals: LoadTotalsData;
  readonly health: ClientHealth;
  readonly inFlight: InFlightElsewhere;
  readonly slices: readonly RollingSlice[];
  readonly userFailures: number;
}

/** What a process of a load tells. */
export type LoadReport =
  | { readonly kind: "ready" }
  | { readonly kind: "news"; readonly news: LoadNews }
  | { readonly kind: "finished"; readonly news: LoadNews }
  | { readonly kind: "failed"; readonly message: string };
