import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules", "coverage"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      // A method of an object made by a factory has no `this` to lose.
      "@typescript-eslint/unbound-method": "off",
      // What is known to be there by construction is said with `!`; the compiler's index checks stay on.
      "@typescript-eslint/no-non-null-assertion": "off",
      eqeqeq: "error",
      "no-console": "error",
    },
  },
  {
    // Tests look into bodies of every shape.
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
    // What browsers run, as it is.
    files: ["src/http/pages/assets/*.js"],
    rules: { eqeqeq: "error", "no-unused-vars": "error", "no-var": "error", "prefer-const": "error" },
  },
  { files: ["scripts/**", "bench/**", "examples/**", "src/main.ts"], rules: { "no-console": "off" } },
);
