import { getBase58Encoder } from "@solana/codecs-strings";
import { GraphQLError } from "graphql";
import type { History, HistoryPage } from "../chain/history/history.ts";
import { toLookupContractError } from "../chain/to-contract-error.ts";
import { inSpan } from "../observability/tracing.ts";
import type { RequestScope } from "./request-scope.ts";
import type { Wallet } from "./wallet.ts";

/**
 * Reads a page of a wallet's transfers, newest first. Rejects with LOOKUP_FAILED or SERVICE_BUSY, or with BAD_REQUEST
 * for a page that cannot exist.
 */
export type ReadHistory = (
  wallet: Wallet,
  page: { first: number; after: string | undefined },
  scope: RequestScope,
) => Promise<HistoryPage>;

const SIGNATURE_BYTES = 64;
const MAX_SIGNATURE_LENGTH = 88;

const base58 = getBase58Encoder();

export function createReadHistory({ history }: { history: History }): ReadHistory {
  return async ({ addresses }, page, scope) => {
    if (page.first < 1) throw badRequest("`first` must be at least 1.");
    if (page.after !== undefined && !isSignature(page.after)) throw wrongCursor();
    const found = await inSpan("readHistory", async () => {
      try {
        return await history.readPage(addresses, page, scope);
      } catch (error) {
        throw toLookupContractError(error);
      }
    });
    if (!found) throw wrongCursor();
    return found;
  };
}

function isSignature(text: string): boolean {
  if (text.length > MAX_SIGNATURE_LENGTH) return false;
  try {
    return base58.encode(text).length === SIGNATURE_BYTES;
  } catch {
    return false;
  }
}

const wrongCursor = () => badRequest("`after` must be the `endCursor` or a `cursor` of an earlier page.");
const badRequest = (message: string) => new GraphQLError(message, { extensions: { code: "BAD_REQUEST" } });
