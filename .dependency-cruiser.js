/**
 * Imports point in the direction of the data flow. `npm run lint` fails on an import, even of a
 * type, that this table does not allow. A folder means all files in it and in its subfolders.
 */
const BASE = ["upstream", "fairness", "store", "contract", "observability", "time"];
const DOMAIN = ["social", "chain", ...BASE];
/** The folders of `chain` that an account's balance and history need. */
const READING = ["chain/primitives", "chain/rpc", "chain/launchpad"];
const MAY_IMPORT = {
  contract: [],
  time: [],
  observability: ["time"],
  store: ["observability", "time"],
  fairness: ["upstream", "store", "contract", "observability", "time"],
  upstream: ["contract", "observability", "time"],
  social: BASE,
  "chain/primitives": [],
  "chain/rpc": ["chain/primitives", ...BASE],
  "chain/errors": ["chain/rpc", ...BASE],
  "chain/launchpad": ["chain/primitives", "chain/rpc", ...BASE],
  "chain/balances": ["chain/errors", ...READING, ...BASE],
  "chain/history": ["chain/balances", ...READING, ...BASE],
  "chain/live": ["chain/balances", "chain/launchpad", "chain/rpc", ...BASE],
  "chain/units": ["chain/balances", "chain/errors", ...READING, ...BASE],
  "chain/collect": ["chain/units", "chain/balances", "chain/errors", ...READING, ...BASE],
  resolvers: DOMAIN,
  schema: ["resolvers", ...DOMAIN],
  graphql: ["schema", "resolvers", ...DOMAIN],
  rest: ["graphql", "schema", "resolvers", ...DOMAIN],
  http: ["rest", "graphql", "schema", "resolvers", ...DOMAIN],
  sandbox: ["chain", ...BASE],
  "config.ts": ["variables.ts", "contract"],
  "keypair.ts": ["observability/thrown.ts"],
  "variables.ts": [
    "keypair.ts",
    "chain/primitives/lamports.ts",
    "chain/launchpad/program-ids.ts",
    "contract",
    "observability/thrown.ts",
  ],
  checks: ["config.ts", ...DOMAIN],
  commands: ["checks", "config.ts", "variables.ts", "services.ts", ...DOMAIN],
  "services.ts": ["config.ts", ...DOMAIN],
  "gateway.ts": ["services.ts", "checks", "config.ts", "http", "resolvers", ...DOMAIN],
  "start.js": ["main.ts"],
  "main.ts": [
    "commands",
    "gateway.ts",
    "checks",
    "config.ts",
    "http",
    "sandbox",
    "observability",
    "time",
  ],
};

/** A pattern for the files that an entry of the table means. */
function filesOf(entry) {
  return /\.[jt]s$/.test(entry) ? `^src/${entry}$` : `^src/${entry}/`;
}

/** @type {import("dependency-cruiser").IConfiguration} */
export default {
  forbidden: [
    ...Object.entries(MAY_IMPORT).map(([importer, imported]) => ({
      name: `${importer} imports only ${imported.join(", ") || "packages"}`,
      severity: "error",
      from: { path: filesOf(importer) },
      to: { path: "^src/", pathNot: [importer, ...imported].map(filesOf) },
    })),
    {
      name: "every file of src is covered by the table in .dependency-cruiser.js",
      severity: "error",
      from: { path: "^src/", pathNot: Object.keys(MAY_IMPORT).map(filesOf) },
      to: {},
    },
    {
      name: "src imports nothing from test, bench, scripts or examples",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^(test|bench|scripts|examples)/" },
    },
    {
      name: "bench imports nothing of test but test/support",
      severity: "error",
      from: { path: "^bench/" },
      to: { path: "^test/", pathNot: "^test/support/" },
    },
    {
      name: "test/support imports nothing from bench",
      severity: "error",
      from: { path: "^test/support/" },
      to: { path: "^bench/" },
    },
    {
      name: "main.ts imports the sandbox dynamically",
      severity: "error",
      from: { path: "^src/main\\.ts$" },
      to: { path: "^src/sandbox/", dynamic: false },
    },
    { name: "no import cycles", severity: "error", from: {}, to: { circular: true } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
  },
};
