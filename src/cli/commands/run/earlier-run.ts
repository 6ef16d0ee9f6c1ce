import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { PROVENANCE_FILE, RECORDS_FILE, RESULTS_FILE } from "../../../lab/results/store.ts";
import { AIPERF_FOLDER, removeAiperf } from "../report/write-aiperf.ts";
import { ASIDE_FOLDER, CELLS_FOLDER, cellIdsIn } from "./folder-ownership.ts";

/** What an earlier run has left in a results folder: it is lost only once there is something in its place. */
export class EarlierRun {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Makes room for the cells of a new run. */
  static async setAside(folder: string): Promise<EarlierRun> {
    const cells = join(folder, CELLS_FOLDER);
    if (existsSync(cells)) await rename(cells, join(folder, ASIDE_FOLDER));
    return new EarlierRun(folder);
  }

  /** Puts back what a process that was killed had set aside, unless it had finished cells of its own by then. */
  static async settle(folder: string, hasFinishedCells: boolean): Promise<void> {
    if (!existsSync(join(folder, ASIDE_FOLDER))) return;
    const earlier = new EarlierRun(folder);
    await (hasFinishedCells ? earlier.discard() : earlier.putBack());
  }

  /** Leaves the folder as it was. */
  async putBack(): Promise<void> {
    const cells = join(this.#folder, CELLS_FOLDER);
    const aside = join(this.#folder, ASIDE_FOLDER);
    await rm(cells, { recursive: true, force: true });
    if (existsSync(aside)) await rename(aside, cells);
  }

  /** Removes all of it and nothing else, so that nothing is mistaken for the new run's. */
  async discard(): Promise<void> {
    await removeAiperf(await cellIdsIn(this.#folder), join(this.#folder, AIPERF_FOLDER));
    for (const name of [RESULTS_FILE, PROVENANCE_FILE, RECORDS_FILE, ASIDE_FOLDER]) {
      await rm(join(this.#folder, name), { recursive: true, force: true });
    }
  }
}
