import { describe, expect, test } from "vitest";
import { processTerminal } from "../../terminal.ts";
import { presetNames, readExperimentFile } from "../run/experiment-file.ts";
import { readSettings } from "../worker/settings.ts";
import { simulatedEngine } from "../worker/simulated-engine.ts";
import { workerWords } from "./worker-words.ts";

const presets = await presetNames();

/** Flags as commander would hand them over. */
function flagsOf(words: readonly string[]): Record<string, unknown> {
  const flags: Record<string, unknown> = {};
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (!word.startsWith("--") || word === "--json") continue;
    const name = (text: string): string => text.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const value = words[at + 1];
    if (value !== undefined && !value.startsWith("--")) flags[name(word.slice(2))] = value;
    else if (word.startsWith("--no-")) flags[name(word.slice(5))] = false;
    else flags[name(word.slice(2))] = true;
  }
  return flags;
}

describe("a worker of a preset's fleet", () => {
  test.each(presets)("has the engine that the twin has for %s", async (preset) => {
    const { experiment } = await readExperimentFile(preset, processTerminal());
    const { fleet } = experiment;
    const { engine, plan } = simulatedEngine(readSettings(flagsOf(workerWords(fleet))));
    expect(engine.limits).toMatchObject({
      blockTokens: fleet.blockTokens,
      ...(fleet.engine.maxSequences !== undefined && { maxSequences: fleet.engine.maxSequences }),
      ...(fleet.engine.maxTokensPerStep !== undefined && { maxTokensPerStep: fleet.engine.maxTokensPerStep }),
    });
    expect(engine.speculation === undefined).toBe(fleet.speculation === undefined);
    expect(plan.poolTokens).toBeGreaterThan(0);
  });
});
