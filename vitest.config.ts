import { defineConfig, type ViteUserConfig } from "vitest/config";

/** `unit` sits beside the source and needs nothing built; the others may run the built package and other programs. */
const project = (name: string, include: string, testTimeout: number): { test: object } => ({
  test: { name, include: [include], testTimeout, hookTimeout: testTimeout, sequence: { groupOrder: 1 } },
});

/** First, and on every core: they share nothing and wait for nothing. All others measure or start programs, and have the machine to themselves. */
const unit = {
  test: {
    ...project("unit", "{src,scripts,web}/**/*.test.ts", 20_000).test,
    maxWorkers: "100%",
    sequence: { groupOrder: 0 },
  },
};

/** Last and one after another: what a browser sees of a fleet in real time must not share the machine with other tests. */
const browser = {
  test: {
    ...project("browser", "test/browser/**/*.test.ts", 600_000).test,
    fileParallelism: false,
    sequence: { groupOrder: 2 },
  },
};

const config: ViteUserConfig = defineConfig({
  test: {
    projects: [
      unit,
      project("contracts", "test/contracts/**/*.test.ts", 60_000),
      project("support", "test/support/**/*.test.ts", 20_000),
      project("integration", "test/integration/**/*.test.ts", 60_000),
      project("fuzz", "test/fuzz/**/*.test.ts", 60_000),
      project("chaos", "test/chaos/**/*.test.ts", 180_000),
      project("soak", "test/soak/**/*.test.ts", 180_000),
      project("e2e", "test/e2e/**/*.test.ts", 60_000),
      project("deploy", "test/deploy/**/*.test.ts", 300_000),
      browser,
    ],
  },
});

export default config;
