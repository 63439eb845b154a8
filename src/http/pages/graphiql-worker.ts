/**
 * The worker of {@link loadGraphiQL}: builds GraphiQL's script and style sheet from its package.
 */
import { parentPort } from "node:worker_threads";
import {
  css,
  editorWorkerService,
  graphqlWorker,
  js,
  jsonWorker,
} from "@graphql-yoga/render-graphiql/graphiql";
import type { GraphiQLFiles } from "./graphiql.ts";

const workers = { editorWorkerService, graphql: graphqlWorker, json: jsonWorker };

/**
 * Renders GraphiQL into `#root`. The editor's workers are in this script, so their URLs are blobs.
 */
const START = `{
  const workers = ${JSON.stringify(workers)};
  const toUrl = (source) => URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  self.MonacoEnvironment = { globalAPI: false, getWorkerUrl: (_, name) => toUrl(workers[name]) };
  const root = document.getElementById("root");
  YogaGraphiQL.renderYogaGraphiQL(root, JSON.parse(root.dataset.options));
}`;

const files: GraphiQLFiles = { script: toBytes(`${js}\n${START}\n`), css: toBytes(css) };
parentPort?.postMessage(files, [files.script.buffer, files.css.buffer]);

function toBytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
