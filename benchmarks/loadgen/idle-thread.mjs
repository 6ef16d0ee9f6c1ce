/**
 * A thread with nothing to do, which tells how late it was woken: what the machine adds to every lag, whoever is measured.
 * Plain JavaScript, so that it starts without a loader.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parentPort } from "node:worker_threads";

const RESOLUTION_MS = 2;
const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });

parentPort?.on("message", (message) => {
  if (message === "begin") delays.enable();
  else parentPort?.postMessage(Math.max(0, delays.percentile(99) / 1e6 - RESOLUTION_MS), []);
});
