import { expect, test } from "vitest";
import { readInProcess } from "./settings-reader.ts";

test("settings that cannot be read in time are not waited for", async () => {
  // Sooner than any process can have started.
  const reading = readInProcess({ flags: {}, file: undefined }, 1);
  await expect(reading).rejects.toThrow("the settings could not be read within 0.001 s");
});
