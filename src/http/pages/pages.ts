import { readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { Response } from "@whatwg-node/fetch";
import type { GraphQLSchema } from "graphql";
import type { HandleFormat } from "../../contract/handle.ts";
import { createOpenApiDocument, descriptionLink } from "./openapi.ts";
import { SDL } from "../../schema/schema.ts";
import { memoize } from "../../store/memoize.ts";
import { renderGraphiQL, wantsGraphiQL, type ExampleAccount } from "./graphiql.ts";
import { createHomePage } from "./home.ts";
import { createLlmsText } from "./llms-text.ts";
import { createOpenApiFile } from "./openapi-file.ts";
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

/** Profile pictures come from the network's picture host. Nothing else from this host may load. */
const HOME_POLICY = {
  ...POLICY,
  "img-src": "'self' https://pbs.twimg.com",
  "form-action": "'self'",
};
/** The sandbox's network is at a port of this machine. */
const SANDBOX_POLICY = {
  ...HOME_POLICY,
  "img-src": `${HOME_POLICY["img-src"]} http://127.0.0.1:*`,
};
/** GraphiQL adds inline styles, and contains its images and fonts. */
const GRAPHIQL_POLICY = {
  ...POLICY,
  "style-src": "'self' 'unsafe-inline'",
  "img-src": "'self' data:",
  "font-src": "data:",
  "worker-src": "blob:",
};

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".graphql": "text/plain; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  // Browsers display plain text but download Markdown.
  ".md": "text/plain; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

/** Read and hashed once per process: some are large, and none changes. */
const ASSETS: Readonly<Record<string, StaticFile>> = {
  "swagger-ui.js": toFile(
    "swagger-ui.js",
    read(import.meta.resolve("swagger-ui-dist/swagger-ui-bundle.js")),
  ),
  ...Object.fromEntries(
    readdirSync(new URL("./assets", import.meta.url), { recursive: true, encoding: "utf8" })
      .filter((name) => [".css", ".js", ".png", ".svg"].includes(extname(name)))
      .map((name) => [name, readAsset(name)]),
  ),
};

/** Reads an asset. In a script, adds the version of each imported module to the module's URL. */
function readAsset(name: string): StaticFile {
  const content = read(`./assets/${name}`);
  if (extname(name) !== ".js") return toFile(name, content);
  const versionOf = (file: string) => readAsset(join(dirname(name), file)).version;
  const script = content.toString();
  return toFile(
    name,
    script.replace(/(?<= from ")[^"]+/g, (file) => `${file}?v=${versionOf(file)}`),
  );
}

/** What the texts of all services say of handles. Those of one service say which it takes. */
const ANY_HANDLE = "1-15 alphanumeric characters, and underscores if the operator allows them";

/** The home page shows this many sandbox accounts, and all further ones that have coins. */
const MAX_SHOWN_ACCOUNTS = 5;

/** The settings that pages describe. */
export interface PageSettings {
  readonly basePath: string;
  readonly publicUrl?: URL | undefined;
  readonly corsOrigins?: readonly string[] | undefined;
  readonly rateLimitMax: number;
  readonly collectTimeoutMs: number;
}

/** The routes of the pages and their assets. Outside the sandbox there are no `sandboxAccounts`. */
export function createPages(
  needs: PageSettings & {
    schema: GraphQLSchema;
    handleFormat: HandleFormat;
    /** The chain's cluster, such as `devnet`. */
    cluster: () => string;
    sandboxAccounts: readonly ExampleAccount[] | undefined;
  },
): { routes: Record<string, Route>; orGraphiQL: (endpoint: Handler) => Handler } {
  const { sandboxAccounts = [] } = needs;
  const openApi = createOpenApiDocument({
    ...needs,
    isOpenToAllPages: needs.corsOrigins === undefined,
    isSandbox: needs.sandboxAccounts !== undefined,
  });
  /** GraphiQL's page and its large files, rendered when a browser first requests one. */
  const graphiql = memoize(async () => {
    const { html, css, script } = await renderGraphiQL(sandboxAccounts);
    const files = {
      "graphiql-viewer.css": toFile("graphiql-viewer.css", css),
      "graphiql-viewer.js": toFile("graphiql-viewer.js", script),
    };
    const page = withVersions(html, { ...ASSETS, ...files });
    return { ...files, page: toFile("graphiql.html", page, pageHeaders(GRAPHIQL_POLICY)) };
  }, Infinity);
  const graphiqlFile =
    (name: keyof Awaited<ReturnType<typeof graphiql>>): Handler =>
    async (request, scope) =>
      (await graphiql())[name].handle(request, scope);

  const isSandbox = sandboxAccounts.length > 0;
  const home = createHomePage({
    ...needs,
    html: readPage("home/home.html").replace("<!-- sandbox -->", sandboxNotice(sandboxAccounts)),
    headers: {
      "content-type": contentTypeOf("home.html"),
      link: descriptionLink(needs.basePath),
      ...pageHeaders(isSandbox ? SANDBOX_POLICY : HOME_POLICY),
    },
    previewImage: urlOf("home/preview.png"),
    isSandbox,
  });
  const describe = (name: string, text: string) =>
    toFile(name, text.replaceAll(ANY_HANDLE, needs.handleFormat.expected));
  const files: Record<string, StaticFile> = {
    "/schema.graphql": describe("schema.graphql", SDL),
    "/llms.txt": describe("llms.txt", createLlmsText({ ...needs, openApi })),
    "/errors.md": describe("errors.md", read("../../../docs/errors.md").toString()),
  };
  for (const [name, file] of Object.entries(ASSETS)) files[`/assets/${name}`] = file;
  return {
    routes: {
      ...Object.fromEntries(
        Object.entries(files).map(([path, { handle }]) => [path, { GET: handle }]),
      ),
      "/assets/graphiql-viewer.css": { GET: graphiqlFile("graphiql-viewer.css") },
      "/assets/graphiql-viewer.js": { GET: graphiqlFile("graphiql-viewer.js") },
      "/openapi.json": { GET: createOpenApiFile(openApi, needs) },
      "/": { GET: home },
      "/docs": { GET: toFile("docs.html", readPage("docs.html"), pageHeaders(POLICY)).handle },
      // The page's relative URLs need the trailing slash of the base path.
      "": {
        GET: () => {
          const location = `${needs.basePath.split("/").at(-1)}/`;
          return new Response(null, { status: 308, headers: { location } });
        },
      },
    },
    /** Answers browsers that ask for GraphiQL, and passes other requests to the endpoint. */
    orGraphiQL: (endpoint) => (request, scope) =>
      (wantsGraphiQL(request) ? graphiqlFile("page") : endpoint)(request, scope),
  };
}

const readPage = (name: string) => withVersions(read(`./assets/${name}`).toString());

function urlOf(asset: string, files: Readonly<Record<string, StaticFile>> = ASSETS): string {
  return `assets/${asset}?v=${files[asset]!.version}`;
}

/** Adds the version to the URL of each asset in a page. */
function withVersions(html: string, files = ASSETS): string {
  return html.replace(/"assets\/([^"]+)"/g, (_, asset: string) => `"${urlOf(asset, files)}"`);
}

function pageHeaders(policy: Record<string, string>): Record<string, string> {
  return {
    "content-security-policy": Object.entries(policy)
      .map((directive) => directive.join(" "))
      .join("; "),
    vary: "Accept, Accept-Encoding",
  };
}

function toFile(
  name: string,
  content: string | Buffer<ArrayBuffer>,
  headers?: Record<string, string>,
): StaticFile {
  return createStaticFile(content, { "content-type": contentTypeOf(name), ...headers });
}

function contentTypeOf(name: string): string {
  const type = CONTENT_TYPES[extname(name)];
  if (type === undefined) throw new Error(`${name} has no content type`);
  return type;
}

function read(url: string): Buffer<ArrayBuffer> {
  return readFileSync(new URL(url, import.meta.url));
}

/**
 * Lists the accounts to try: the first few, and all that have coins. A link names its account's
 * coins.
 */
function sandboxNotice(accounts: readonly ExampleAccount[]): string {
  if (accounts.length === 0) return "";
  const shownAccounts = accounts.filter(
    ({ coins = [] }, i) => i < MAX_SHOWN_ACCOUNTS || coins.length > 0,
  );
  const links = shownAccounts.map(({ handle, coins = [] }) => {
    const mints = coins.map(({ mint }) => `&amp;mint=${mint}`).join("");
    return `<a href="./?handle=${handle}${mints}">${handle}</a>`;
  });
  return `<aside><p><strong>This is a sandbox: no real money.</strong> Handles to try: ${links.join(", ")}</p></aside>`;
}
