import type { Handler } from "../router.ts";
import type { HandleFormat } from "../../contract/handle.ts";
import { toSocialId } from "../../contract/social-id.ts";
import { createStaticFile, type StaticFile } from "./static-file.ts";

/** The account that the URL of the home page names. */
type Named = { readonly handle: string } | { readonly socialId: string };

const DESCRIPTION =
  "Every account of the social network has an address for creator fees, even if its owner has no wallet. See what waits for a creator, and collect it.";

/**
 * With `?handle=` or `?socialId=`, the head names the account. Only the page's script looks it up,
 * so the page itself needs no call to the network or the chain. Such a page is not compressed:
 * requests for pages are free, and each could name another account. Link previews need `publicUrl`;
 * the `Host` header is not used.
 */
export function createHomePage(needs: {
  /** The HTML, with its assets' URLs. */
  html: string;
  headers: Readonly<Record<string, string>>;
  handleFormat: HandleFormat;
  publicUrl?: URL | undefined;
  /** The URL of the preview's picture, relative to the page. */
  previewImage: string;
  isSandbox: boolean;
  /** The chain's cluster, such as `devnet`. */
  cluster: () => string;
}): Handler {
  const { html, headers, handleFormat, publicUrl, previewImage, isSandbox, cluster } = needs;

  /** The page without an account, which changes when the cluster becomes known. */
  let start: { readonly text: string; readonly file: StaticFile } | undefined;

  function read(parameters: URLSearchParams): Named | undefined {
    const socialId = toSocialId(parameters.get("socialId") ?? "");
    if (socialId !== undefined) return { socialId };
    const handle = parameters.get("handle") ?? "";
    return handleFormat.pattern.test(handle) ? { handle } : undefined;
  }

  /**
   * The tags of link previews: Open Graph, which most sites read, and one for the social network.
   */
  function preview(title: string, description: string, subject: Named | undefined): string[] {
    if (!publicUrl) return [];
    const page = new URL(publicUrl);
    page.search = new URLSearchParams(subject).toString();
    const properties = {
      type: subject ? "profile" : "website",
      site_name: "Tributary",
      title,
      description,
      url: page.href,
      image: new URL(previewImage, publicUrl).href,
      "image:width": "1200",
      "image:height": "630",
      "image:alt": "Tributary: fees for creators",
    };
    return [
      ...Object.entries(properties).map(
        ([name, content]) => `<meta property="og:${name}" content="${escapeHtml(content)}" />`,
      ),
      '<meta name="twitter:card" content="summary_large_image" />',
    ];
  }

  return (request, scope) => {
    const { searchParams } = new URL(request.url);
    const subject = read(searchParams);
    const [title, description] = describe(subject);
    const isAboutPerson = searchParams.has("handle") || searchParams.has("socialId");
    const head = [
      `<title>${escapeHtml(title)}</title>`,
      `<meta name="description" content="${escapeHtml(description)}" />`,
      ...(isAboutPerson ? ['<meta name="robots" content="noindex" />'] : []),
      ...preview(title, description, subject),
    ].join("\n    ");
    const body = `<body data-view="${isAboutPerson ? "creator" : "start"}" data-cluster="${isSandbox ? "sandbox" : escapeHtml(cluster())}">`;
    const text = html.replace("<!-- head -->", () => head).replace("<body>", () => body);
    if (isAboutPerson)
      return createStaticFile(text, headers, { isKept: false }).handle(request, scope);
    if (start?.text !== text) start = { text, file: createStaticFile(text, headers) };
    return start.file.handle(request, scope);
  };
}

function describe(subject: Named | undefined): [title: string, description: string] {
  if (!subject) return ["Tributary", DESCRIPTION];
  const [title, creator] =
    "handle" in subject
      ? [`@${subject.handle}`, `@${subject.handle}`]
      : ["A creator’s fees", "this creator"];
  return [
    `${title} · Tributary`,
    `See the trading fees that wait for ${creator}, and collect them. Anyone can, and Tributary pays for the transaction.`,
  ];
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** Escapes a text for HTML, and for attributes in double quotes. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
