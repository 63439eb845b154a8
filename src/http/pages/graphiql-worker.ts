/**
 * The worker of {@link renderGraphiQL}. Yoga's page contains its style sheet and its script, of 1 and
 * 8 MB. As files, browsers keep them, the page's policy needs no inline script, and the page can
 * say that they were refused.
 */
import { parentPort, workerData } from "node:worker_threads";
import { renderGraphiQL } from "@graphql-yoga/render-graphiql";
import type { GraphiQLOptions } from "graphql-yoga";
import type { GraphiQL } from "./graphiql.ts";

const HEAD = `
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <script src="assets/refused.js" data-style="assets/page.css"></script>
      <link rel="stylesheet" href="assets/graphiql-viewer.css" />
      <link rel="stylesheet" href="assets/graphiql.css" />`;

const PARTS =
  /^(?<start>.*?)<style>(?<css>.*?)<\/style>(?<middle>.*?)<script>(?<script>.*)<\/script>(?<end>.*)$/s;

const { start, css, middle, script, end } = PARTS.exec(
  renderGraphiQL(workerData as GraphiQLOptions),
)!.groups as Record<"start" | "css" | "middle" | "script" | "end", string>;
const head = start.replace(/<title>.*<\/title>/, "<title>GraphiQL · Tributary</title>") + HEAD;
const html = `${head}${middle}<script src="assets/graphiql-viewer.js"></script>${end}`;
parentPort?.postMessage({ html, css, script } satisfies GraphiQL);
