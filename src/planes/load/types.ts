/** The load plane's port: what engines say of their load where they do not say it with their events. */
import type { ReportedLoad } from "../../core/load/load-description.ts";

export interface LoadListener {
  load(load: ReportedLoad): void;
  /** The engine could not be asked, or its answer not be understood; told once until it answers again. */
  problem?(message: string): void;
}

export interface LoadWatch {
  close(): Promise<void>;
}

/** Asks engines for their load. */
export interface LoadPlane {
  /** Keeps asking the engine at this URL, or one rank of it. */
  watch(url: string, listener: LoadListener, dpRank?: number): LoadWatch;
}
