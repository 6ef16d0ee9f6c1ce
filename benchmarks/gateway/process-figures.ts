import { readFileSync } from "node:fs";

/** Clock ticks per second that /proc counts in, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** CPU seconds of these processes so far, user and system. */
export function cpuSeconds(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    // The name, in brackets, may contain anything; the fields after it do not.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / TICKS_PER_SECOND;
}

/** Resident memory of these processes, in megabytes. */
export function residentMegabytes(pids: readonly number[]): number {
  let kilobytes = 0;
  for (const pid of pids) {
    kilobytes += Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  }
  return Math.round(kilobytes / 1024);
}

/** CPU seconds that the whole machine has worked so far, whoever it worked for. */
export function machineCpuSeconds(): number {
  const [first] = readFileSync("/proc/stat", "utf8").split("\n");
  const [user, nice, system, , , interrupts, softInterrupts, stolen] = first.trim().split(/\s+/).slice(1).map(Number);
  return (user + nice + system + interrupts + softInterrupts + stolen) / TICKS_PER_SECOND;
}
