/** How often the worker of the benchmark sends a chunk to every open stream: a step of an engine. */
export const TICK_MS = 20;
