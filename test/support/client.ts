/** A response of the gateway; a JSON body is parsed. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: any;
}

export type Client = ReturnType<typeof createClient>;

let addresses = 0;
/** An address that no other request of this process uses. */
function newAddress(): string {
  const i = addresses++;
  return `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
}

/** Headers of a request that a trusted proxy forwards from this address. */
export const from = (address: string) => ({ "x-forwarded-for": address });

/** Sends requests to the gateway at `url`, each from a new address unless its headers name one. */
export function createClient(url: string) {
  async function request(path: string, init: RequestInit = {}): Promise<Answer> {
    const headers = new Headers(init.headers);
    // Only a caller on this machine sees the warnings of /readyz.
    if (!headers.has("x-forwarded-for") && path !== "/readyz")
      headers.set("x-forwarded-for", newAddress());
    const response = await fetch(url + path, { ...init, headers });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return {
      status: response.status,
      headers: response.headers,
      body: isJson && text ? JSON.parse(text) : text,
    };
  }
  const post = (path: string, body: object, headers?: Record<string, string>) =>
    request(path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });

  return {
    url,
    request,
    post,
    lookup: (handle: string, headers: Record<string, string> = {}) =>
      request(`/wallet/lookup?handle=${encodeURIComponent(handle)}`, { headers }),
    collect: (socialId: string, headers?: Record<string, string>, mints?: readonly string[]) =>
      post("/collect", { socialId, mints }, headers),
    graphql: (
      query: string,
      variables?: Record<string, unknown>,
      headers?: Record<string, string>,
    ) => post("/graphql", { query, variables }, headers),
  };
}

/** Calls `run` `count` times in parallel. */
export const atOnce = <T>(count: number, run: (i: number) => T) =>
  Promise.all(Array.from({ length: count }, (_, i) => run(i)));
