import type { AccountAddresses } from "../chain/addresses.ts";
import type { Balance } from "../chain/balances.ts";
import { ContractError, quote } from "../contract/errors.ts";
import { invalidSocialId, toSocialId, type SocialAccount } from "../social/account.ts";
import { inSpan } from "../observability/tracing.ts";
import type { RequestContext } from "./context.ts";

/** An account and its addresses. Its handle is known when it was found by one. */
export interface Wallet {
  readonly addresses: AccountAddresses;
  readonly socialId: string;
  readonly handle: string | undefined;
}

/** Which handles are taken, and the words for what is expected. */
export interface HandleFormat {
  readonly pattern: RegExp;
  readonly expected: string;
}

/** The contract's format, or the one that the network itself uses, which has the underscore too. */
export function handleFormat(allowUnderscore: boolean): HandleFormat {
  return allowUnderscore
    ? { pattern: /^[A-Za-z0-9_]{1,15}$/, expected: "1-15 alphanumeric characters or underscores" }
    : { pattern: /^[A-Za-z0-9]{1,15}$/, expected: "1-15 alphanumeric characters" };
}

/** INVALID_HANDLE, which says what was expected, and what came. */
export function invalidHandle(expected: string, got: string): ContractError {
  return new ContractError("INVALID_HANDLE", {
    message: `The handle must be ${expected}, without the @; got ${got}.`,
  });
}

/**
 * Finds the wallet of a handle, in whatever case: one read of the social network, none of the chain.
 *
 * @throws {ContractError} INVALID_HANDLE, SOCIAL_NOT_FOUND, SOCIAL_RATE_LIMITED, SOCIAL_API_UNAVAILABLE, SERVICE_BUSY
 */
export function lookUpWallet(handle: string, context: RequestContext): Wallet | Promise<Wallet> {
  return inSpan("lookUpWallet", {}, () => find(handle, context));
}

function find(handle: string, context: RequestContext): Wallet | Promise<Wallet> {
  const { pattern, expected } = context.handleFormat;
  if (!pattern.test(handle)) throw invalidHandle(expected, quote(handle));
  const { reads } = context.caller;
  const known = context.directory.known(handle);
  if (known) reads.cached++;
  else reads.social++;
  if (known instanceof ContractError) throw known;
  const toWallet = ({ id, handle }: SocialAccount): Wallet => ({
    socialId: id,
    handle,
    addresses: context.addressesOf(id),
  });
  return known ? toWallet(known) : context.loaders.accountByHandle.load(handle).then(toWallet);
}

/**
 * The wallet of an account's id, read from nowhere: the address follows from the digits alone.
 *
 * @throws {ContractError} INVALID_SOCIAL_ID
 */
export function walletOfId(text: string, context: Pick<RequestContext, "addressesOf">): Wallet {
  const socialId = toSocialId(text);
  if (socialId === undefined) throw invalidSocialId(text);
  return { socialId, handle: undefined, addresses: context.addressesOf(socialId) };
}

/** The handle of a wallet, read from the network when the wallet was asked for by its id. */
export function handleOf(
  { handle, socialId }: Wallet,
  { caller, loaders }: RequestContext,
): string | Promise<string> {
  if (handle !== undefined) return handle;
  caller.reads.social++;
  return loaders.accountById.load(socialId).then((account) => account.handle);
}

/** The balance of a wallet as the chain has it now. */
export function balanceOf({ addresses }: Wallet, { caller, loaders }: RequestContext): Promise<Balance> {
  caller.reads.chain++;
  return loaders.balance.load(addresses);
}
