import tseslint from "typescript-eslint";

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
