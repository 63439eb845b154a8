import tseslint from "typescript-eslint";

/**
 * Participles that are no name of a variable. `scripts/measure-style.ts --names` prints those that
 * src still has.
 */
const BARE_PARTICIPLES = `
  accepted added admitted allowed answered arrived asked begun blocked changed checked chosen
  closed completed compressed counted decoded delayed described distributed doubted drawn driven
  dropped earned emptied ended exceeded expected failed followed found gathered gone got held
  joined judged kept landed listed loaded logged looked lost made measured memoized merged met
  nested observed offered opened paid pipelined preferred prepared printed probed queued reached
  received reported requested required reserved resized seen selected sent settled simulated
  sorted stored taken thrown told tried used visited wanted won wrapped written
`;
/** Variables and parameters, but no properties, whose names may come from elsewhere. */
const VARIABLES = [
  ...["VariableDeclarator > .id", ":function > .params", "AssignmentPattern > .left"],
  ...["ObjectPattern > Property > .value", "ArrayPattern > .elements", "RestElement > .argument"],
];

export default tseslint.config(
  { ignores: ["node_modules", "coverage", "examples/clients/graphql.ts"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      // Factories return objects whose methods do not use `this`.
      "@typescript-eslint/unbound-method": "off",
      // `!` marks values that exist by construction; the compiler still checks index access.
      "@typescript-eslint/no-non-null-assertion": "off",
      eqeqeq: "error",
      "no-console": "error",
      "no-eval": "error",
      "no-new-func": "error",
    },
  },
  {
    // Numbers of several clocks: the window's and the buckets' rules run by Redis's clock too.
    files: ["src/**"],
    ignores: [
      "src/time/monotonic.ts",
      "src/store/buckets.ts",
      "src/http/rate-limit/sliding-window.ts",
      "src/social/account-cache.ts",
    ],
    rules: {
      "no-restricted-properties": [
        "error",
        {
          object: "performance",
          property: "now",
          message: "Use src/time/monotonic.ts: its times cannot be mixed up with other numbers.",
        },
      ],
    },
  },
  {
    files: ["src/**/*.ts"],
    rules: {
      "no-restricted-syntax": [
        "error",
        {
          selector: `:matches(${VARIABLES.join()})[name=/^(${BARE_PARTICIPLES.trim().split(/\s+/).join("|")})$/]`,
          message: "A variable is a noun: heldClaims, not held.",
        },
      ],
    },
  },
  {
    // Tests read response bodies of any shape.
    files: ["test/**"],
    rules: {
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-call": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
      "@typescript-eslint/no-explicit-any": "off",
    },
  },
  {
    // Runs in browsers without a build step.
    files: ["src/http/pages/assets/**/*.js"],
    rules: {
      eqeqeq: "error",
      "no-unused-vars": "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-eval": "error",
      "no-new-func": "error",
    },
  },
  {
    files: ["src/start.js"],
    rules: {
      eqeqeq: "error",
      "no-eval": "error",
      "no-new-func": "error",
      "no-unused-vars": "error",
      "no-var": "error",
    },
  },
  {
    files: ["scripts/**", "bench/**", "examples/**", "src/main.ts"],
    rules: { "no-console": "off" },
  },
);
