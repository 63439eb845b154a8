import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { css as graphiqlCss } from "@graphql-yoga/render-graphiql/graphiql";
import { printSchema, type GraphQLSchema } from "graphql";
import { exampleOperations, graphiqlScript, type SandboxAccount } from "./graphiql.ts";
import type { Handler, Route } from "../router.ts";
import { createStaticFile, type StaticFile } from "./static-file.ts";

/** Pages load nothing from other origins and contain no inline scripts. */
const POLICY = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self'",
  "img-src": "'self'",
  "connect-src": "'self'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
  "base-uri": "'none'",
};

/** Swagger UI and GraphiQL add inline styles. */
const DOCS_POLICY = { ...POLICY, "style-src": "'self' 'unsafe-inline'", "img-src": "'self' data:" };
const GRAPHIQL_POLICY = { ...DOCS_POLICY, "font-src": "data:", "worker-src": "blob:" };

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".graphql": "text/plain; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  // Browsers display plain text but download Markdown.
  ".md": "text/plain; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Read and hashed once per process: some are large, and none changes. */
const FIXED_ASSETS: Readonly<Record<string, StaticFile>> = Object.fromEntries(
  Object.entries({
    "icon.svg": read("./assets/icon.svg"),
    "page.css": read("./assets/page.css"),
    "index.js": read("./assets/index.js"),
    "docs.css": read("./assets/docs.css"),
    "docs.js": read("./assets/docs.js"),
    "swagger-ui.css": read(import.meta.resolve("swagger-ui-dist/swagger-ui.css")),
    "swagger-ui.js": read(import.meta.resolve("swagger-ui-dist/swagger-ui-bundle.js")),
    "graphiql.css": read("./assets/graphiql.css"),
    "graphiql-viewer.css": graphiqlCss,
  }).map(([name, content]) => [name, toFile(name, content)]),
);

/** GraphiQL's script with each set of examples. It is 8 MB, so the gateways of a process share it. */
const graphiqlScripts = new Map<string, StaticFile>();

/** The most sandbox accounts that the home page shows. */
const MAX_SHOWN_ACCOUNTS = 5;

/**
 * The routes of the pages and their assets. Pages call the API by relative URLs, as any caller would. The home
 * page shows a notice with the `sandboxAccounts`; outside the sandbox there are none.
 */
export function createPages(needs: {
  basePath: string;
  schema: GraphQLSchema;
  sandboxAccounts: readonly SandboxAccount[];
}): { routes: Record<string, Route>; graphiql: Handler } {
  const assets: Record<string, StaticFile> = {
    ...FIXED_ASSETS,
    "graphiql-viewer.js": graphiqlViewer(exampleOperations(needs.sandboxAccounts)),
  };
  const notice = sandboxNotice(needs.sandboxAccounts.slice(0, MAX_SHOWN_ACCOUNTS));

  /** Reads a page, inserts the sandbox notice, and adds the version to the URL of each asset. */
  function page(name: string, policy: Record<string, string>): StaticFile {
    const html = read(`./assets/${name}`)
      .toString()
      .replace("<!-- sandbox -->", notice)
      .replace(/"assets\/([^"]+)"/g, (_, asset: string) => `"assets/${asset}?v=${assets[asset]!.version}"`);
    return toFile(name, html, {
      "content-security-policy": Object.entries(policy)
        .map((directive) => directive.join(" "))
        .join("; "),
      vary: "Accept, Accept-Encoding",
    });
  }

  const files: Record<string, StaticFile> = {
    "/": page("index.html", { ...POLICY, "form-action": "'self'" }),
    "/docs": page("docs.html", DOCS_POLICY),
    "/schema.graphql": toFile("schema.graphql", `${printSchema(needs.schema)}\n`),
    "/errors.md": toFile("errors.md", read("../../../docs/errors.md")),
  };
  for (const [name, file] of Object.entries(assets)) files[`/assets/${name}`] = file;
  return {
    routes: {
      ...Object.fromEntries(Object.entries(files).map(([path, { handle }]) => [path, { GET: handle }])),
      // The page's relative URLs need the trailing slash of the base path.
      "": { GET: () => redirect(`${needs.basePath.split("/").at(-1)}/`) },
    },
    graphiql: page("graphiql.html", GRAPHIQL_POLICY).handle,
  };
}

function graphiqlViewer(examples: string): StaticFile {
  const known = graphiqlScripts.get(examples);
  if (known) return known;
  const script = toFile("graphiql-viewer.js", graphiqlScript(examples));
  graphiqlScripts.set(examples, script);
  return script;
}

function toFile(
  name: string,
  content: string | Buffer<ArrayBuffer>,
  headers?: Record<string, string>,
): StaticFile {
  return createStaticFile(content, { "content-type": CONTENT_TYPES[extname(name)]!, ...headers });
}

function read(url: string): Buffer<ArrayBuffer> {
  return readFileSync(new URL(url, import.meta.url));
}

function redirect(location: string): Response {
  return new Response(null, { status: 308, headers: { location } });
}

function sandboxNotice(accounts: readonly SandboxAccount[]): string {
  if (accounts.length === 0) return "";
  const links = accounts.map(
    ({ handle }) => `<a href="wallet/lookup?handle=${handle}" data-handle>${handle}</a>`,
  );
  return `<aside><strong>This is a sandbox: no real money.</strong> Handles to try: ${links.join(", ")}.</aside>`;
}
