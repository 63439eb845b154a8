/**
 * Prints four measures of src: `node scripts/measure-style.ts`. `--lets` lists all functions with
 * captured `let`s, `--names` all bare participles.
 *
 * 1. `let`s that a nested function captures: the most of one function, and per 1,000 lines.
 * 2. `x!` and `as` (without `as const`), per 1,000 lines.
 * 3. Variables and parameters whose name is a bare participle, as a share of all.
 * 4. Lines of code or comment with more than 100 columns. Texts and regular expressions may be longer.
 */
import { globSync, readFileSync } from "node:fs";
import ts from "typescript";

const MAX_COLUMNS = 100;
/** A name of one word that ends like a participle, and the irregular participles of this code. */
const PARTICIPLE =
  /^(?:[a-z]+ed|begun|chosen|done|drawn|driven|found|given|gone|got|held|kept|known|left|lost|made|met|paid|put|seen|sent|set|shown|spent|split|sworn|taken|told|thrown|won|written)$/;
/** Nouns that end like a participle. */
const NOUNS = new Set(["feed", "need", "seed", "speed", "set"]);

interface Scope {
  readonly name: string;
  readonly lets: Map<string, { isCaptured: boolean }>;
}

interface FileMeasure {
  lines: number;
  readonly capturedLets: { readonly where: string; readonly count: number }[];
  assertions: number;
  names: number;
  readonly participles: string[];
  readonly wideLines: string[];
}

function measure(path: string): FileMeasure {
  const text = readFileSync(path, "utf8");
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const lines = text.split("\n");
  const result: FileMeasure = {
    lines: lines.length,
    capturedLets: [],
    assertions: 0,
    names: 0,
    participles: [],
    wideLines: [],
  };

  const textLines = new Set<number>();
  const lineAt = (position: number) => file.getLineAndCharacterOfPosition(position).line + 1;
  const lineOf = (node: ts.Node) => lineAt(node.getStart(file));

  function addName(name: ts.BindingName, isLet: boolean, scope: Scope): void {
    if (!ts.isIdentifier(name)) {
      for (const element of name.elements)
        if (ts.isBindingElement(element)) addName(element.name, isLet, scope);
      return;
    }
    result.names++;
    if (PARTICIPLE.test(name.text) && !NOUNS.has(name.text))
      result.participles.push(`${path}:${String(lineOf(name))} ${name.text}`);
    if (isLet) scope.lets.set(name.text, { isCaptured: false });
  }

  function declare(node: ts.Node, scope: Scope): void {
    if (ts.isVariableDeclaration(node))
      addName(node.name, (node.parent.flags & ts.NodeFlags.Let) !== 0, scope);
    // The parameters of types name nothing that runs.
    else if (ts.isParameter(node) && "body" in node.parent && node.parent.body)
      addName(node.name, false, scope);
    ts.forEachChild(node, (child) => {
      if (!ts.isFunctionLike(child)) declare(child, scope);
    });
  }

  /** `scopes`: the enclosing functions, the innermost first. */
  function visit(node: ts.Node, scopes: readonly Scope[]): void {
    if (ts.isNonNullExpression(node)) result.assertions++;
    if (isText(node))
      for (let line = lineOf(node); line <= lineAt(node.getEnd()); line++) textLines.add(line);
    if (ts.isAsExpression(node) && !ts.isConstTypeReference(node.type)) result.assertions++;
    if (ts.isIdentifier(node) && isReference(node)) {
      const depth = scopes.findIndex(({ lets }) => lets.has(node.text));
      if (depth > 0) scopes[depth]!.lets.get(node.text)!.isCaptured = true;
    }
    if (!ts.isFunctionLike(node) && !ts.isSourceFile(node)) {
      ts.forEachChild(node, (child) => {
        visit(child, scopes);
      });
      return;
    }
    const scope: Scope = { name: nameOf(node), lets: new Map() };
    ts.forEachChild(node, (child) => {
      if (!ts.isFunctionLike(child)) declare(child, scope);
    });
    ts.forEachChild(node, (child) => {
      visit(child, [scope, ...scopes]);
    });
    const count = [...scope.lets.values()].filter(({ isCaptured }) => isCaptured).length;
    if (count > 0)
      result.capturedLets.push({ where: `${path}:${String(lineOf(node))} ${scope.name}`, count });
  }

  visit(file, []);
  for (const [i, line] of lines.entries())
    if (line.length > MAX_COLUMNS && !textLines.has(i + 1))
      result.wideLines.push(`${path}:${String(i + 1)}`);
  return result;
}

function isText(node: ts.Node): boolean {
  return (
    ts.isStringLiteralLike(node) ||
    ts.isTemplateExpression(node) ||
    ts.isRegularExpressionLiteral(node)
  );
}

function isReference(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  return !ts.isVariableDeclaration(parent) || parent.initializer === node;
}

function nameOf(node: ts.Node): string {
  if (ts.isSourceFile(node)) return "(module)";
  if ("name" in node && node.name) return (node.name as ts.Node).getText();
  return ts.isVariableDeclaration(node.parent) ? node.parent.name.getText() : "(function)";
}

const files = globSync("src/**/*.ts").sort().map(measure);
const sum = (valueOf: (file: FileMeasure) => number) =>
  files.reduce((total, file) => total + valueOf(file), 0);
const lines = sum((file) => file.lines);
const captured = files.flatMap(({ capturedLets }) => capturedLets);
const capturedCount = captured.reduce((total, { count }) => total + count, 0);
const participles = files.flatMap((file) => file.participles);
const wideLines = files.flatMap((file) => file.wideLines);
const per1000 = (count: number) => ((count / lines) * 1_000).toFixed(1);

const listedAbove = process.argv.includes("--lets") ? 0 : 4;
console.log(`${String(lines)} lines`);
console.log(`captured lets: ${String(capturedCount)}, ${per1000(capturedCount)} per 1,000 lines`);
for (const { where, count } of captured.filter(({ count }) => count > listedAbove))
  console.log(`  ${String(count)} in ${where}`);
const assertions = sum((file) => file.assertions);
console.log(`x! and as: ${String(assertions)}, ${per1000(assertions)} per 1,000 lines`);
const names = sum((file) => file.names);
const share = ((participles.length / names) * 100).toFixed(1);
console.log(`bare participles: ${String(participles.length)} of ${String(names)}, ${share}%`);
for (const each of process.argv.includes("--names") ? participles : []) console.log(`  ${each}`);
console.log(`lines beyond ${String(MAX_COLUMNS)} columns: ${String(wideLines.length)}`);
for (const each of wideLines) console.log(`  ${each}`);
