import { PublicKey } from "@solana/web3.js";
import { describeBalance } from "../chain/collect/collect-metrics.ts";
import { guardInstruction } from "../chain/launchpad/instructions.ts";
import { compileMessage, toTransaction } from "../chain/units/message.ts";
import { readPrograms, type Program } from "./deploys.ts";
import { LAUNCHPAD_PROGRAMS } from "../chain/launchpad/program-ids.ts";
import { toLamports, type Lamports } from "../chain/primitives/lamports.ts";
import { CLOCK_BYTES, CLOCK_SYSVAR, decodeClock } from "../chain/primitives/clock.ts";
import { FINALIZED } from "../chain/rpc/commitment.ts";
import type { Cluster } from "../chain/rpc/endpoints.ts";
import { MAX_ACCOUNTS_PER_CALL } from "../chain/rpc/read-accounts.ts";
import type { Rpc } from "../chain/rpc/rpc-client.ts";
import { isBehind, isRefusal, type RpcError } from "../chain/rpc/rpc-error.ts";
import type { Config } from "../config.ts";
import { connectionCodeOf, remedyOf } from "../observability/connection-error.ts";
import { toError } from "../observability/thrown.ts";
import { withDeadline } from "../upstream/deadline.ts";
import { bad, good, poor, type Finding } from "./finding.ts";

const MAINNET = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";
/** Public clusters by genesis hash. Source: https://docs.anza.xyz/clusters/available */
const CLUSTERS: ReadonlyMap<string | undefined, string> = new Map([
  [MAINNET, "mainnet-beta"],
  ["EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG", "devnet"],
  ["4uhcVJyU9pJkvQyS88uRDiswHScSpkwe8Z8zEfGUVQTd", "testnet"],
]);

const REFUSES = "refuses transactions of version 1, which collects send: change the provider";

/** Reads as many accounts as the service does in one call. Some providers' plans allow fewer. */
const LARGEST_CALL = [
  [
    CLOCK_SYSVAR,
    ...Array.from({ length: MAX_ACCOUNTS_PER_CALL - 1 }, (_, i) => new PublicKey(i + 1).toBase58()),
  ],
  { ...FINALIZED, encoding: "base64", dataSlice: { offset: 0, length: CLOCK_BYTES } },
];
/** An endpoint's clock is usually some seconds behind. */
const STOPPED_MS = 60_000;

export function nameOfCluster(genesisHash: string | undefined): string {
  return CLUSTERS.get(genesisHash) ?? (genesisHash ? "a private cluster" : "an unknown cluster");
}

/**
 * Checks each endpoint, the programs, and the fee payer's balance. Reports each as it is known.
 * Returns the programs, if they can be read.
 */
export async function checkChain(needs: {
  config: Config;
  rpc: Rpc;
  report: (finding: Finding) => void;
  setFeePayerBalance?: (lamports: Lamports) => void;
}): Promise<readonly Program[]> {
  const { config, rpc, report, setFeePayerBalance } = needs;
  const programs = { escrow: config.escrowProgramId, ...LAUNCHPAD_PROGRAMS };
  const feePayer = config.secrets.feePayerKeypair.publicKey.toBase58();
  const [endpoints, accounts] = await Promise.all([
    rpc.readClusters(),
    Promise.all([readPrograms(rpc, programs), rpc.getAccounts([feePayer])]).catch(toError),
  ]);
  const genesisHash = rpc.genesisHash();
  const cluster = nameOfCluster(genesisHash);

  async function checkEndpoint({ endpoint, genesisHash: hash, error }: Cluster): Promise<Finding> {
    const { host } = endpoint;
    if (error) {
      const reason =
        error.failure === "timeout" ? `RPC_TIMEOUT_MS=${config.rpcTimeoutMs}` : reasonOf(error);
      const fix = fixFor(error, new URL(endpoint.url));
      return bad("SOLANA_RPC_URL", `${host} does not answer (${reason}): ${fix}`);
    }
    const text = `${host} is on ${nameOfCluster(hash)}`;
    if (hash !== genesisHash)
      return bad(
        "SOLANA_RPC_URL",
        `${text}, the others on ${cluster}: use endpoints of one cluster`,
      );
    if (config.nodeEnv === "production" && hash !== MAINNET && CLUSTERS.has(hash))
      return poor("SOLANA_RPC_URL", `${text}, in production: use mainnet-beta, where the fees are`);
    const [simulation, read] = await Promise.all([
      rpc.simulateAtEndpoint(endpoint, transferNothing(feePayer)).catch(toError),
      withDeadline(config.rpcTimeoutMs, (deadline) =>
        rpc.callEndpoint(endpoint, "getMultipleAccounts", LARGEST_CALL, deadline),
      ).catch((cause: unknown) => cause as RpcError),
    ]);
    const calls = `calls for ${MAX_ACCOUNTS_PER_CALL} accounts`;
    if (read instanceof Error && !isBehind(read)) {
      const problem = `it does not answer ${calls} (${reasonOf(read)})`;
      return bad("SOLANA_RPC_URL", `${text}; ${problem}: choose a plan without this limit`);
    }
    if (isRefusal(simulation)) return bad("SOLANA_RPC_URL", `${text}; it ${REFUSES}`);
    if (simulation instanceof Error && !isBehind(simulation))
      return poor("SOLANA_RPC_URL", `${text}; it does not simulate transactions: collects need it`);
    const all = `${text}; it takes transactions of version 1, and answers ${calls}`;
    const time = read instanceof Error ? undefined : decodeClock(read.value[0]?.data);
    if (time === undefined || Date.now() - time > STOPPED_MS)
      return poor("SOLANA_RPC_URL", `${all}, but it is behind, or a clock is wrong`);
    return good("SOLANA_RPC_URL", all);
  }

  function checkProgram({ name, id, isDeployed, deploySlot }: Program): Finding {
    // The operator chooses the escrow program, but for the launch platform's only the cluster.
    const isEscrow = id === config.escrowProgramId;
    const variable = isEscrow ? "ESCROW_PROGRAM_ID" : "SOLANA_RPC_URL";
    if (isDeployed) {
      const end = deploySlot === undefined ? "" : `, last in slot ${deploySlot}`;
      const title = isEscrow ? "escrow program" : `launch platform's program ${name}`;
      return good(variable, `the ${title} ${id} is deployed${end}`);
    }
    const problem = isEscrow
      ? ": check the id, and the cluster of SOLANA_RPC_URL"
      : ", so the launch platform is not there: use another cluster";
    // On a private cluster the program may be deployed later. The preferred endpoint may be on
    // another cluster, and return.
    const isFatal = CLUSTERS.has(genesisHash) && !endpoints[0]?.error;
    return bad(variable, `there is no program ${id} on ${cluster}${problem}`, { isFatal });
  }

  function checkFeePayer(lamports: Lamports): Finding {
    setFeePayerBalance?.(lamports);
    const { collects, isEnough, text } = describeBalance(feePayer, lamports, config);
    if (!isEnough) {
      const state = collects > 0n ? poor : bad;
      return state("FEE_PAYER_KEYPAIR", `${text}: send SOL to it`, { isReported: true });
    }
    return good("FEE_PAYER_KEYPAIR", text);
  }

  if (accounts instanceof Error) {
    const text = `no accounts can be read (${accounts.message}), so lookups and collects fail`;
    report(bad("SOLANA_RPC_URL", text));
  } else {
    const [foundPrograms, [payer]] = accounts;
    foundPrograms.map(checkProgram).forEach(report);
    report(checkFeePayer(payer?.lamports ?? toLamports(0)));
  }
  await Promise.all(endpoints.map((each) => checkEndpoint(each).then(report)));
  return accounts instanceof Error ? [] : accounts[0];
}

/** A transaction of the version that collects send. */
function transferNothing(feePayer: string): string {
  const blockhash = PublicKey.default.toBase58();
  const budget = { unitLimit: 1_000, priorityFee: 0n };
  const message = compileMessage(feePayer, [guardInstruction(feePayer, 0n)], budget, blockhash);
  return toTransaction(message, feePayer);
}

function reasonOf({ failure, code, words, cause }: RpcError): string {
  if (failure === "unreachable") return connectionCodeOf(cause) ?? failure;
  return [failure, code, words].filter(Boolean).join(" ");
}

function fixFor({ failure, code, cause }: RpcError, url: URL): string {
  const remedy = remedyOf(connectionCodeOf(cause) ?? "", url);
  if (remedy !== undefined) return remedy;
  if (code === 401 || code === 403) return "check the key in the URL";
  if (code === 429) return "its limit is used up, so choose a larger plan";
  if (failure === "error") return "use one that supports getGenesisHash";
  return "check the URL, and that this machine can connect to it";
}
