import { defineConfig, type UserConfig } from "vite";

/** The live page as static files in dist/web, which the package ships and `warmpath up` serves. */
const config: UserConfig = defineConfig({
  build: {
    outDir: "../dist/web",
    emptyOutDir: true,
    target: "es2022",
    // One script and one style: the page is small, and a demo may be far from its server.
    modulePreload: false,
    cssCodeSplit: false,
  },
  // For work on the page: `npx vite web` beside a running `warmpath up`.
  server: { proxy: { "/api": "http://127.0.0.1:8080" } },
});

export default config;
