import { defineConfig, type ViteUserConfig } from "vitest/config";

/** `unit` sits beside the source and needs nothing built; the others may run the built package and other programs. */
const project = (name: string, include: string, testTimeout: number): { test: object } => ({
  test: { name, include: [include], testTimeout, hookTimeout: testTimeout },
});

const config: ViteUserConfig = defineConfig({
  test: {
    projects: [
      project("unit", "{src,scripts}/**/*.test.ts", 20_000),
      project("contracts", "test/contracts/**/*.test.ts", 60_000),
      project("support", "test/support/**/*.test.ts", 20_000),
      project("integration", "test/integration/**/*.test.ts", 60_000),
      project("e2e", "test/e2e/**/*.test.ts", 60_000),
    ],
  },
});

export default config;
