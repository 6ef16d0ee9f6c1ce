/**
 * Who may import whom; docs/architecture.md has the picture. A layer lists what it may use, everything else is forbidden,
 * so a new folder has no friends until it is named here. Tests are exempt: they may look anywhere.
 */
const TEST = "\\.test(-support)?\\.tsx?$";
const PORT = "^src/planes/[^/]+/types\\.ts$";
/** Adapters that make tokens are made of tokenizers; those of the other planes are not. */
const TOKENS = "^src/planes/tokens/";
const PURE = ["core", "measure", "workload", "sim", "wire", "tokenizer"];

/** Layers and what each may import besides itself; `ports` are the interfaces of src/planes, never an adapter. */
const MAY_IMPORT = {
  core: [],
  measure: ["core"],
  workload: ["core"],
  sim: ["core", "workload"],
  wire: ["core"],
  tokenizer: ["core"],
  gateway: ["core", "measure", "wire", "tokenizer", "dashboard", "ports"],
  worker: ["core", "sim", "wire", "tokenizer", "ports"],
  loadgen: ["core", "measure", "workload", "wire", "tokenizer"],
  lab: ["core", "measure", "workload", "sim", "wire"],
  dashboard: ["core", "measure", "wire"],
};

const folderOf = (name) => (name === "ports" ? PORT : `^src/${name}/`);

const layers = Object.entries(MAY_IMPORT).map(([layer, others]) => ({
  name: `layer-${layer}`,
  comment: `${layer} may import ${["itself", ...others].join(", ")}`,
  severity: "error",
  from: { path: `^src/${layer}/`, pathNot: TEST },
  to: { path: "^(src|web|test|benchmarks|scripts)/", pathNot: [layer, ...others].map(folderOf) },
}));

module.exports = {
  forbidden: [
    ...layers,
    {
      name: "pure-layers-use-no-node-built-ins",
      comment: "What decides or models runs under any clock and on any host.",
      severity: "error",
      from: { path: `^src/(${PURE.join("|")})/`, pathNot: TEST },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "routing-and-models-use-no-packages",
      comment: "A codec in src/wire may need a library; what decides or models may not.",
      severity: "error",
      from: { path: "^src/(core|measure|workload|sim)/", pathNot: TEST },
      to: { path: "node_modules/" },
    },
    {
      name: "an-adapter-imports-its-port-core-and-wire",
      comment:
        "An adapter may have a folder of its own name for its parts; what those of one plane share is in parts/.",
      severity: "error",
      from: { path: "^src/planes/([^/]+)/([^/.]+)", pathNot: [TEST, PORT, TOKENS] },
      to: {
        path: "^src/",
        pathNot: [
          "^src/(core|wire)/",
          "^src/planes/$1/types\\.ts$",
          "^src/planes/$1/parts/",
          "^src/planes/$1/$2[./]",
          "^src/planes/http-mount/types\\.ts$",
          // One connection to a broker serves the planes that go over it.
          "^src/planes/nats/",
        ],
      },
    },
    {
      name: "an-adapter-of-tokens-imports-tokenizers-too",
      severity: "error",
      from: { path: `${TOKENS}([^/.]+)`, pathNot: [TEST, PORT] },
      to: { path: "^src/", pathNot: ["^src/(core|wire|tokenizer)/", `${TOKENS}types\\.ts$`, `${TOKENS}$1[./]`] },
    },
    {
      name: "a-port-imports-core-and-wire",
      severity: "error",
      from: { path: PORT, pathNot: TOKENS },
      to: { path: "^src/", pathNot: ["^src/(core|wire)/", PORT] },
    },
    {
      name: "the-port-of-tokens-imports-tokenizers-too",
      severity: "error",
      from: { path: `${TOKENS}types\\.ts$` },
      to: { path: "^src/", pathNot: ["^src/(core|wire|tokenizer)/", PORT] },
    },
    {
      name: "only-cli-imports-adapters",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/(cli|planes)/", TEST] },
      to: { path: "^src/planes/", pathNot: PORT },
    },
    {
      name: "gateway-never-imports-sim",
      comment: "The gateway must serve real engines with the same objects; a simulated fleet is just another upstream.",
      severity: "error",
      from: { path: "^src/gateway/", pathNot: TEST },
      to: { path: "^src/sim/" },
    },
    {
      name: "nobody-imports-cli",
      severity: "error",
      from: { path: "^(src|web)/", pathNot: ["^src/cli/", TEST] },
      to: { path: "^src/cli/" },
    },
    {
      name: "web-imports-only-the-dashboard-protocol",
      severity: "error",
      from: { path: "^web/", pathNot: TEST },
      to: { path: "^src/", pathNot: "^src/dashboard/protocol\\.ts$" },
    },
    {
      name: "no-cycles",
      severity: "error",
      from: { pathNot: TEST },
      to: { circular: true },
    },
    {
      name: "every-import-resolves",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "source-uses-no-development-packages",
      severity: "error",
      from: { path: "^src/", pathNot: TEST },
      // An optional peer is installed here for the tests, and loaded by its one adapter when somebody asks for it.
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only", "npm-peer"] },
    },
  ],
  options: {
    // Types count: a layer that needs another's types depends on it.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "types", "node", "default"],
      extensions: [".ts", ".tsx", ".js", ".mjs"],
    },
  },
};
