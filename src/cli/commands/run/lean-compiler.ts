import { setFlagsFromString } from "node:v8";

/**
 * A simulated cell takes about as long to compile as to run: of a cold second, 0.35 s are V8's optimizing compiler and another quarter
 * is code that waits for it. So it is told to do less per function, and to begin earlier. What runs long afterwards is as fast as before.
 */
const FLAGS = [
  // Copies the body of every small loop, to check what does not change only once; checks here are cheaper than compiling copies.
  "--no-turbo-loop-peeling",
  // The same callees in every caller, and in the callers of these, are most of what is compiled.
  "--max-inlined-bytecode-size=250",
  "--max-inlined-bytecode-size-cumulative=600",
  "--ticks-before-optimization=2",
  "--bytecode-size-allowance-per-tick=300",
];

/** For processes that simulate; to be called before the first cell. Holds for all threads. */
export function compileLean(): void {
  for (const flag of FLAGS) setFlagsFromString(flag);
}
