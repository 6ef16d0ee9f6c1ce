import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";
import { lookRepeatedly } from "./parts/repeated-look.ts";
import { Roster } from "./parts/roster.ts";
import { describedWorker, problemOf } from "./parts/worker-schema.ts";
import type { DiscoveredWorker, DiscoveryListener, DiscoveryPlane, DiscoveryWatch } from "./types.ts";

export interface FileDiscoveryOptions {
  /** A YAML or JSON file: a list of workers, or a map with the list under `workers`. */
  readonly path: string;
  readonly intervalMs: number;
}

const fileSchema = z.union([z.array(describedWorker), z.object({ workers: z.array(describedWorker) })]);

/**
 * Workers that stand in a file. It is read again every so often: watching does not work on the mounts where such files
 * usually lie. A file that cannot be read or is wrong changes nothing.
 */
export class FileDiscovery implements DiscoveryPlane {
  readonly #options: FileDiscoveryOptions;

  constructor(options: FileDiscoveryOptions) {
    this.#options = options;
  }

  async watch(listener: DiscoveryListener): Promise<DiscoveryWatch> {
    const { path, intervalMs } = this.#options;
    const roster = new Roster(listener);
    let lastText: string | undefined;
    const read = async (): Promise<readonly DiscoveredWorker[] | undefined> => {
      try {
        const text = await readFile(path, "utf8");
        if (text === lastText) return undefined;
        lastText = text;
        return workersOf(text);
      } catch (error) {
        roster.problem(`${path}: ${(error as Error).message}`);
        return undefined;
      }
    };
    const watch = await lookRepeatedly(async () => {
      const workers = await read();
      if (workers !== undefined) roster.replace(workers);
    }, intervalMs);
    return {
      look: () => watch.look(),
      close: () => {
        roster.close();
        return watch.close();
      },
    };
  }
}

function workersOf(text: string): readonly DiscoveredWorker[] {
  const { data, error } = fileSchema.safeParse(parse(text) ?? []);
  if (data === undefined) throw new Error(problemOf(error));
  const workers = Array.isArray(data) ? data : data.workers;
  const twice = workers.find(({ name }, i) => workers.findIndex((other) => other.name === name) < i);
  if (twice !== undefined) throw new Error(`two workers are named ${twice.name}`);
  return workers;
}
