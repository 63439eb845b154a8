/**
 * What to tell a person about each error: a title, and what to do. `kind` is `failed` for failures
 * of the service.
 */
const LOOKUP = {
  SOCIAL_NOT_FOUND: {
    title: "No such account",
    text: "The network has no account with this handle, or has suspended it. Check the spelling.",
  },
  INVALID_HANDLE: {
    title: "This is not a handle",
    text: "Enter a handle such as creator, or paste the address of a profile.",
  },
  INVALID_SOCIAL_ID: {
    title: "This link is incomplete",
    text: "Look up the creator by handle instead.",
  },
  INVALID_MINT: {
    title: "This is not a coin",
    text: "The link names something that is no mint, or more than 10 coins.",
    action: "Show the creator without coins",
  },
  RATE_LIMITED: {
    title: "Too many requests",
    text: "Your network has sent many requests in a short time.",
  },
  SERVICE_BUSY: { title: "Many people are looking", text: "The service is busy." },
  SOCIAL_RATE_LIMITED: {
    title: "The network asks for patience",
    text: "The social network’s limit is used up for now.",
  },
  SOCIAL_API_UNAVAILABLE: {
    title: "The social network does not answer",
    text: "Try again in a minute. Nothing is lost: fees stay where they are.",
    kind: "failed",
  },
  UNREACHABLE: {
    title: "The server is unreachable",
    text: "Check your connection, then try again.",
    kind: "failed",
  },
};
/**
 * Every handle of the network. The service refuses one only for its underscores, if it does not
 * take them.
 */
const NETWORK_HANDLE = /^\w{1,15}$/;
const UNDERSCORE_REFUSED = {
  title: "This handle has an underscore",
  text: "This service does not take handles with underscores. Only its operator can change that.",
};
const LOOKUP_FAILED = {
  title: "The lookup failed",
  text: "Try again in a minute. Nothing is lost: fees stay where they are.",
  kind: "failed",
};

/**
 * How to show an error of the lookup of a `target`. An error that passes by itself has no action:
 * the page tries again.
 */
export function describeLookup({ code, retryAfterSeconds }, { handle } = {}) {
  const message = { ...(LOOKUP[code] ?? LOOKUP_FAILED) };
  if (code === "SOCIAL_NOT_FOUND" && handle) message.title = `There is no @${handle}`;
  if (code === "INVALID_HANDLE" && NETWORK_HANDLE.test(handle))
    Object.assign(message, UNDERSCORE_REFUSED);
  const isFinal = ["SOCIAL_NOT_FOUND", "INVALID_HANDLE", "INVALID_SOCIAL_ID"].includes(code);
  const isWaiting = message.kind !== "failed" && retryAfterSeconds !== undefined;
  return {
    kind: "refused",
    action: isFinal || isWaiting ? undefined : "Try again",
    ...message,
    waitSeconds: isWaiting ? retryAfterSeconds : undefined,
  };
}

const AGAIN = "Collect again to see how it ended. The same fees never move twice.";

/**
 * How to show an error of a collect: `refused` if the service declined, `failed` if something
 * broke.
 */
export function describeCollect({ code, message, retryAfterSeconds, requestId, txSignature }) {
  if (code === "NOTHING_TO_COLLECT")
    return {
      kind: "refused",
      title: "Too little to collect",
      text: "It would not be worth a transaction. Come back after more trading.",
    };
  if (code === "RATE_LIMITED")
    return {
      kind: "refused",
      title: "Too many requests",
      text: "Wait for the countdown, then collect again.",
    };
  if (code === "INSUFFICIENT_FUNDS")
    return {
      kind: "refused",
      title: "Not now",
      text: "The service cannot pay for a transaction at the moment. Nothing was moved. Try again later.",
    };
  if (code === "UNREACHABLE") return { kind: "failed", title: "The connection broke", text: AGAIN };
  // The service's general message is for programs.
  const isGeneral = !message || message.includes("X-Request-Id");
  if (retryAfterSeconds !== undefined && !isGeneral && !txSignature)
    return { kind: "refused", title: "Not now", text: message };
  const report = requestId
    ? ` If it fails again, tell the operator the request: ${requestId}.`
    : "";
  const text = isGeneral ? `Try again in a minute.${report}` : message;
  return { kind: "failed", title: "The collect failed", text };
}

const NEVER = "Never pays this address";
const REASONS = {
  NO_SUCH_COIN: ["No such coin", "The launch platform has no coin with this mint. Check the mint."],
  HOLDER_REWARDS: [NEVER, "Its creator fees go to its holders."],
  SHARED: [NEVER, "Its creator fees go to other accounts, which share them."],
  OTHER_CREATOR: [NEVER, "It was launched with another address as its creator."],
  CASHBACK: [NEVER, "Its creator fees go back to its traders."],
  OTHER_CURRENCY: ["Not in SOL", "It trades in another currency. Only SOL can be collected here."],
  NOTHING_WAITING: ["Nothing waits yet", "Fees appear here as the coin trades."],
  RENT_TOO_HIGH: [
    "Too little yet",
    "Moving the fees would cost the service too much. Wait for more trading.",
  ],
  PAUSED: ["Paused", "The launch platform does not distribute its shared fees at the moment."],
  BELOW_SHARING_MINIMUM: [
    "Too little yet",
    "This share is too small, or another account's part would not pay the rent of its address, and the launch platform pays all or none. Wait for more trading.",
  ],
  SHAREHOLDER_BLOCKED: [
    "Blocked",
    "Another account that shares its fees is a program, or has no share, so the launch platform refuses to distribute them.",
  ],
  BELOW_AMM_MINIMUM: [
    "Too little yet",
    "The AMM moves no amount as small as this. Wait for more trading.",
  ],
};

/** Why a coin's fees are not collected: in a word, and in a sentence. */
export function describeCoin(reason) {
  const [title, text] = REASONS[reason] ?? ["Not collected", "A collect does not move these fees."];
  return { title, text };
}
