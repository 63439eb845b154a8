import { readFileSync } from "node:fs";
import { printSchema, type GraphQLSchema } from "graphql";
import { createGraphiQL } from "../schema/graphiql.ts";
import type { Handler, Route } from "./edge.ts";
import { createStaticFile, type StaticFile } from "./static-file.ts";

/** An account of the sandbox, for people to try things on. */
export interface PlayAccount {
  readonly handle: string;
  /** The numeric id as decimal digits. */
  readonly id: string;
}

/** Nothing may be loaded from elsewhere, and no script may stand in a page. */
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

/** Both viewers put styles into the page. */
const DOCS_POLICY = { ...POLICY, "style-src": "'self' 'unsafe-inline'", "img-src": "'self' data:" };
const GRAPHIQL_POLICY = { ...DOCS_POLICY, "font-src": "data:", "worker-src": "blob:" };

const CSS = { "content-type": "text/css; charset=utf-8" };
const JS = { "content-type": "text/javascript; charset=utf-8" };
const SVG = { "content-type": "image/svg+xml" };
const TEXT = { "content-type": "text/plain; charset=utf-8" };

/** What the examples name where there is no sandbox: they are to be replaced. */
const PLACEHOLDERS: readonly PlayAccount[] = [
  { handle: "creator", id: "the socialId of a wallet" },
  { handle: "artist", id: "" },
  { handle: "friend", id: "" },
];

const MAX_PLAY_ACCOUNTS = 5;

/**
 * The pages that people see, and what they load, by path. They ask the API by relative URLs, as any caller
 * would. `playAccounts` are those of a sandbox, of which the first page then tells; else there are none.
 */
export function createPages(needs: {
  basePath: string;
  schema: GraphQLSchema;
  playAccounts: readonly PlayAccount[];
}): { routes: Record<string, Route>; graphiql: Handler } {
  const playAccounts = needs.playAccounts.slice(0, MAX_PLAY_ACCOUNTS);
  const viewer = createGraphiQL(playAccounts.length > 0 ? playAccounts : PLACEHOLDERS);
  const assets = new Map<string, StaticFile>([
    ["icon.svg", createStaticFile(read("./pages/icon.svg"), SVG)],
    ["page.css", createStaticFile(read("./pages/page.css"), CSS)],
    ["index.js", createStaticFile(read("./pages/index.js"), JS)],
    ["docs.css", createStaticFile(read("./pages/docs.css"), CSS)],
    ["docs.js", createStaticFile(read("./pages/docs.js"), JS)],
    ["swagger-ui.css", createStaticFile(read(import.meta.resolve("swagger-ui-dist/swagger-ui.css")), CSS)],
    [
      "swagger-ui.js",
      createStaticFile(read(import.meta.resolve("swagger-ui-dist/swagger-ui-bundle.js")), JS),
    ],
    ["graphiql.css", createStaticFile(read("./pages/graphiql.css"), CSS)],
    ["graphiql-viewer.css", createStaticFile(viewer.css, CSS)],
    ["graphiql-viewer.js", createStaticFile(viewer.js, JS)],
  ]);

  /** A page of the folder, with its marks filled in, and with the version of each asset that it names. */
  function page(
    name: string,
    policy: Record<string, string>,
    marks: Record<string, string> = {},
  ): StaticFile {
    const html = read(`./pages/${name}.html`)
      .toString()
      .replace(/<!-- (\w+) -->/g, (_, mark: string) => marks[mark] ?? "")
      .replace(
        /"assets\/([\w.-]+)"/g,
        (_, asset: string) => `"assets/${asset}?v=${assets.get(asset)!.version}"`,
      );
    return createStaticFile(html, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": Object.entries(policy)
        .map((directive) => directive.join(" "))
        .join("; "),
      vary: "Accept, Accept-Encoding",
    });
  }

  const index = page(
    "index",
    { ...POLICY, "form-action": "'self'" },
    { sandbox: sandboxNotice(playAccounts) },
  );
  const routes: Record<string, StaticFile> = {
    "/": index,
    "/docs": page("docs", DOCS_POLICY),
    "/schema.graphql": createStaticFile(`${printSchema(needs.schema)}\n`, TEXT),
    ...Object.fromEntries([...assets].map(([name, file]) => [`/assets/${name}`, file])),
  };
  return {
    routes: {
      ...Object.fromEntries(Object.entries(routes).map(([path, { handle }]) => [path, { GET: handle }])),
      // Relative URLs in the page need the slash at the end of the base path.
      "": { GET: () => redirect(`${needs.basePath.split("/").at(-1)}/`) },
    },
    graphiql: page("graphiql", GRAPHIQL_POLICY).handle,
  };
}

function read(url: string): Buffer<ArrayBuffer> {
  return readFileSync(new URL(url, import.meta.url));
}

function redirect(location: string): Response {
  return new Response(null, { status: 308, headers: { location } });
}

function sandboxNotice(accounts: readonly PlayAccount[]): string {
  if (accounts.length === 0) return "";
  const links = accounts.map(
    ({ handle }) => `<a href="wallet/lookup?handle=${handle}" data-handle>${handle}</a>`,
  );
  return `<aside><strong>This is a sandbox: no real money.</strong> Handles to try: ${links.join(", ")}.</aside>`;
}
