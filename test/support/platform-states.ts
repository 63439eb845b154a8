import { setRent } from "./chain-levers.ts";
import { createPrivateKey, sign } from "node:crypto";
import fc from "fast-check";
import { Keypair, PublicKey, type TransactionInstruction } from "@solana/web3.js";
import { expect } from "vitest";
import * as model from "./platform-model.ts";
import type { PlatformState } from "./platform-model.ts";
import { ALL_BPS } from "../../src/chain/launchpad/sharing-config.ts";
import { rentMinimumOf, type Rent } from "../../src/chain/primitives/rent.ts";
import { toTransaction } from "../../src/chain/units/message.ts";
import { decodeTransaction } from "../../src/sandbox/chain/wire-transaction.ts";
import { setSharingConfig } from "../../src/sandbox/chain/sharing.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import {
  AMM,
  ata,
  collectCreatorFee,
  creatorVaultOf,
  curveOf,
  distributeCreatorFees,
  poolOf,
  PUMP,
  sharingConfigOf,
  sweepCurve,
  sweepPool,
  SYSTEM_PROGRAM,
  TOKEN_PROGRAM,
  toInstruction,
  transferCreatorFeesToPump,
  vaultAuthorityOf,
  WSOL,
} from "./launchpad-instructions.ts";
import { compileWithConfig } from "./messages.ts";
import { newMint } from "./new-mint.ts";

/** A state, and what a transaction runs on it. */
interface PlatformCase {
  /** The creator of the coin: the receiver, or the sharing config. */
  readonly isShared: boolean;
  readonly steps: readonly Step[];
  readonly state: PlatformState;
}

const STEPS = {
  curve: model.sweepCurve,
  pool: model.sweepPool,
  transfer: model.transferCreatorFeesToPump,
  collect: model.collectCreatorFee,
  distribute: model.distributeCreatorFees,
};
type Step = keyof typeof STEPS;

/** Mainnet's rent, in lamports per byte, until September 2026. */
const OLD_RATE = 6_960;
const SOL = 1_000_000_000n;
/** How many shareholders a sharing config has at most. */
const MAX_SHAREHOLDERS = 10;
const CURVE_SIZES = [81, 83, 115, 125, 133, 140, 141, 142, 150, 151, 165, 166, 200];
const POOL_SIZES = [243, 244, 245, 261, 279, 286, 287, 288, 301, 320];

/** Amounts of every size, and often 0 or 1. */
const amounts = fc.oneof(
  fc.constantFrom(0n, 0n, 1n),
  fc.bigInt({ min: 0n, max: 10_000n }),
  fc.bigInt({ min: 0n, max: SOL / 100n }),
  fc.bigInt({ min: 0n, max: 100n * SOL }),
);

/** Often around `limit`, where behaviour changes. */
const around = (limit: bigint) =>
  fc.oneof(
    fc.constantFrom(0n, limit - 1n, limit, limit + 1n),
    amounts.map((amount) => limit + amount),
    fc.bigInt({ min: 0n, max: limit }),
  );

export function casesOf(rent: Rent) {
  const minimum = (bytes: number): bigint => rentMinimumOf(rent, bytes);
  const receivers = fc.oneof(fc.constant(0), fc.constant(0), fc.nat(300)).chain((bytes) =>
    around(minimum(bytes)).map((lamports) => ({
      bytes: lamports === 0n ? 0 : bytes,
      lamports,
    })),
  );

  const curves = fc
    .record({
      bytes: fc.constantFrom(...CURVE_SIZES),
      reserves: amounts,
      creatorFee: amounts,
      protocolFees: amounts,
      spare: fc.oneof(fc.constant(0n), fc.bigInt({ min: -2_000_000n, max: 2_000_000n })),
      isShort: fc.boolean(),
    })
    .map(({ spare, isShort, ...curve }) => {
      // What is stored at the end of a short curve is cut off.
      const stored = (end: number, amount: bigint) => (curve.bytes >= end ? amount : 0n);
      const creatorFee = stored(133, curve.creatorFee);
      const protocolFees = stored(141, curve.protocolFees);
      const full = minimum(curve.bytes) + curve.reserves + creatorFee + protocolFees;
      const lamports = isShort ? full + spare : full + (spare > 0n ? spare : 0n);
      return { ...curve, creatorFee, protocolFees, lamports: lamports > 1n ? lamports : 1n };
    });

  const pools = fc
    .record({
      bytes: fc.constantFrom(...POOL_SIZES),
      creatorFees: amounts,
      reserves: fc.oneof(fc.constant(2n * SOL), fc.constant(-1n)),
      virtualReserves: amounts,
      lamports: fc.oneof(fc.constant(undefined), around(minimum(POOL_SIZES[0]!))),
    })
    .map(({ bytes, creatorFees, reserves, virtualReserves, lamports = minimum(bytes) }) => {
      const fees = bytes >= 287 ? creatorFees : 0n;
      const wrappedSol = fees + reserves;
      return {
        bytes,
        creatorFees: fees,
        wrappedSol: wrappedSol > 0n ? wrappedSol : 0n,
        virtualReserves: bytes >= 261 ? virtualReserves : 0n,
        lamports: lamports > 1n ? lamports : 1n,
      };
    });

  const token = minimum(165);
  const ammVaults = fc.oneof(
    fc.constant({ ammVault: 0n, ammTokens: undefined }),
    around(token).map((ammVault) => ({ ammVault, ammTokens: undefined })),
    fc
      .tuple(amounts, fc.constantFrom(token, token, token - 1n, (165n + 128n) * BigInt(OLD_RATE)))
      .map(([ammTokens, reserve]) => ({ ammVault: reserve + ammTokens, ammTokens })),
  );

  const shareholders = fc
    .array(fc.tuple(fc.integer({ min: 1, max: 5_000 }), receivers), {
      minLength: 1,
      maxLength: MAX_SHAREHOLDERS,
    })
    .map((weighted) => {
      const total = weighted.reduce((sum, [weight]) => sum + weight, 0);
      const parts = weighted.map(([weight]) => Math.max(1, Math.floor((weight * ALL_BPS) / total)));
      const others = parts.slice(1).reduce((sum, part) => sum + part, 0);
      return weighted.map(([, receiver], i) => ({
        ...receiver,
        bps: i === 0 ? ALL_BPS - others : parts[i]!,
      }));
    });

  const states = fc
    .record({
      creatorVault: around(minimum(0)),
      ammVaults,
      ammVaultAuthority: fc.oneof(fc.constant(0n), around(minimum(0))),
      curve: curves,
      pool: pools,
      receiver: receivers,
      shareholders,
    })
    .map(({ ammVaults, ...state }): PlatformState => ({
      ...state,
      ...ammVaults,
      rent,
      paid: 0n,
      trace: 0,
    }));

  return fc.boolean().chain((isShared) => {
    const last: Step = isShared ? "distribute" : "collect";
    return fc.record({
      isShared: fc.constant(isShared),
      state: states,
      steps: fc.oneof(
        // As the service does.
        fc.subarray<Step>(["pool", "transfer", "curve"]).map((steps) => [...steps, last]),
        fc.array(fc.constantFrom<Step>("pool", "transfer", "curve", last), {
          minLength: 1,
          maxLength: 6,
        }),
      ),
    });
  });
}

/** Runs the model: the next state, or undefined if the transaction fails. */
function runModel({ steps, state }: PlatformCase): PlatformState | undefined {
  try {
    const after = steps.reduce((current, step) => STEPS[step](current), state);
    return model.endTransaction(state, after);
  } catch (error) {
    if (error instanceof model.PlatformFailure) return undefined;
    throw error;
  }
}

/** Runs cases on a sandbox's programs, all with the same addresses. */
function createBench({ chain, coins }: Pick<Sandbox, "chain" | "coins">) {
  const payer = Keypair.generate();
  const payerAddress = payer.publicKey.toBase58();
  const signingKey = createPrivateKey({
    key: Buffer.concat([
      Buffer.from("302e020100300506032b657004220420", "hex"),
      payer.secretKey.subarray(0, 32),
    ]),
    format: "der",
    type: "pkcs8",
  });
  const mint = newMint();
  const receiver = newMint();
  const shareholders = Array.from({ length: MAX_SHAREHOLDERS }, newMint);
  // A coin of each kind, from which every case takes its accounts.
  coins.launch({ mint, creator: receiver, shareholders: [] });
  coins.migrate(mint);
  const [curve, pool] = [curveOf(mint), poolOf(mint)];
  const poolTokens = ata(pool, WSOL);
  const templates = [curve, pool, poolTokens].map((address) =>
    Buffer.from(chain.account(address)!.data),
  ) as [Buffer, Buffer, Buffer];
  let sentCount = 0;

  const u64At = (address: string, offset: number) => {
    const data = Buffer.from(chain.account(address)!.data);
    return offset + 8 <= data.length ? data.readBigUInt64LE(offset) : 0n;
  };

  function addressesFor(isShared: boolean) {
    const creator = isShared ? sharingConfigOf(mint) : receiver;
    const ammVaultAuthority = vaultAuthorityOf(creator);
    return {
      creator,
      creatorVault: creatorVaultOf(creator),
      ammVaultAuthority,
      ammVault: ata(ammVaultAuthority, WSOL),
    };
  }
  const addresses = { own: addressesFor(false), shared: addressesFor(true) };
  /** Deriving the addresses takes longer than a case. */
  const instructions = new Map<string, TransactionInstruction>();

  function setWallet(address: string, { lamports, bytes }: { lamports: bigint; bytes: number }) {
    const owner = bytes === 0 ? SYSTEM_PROGRAM : TOKEN_PROGRAM;
    chain.setAccount(address, { lamports, owner, data: new Uint8Array(bytes) });
  }

  function setTokens(address: string, lamports: bigint, tokens: bigint, owner: string): void {
    const data = Buffer.from(templates[2]);
    data.set(new PublicKey(owner).toBytes(), 32);
    data.writeBigUInt64LE(tokens, 64);
    data.writeBigUInt64LE(lamports - tokens, 113);
    chain.setAccount(address, { lamports, owner: TOKEN_PROGRAM, data });
  }

  function setState({ isShared, state }: PlatformCase): void {
    const at = isShared ? addresses.shared : addresses.own;
    const creatorKey = new PublicKey(at.creator).toBytes();
    chain.setBalance(payerAddress, 1_000n * SOL);
    chain.setBalance(at.creatorVault, state.creatorVault);
    chain.setBalance(at.ammVaultAuthority, state.ammVaultAuthority);
    if (state.ammTokens === undefined) chain.setBalance(at.ammVault, state.ammVault);
    else setTokens(at.ammVault, state.ammVault, state.ammTokens, at.ammVaultAuthority);

    const curveData = Buffer.alloc(Math.max(166, state.curve.bytes));
    templates[0].copy(curveData);
    curveData.writeBigUInt64LE(state.curve.reserves, 32);
    curveData.set(creatorKey, 49);
    curveData.writeBigUInt64LE(state.curve.creatorFee, 125);
    curveData.writeBigUInt64LE(state.curve.protocolFees, 133);
    chain.setAccount(curve, {
      lamports: state.curve.lamports,
      owner: PUMP,
      data: curveData.subarray(0, state.curve.bytes),
    });

    const poolData = Buffer.alloc(Math.max(287, state.pool.bytes));
    templates[1].copy(poolData);
    poolData.set(creatorKey, 211);
    poolData.writeBigUInt64LE(state.pool.virtualReserves, 245);
    poolData.writeBigUInt64LE(state.pool.creatorFees, 279);
    chain.setAccount(pool, {
      lamports: state.pool.lamports,
      owner: AMM,
      data: poolData.subarray(0, state.pool.bytes),
    });
    const tokenRent = chain.rentExemptMinimum(165);
    setTokens(poolTokens, tokenRent + state.pool.wrappedSol, state.pool.wrappedSol, pool);

    if (isShared) {
      setSharingConfig(
        chain,
        mint,
        state.shareholders.map(({ bps }, i) => ({ address: shareholders[i]!, bps })),
      );
      for (const [i, shareholder] of state.shareholders.entries())
        setWallet(shareholders[i]!, shareholder);
    } else setWallet(receiver, state.receiver);
  }

  /** The state after the transaction. Lamports and sizes are the chain's. */
  function readState(
    { isShared, state }: PlatformCase,
    landed: { paid: bigint; trace: number },
  ): PlatformState {
    const at = isShared ? addresses.shared : addresses.own;
    const ammVault = chain.account(at.ammVault);
    const read = (address: string) => {
      const account = chain.account(address);
      return { lamports: account?.lamports ?? 0n, bytes: account?.data.length ?? 0 };
    };
    return {
      rent: state.rent,
      ...landed,
      creatorVault: chain.balance(at.creatorVault),
      ammVault: chain.balance(at.ammVault),
      ammTokens: ammVault?.owner === TOKEN_PROGRAM ? u64At(at.ammVault, 64) : undefined,
      ammVaultAuthority: chain.balance(at.ammVaultAuthority),
      curve: {
        ...read(curve),
        reserves: u64At(curve, 32),
        creatorFee: u64At(curve, 125),
        protocolFees: u64At(curve, 133),
      },
      pool: {
        ...read(pool),
        creatorFees: u64At(pool, 279),
        wrappedSol: u64At(poolTokens, 64),
        virtualReserves: u64At(pool, 245),
      },
      receiver: isShared ? state.receiver : read(receiver),
      shareholders: isShared
        ? state.shareholders.map(({ bps }, i) => ({ ...read(shareholders[i]!), bps }))
        : state.shareholders,
    };
  }

  function instructionOf(step: Step, { isShared, state }: PlatformCase) {
    const { creator } = isShared ? addresses.shared : addresses.own;
    const count = state.shareholders.length;
    const key = [step, isShared, count].join();
    const earlier = instructions.get(key);
    if (earlier) return earlier;
    const listed = {
      curve: () => sweepCurve(payerAddress, mint, creator),
      pool: () => sweepPool(payerAddress, mint, creator),
      transfer: () => transferCreatorFeesToPump(creator),
      collect: () => collectCreatorFee(creator),
      distribute: () => distributeCreatorFees(mint, shareholders.slice(0, count)),
    }[step]();
    const instruction = toInstruction(listed, listed.accounts);
    instructions.set(key, instruction);
    return instruction;
  }

  /** Runs a case: the next state, or undefined if the transaction failed. */
  return function run(given: PlatformCase): PlatformState | undefined {
    setState(given);
    if (sentCount % 100 === 0) chain.advanceSlots(1);
    const message = compileWithConfig(
      {
        blockhash: chain.latestBlockhash("processed").blockhash,
        // Differs, so that no two transactions are the same.
        computeUnitLimit: 1_300_000 + (sentCount++ % 100_000),
      },
      payer.publicKey,
      ...given.steps.map((step) => instructionOf(step, given)),
    );
    const signature = sign(null, message, signingKey);
    const wire = toTransaction(message, payerAddress, signature);
    const transaction = decodeTransaction(Buffer.from(wire, "base64"));
    chain.send(transaction);
    const landed = chain.landed(transaction.signature)!;
    if (landed.err !== null) return undefined;
    const paid = landed.preBalances[0]! - landed.postBalances[0]! - landed.feeLamports;
    const trace = landed.innerInstructions.reduce(
      (sum, { instructions }) => sum + instructions.length,
      landed.message.instructions.length,
    );
    return readState(given, { paid, trace });
  };
}

/** Holds the model against a sandbox's programs on random states, at a rent in lamports per byte. */
export function compareWithModel(
  sandbox: Pick<Sandbox, "chain" | "coins">,
  rate: number,
  count: number,
): void {
  const rent = rate;
  setRent(sandbox.chain, rate);
  const run = createBench(sandbox);
  let succeeded = 0;
  fc.assert(
    fc.property(casesOf(rent), (given) => {
      const result = run(given);
      if (result) succeeded++;
      expect(result).toEqual(runModel(given));
    }),
    { numRuns: count },
  );
  // About half of the random states succeed: a run in which few do would show little.
  expect(succeeded).toBeGreaterThan(count / 4);
}
