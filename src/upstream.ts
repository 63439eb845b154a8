import { Agent, request } from "undici";

/** What an upstream answered: its status, and its body as text. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface UpstreamRequest {
  readonly method?: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Far above the longest answer that either upstream has reason to give; the rest is not read. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

const agent = new Agent({ maxResponseSize: MAX_ANSWER_BYTES });

/**
 * One HTTP call to an upstream, whatever status it answers with: no redirect is followed, so that no
 * credential goes anywhere else. With undici's `request`, since what `fetch` makes for each call stays in
 * memory long enough to lengthen garbage collection four times.
 */
export async function callUpstream(url: string, options: UpstreamRequest): Promise<UpstreamAnswer> {
  const { statusCode, headers, body } = await request(url, { ...options, dispatcher: agent });
  return { status: statusCode, headers, text: await body.text() };
}

/** Whether a status says that the call was answered as it was meant. */
export const isOk = (status: number): boolean => status >= 200 && status < 300;
