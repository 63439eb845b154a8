import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { PublicKey } from "@solana/web3.js";
import { expect } from "vitest";
import type { World } from "./world.ts";

const DOCUMENT = new URL("../../docs/check-an-address.md", import.meta.url);

/** How docs/check-an-address.md checks an address: a function `check(wallet, knownId)`. */
export interface AddressCheck {
  /** Installs its package. */
  readonly install: string;
  readonly language: "js" | "py";
  readonly code: string;
}

/** For each pair of a wallet and an id: "accepted", or the message of the error. */
const RUN_ALL = {
  js: `
const results = [];
for (const pair of JSON.parse(process.argv[2]))
  try {
    await check(...pair);
    results.push("accepted");
  } catch (error) {
    results.push(error.message);
  }
console.log(JSON.stringify(results));
`,
  py: `
import json, sys
results = []
for pair in json.loads(sys.argv[1]):
    try:
        check(*pair)
        results.append("accepted")
    except ValueError as error:
        results.append(str(error))
print(json.dumps(results))
`,
};

export function addressChecks(): AddressCheck[] {
  const text = readFileSync(DOCUMENT, "utf8");
  const checks = [...text.matchAll(/^With .+ \(`(.+)`\):\n\n```(js|py)\n([^]+?)^```/gm)].map(
    ([, install, language, code]) => ({
      install: install!,
      language: language as "js" | "py",
      code: code!,
    }),
  );
  expect(checks).toHaveLength(3);
  return checks;
}

/**
 * Expects that a check accepts a service's lookups, and rejects wrong ones. `command` runs a file
 * in `folder`, where the check's package is installed.
 */
export async function expectToCheck(
  { language, code }: AddressCheck,
  { world, folder, command }: { world: World; folder: string; command: string },
): Promise<void> {
  const file = join(folder, `check.${language === "js" ? "mjs" : language}`);
  writeFileSync(file, code + RUN_ALL[language]);
  const check = async (...pairs: [wallet: object, knownId: string][]) => {
    const { stdout } = await promisify(execFile)(command, [file, JSON.stringify(pairs)]);
    return JSON.parse(stdout) as string[];
  };

  const [own, other] = ["creator", "launcher"].map((handle) => world.account(handle));
  const wallet = (await world.lookup("creator")).body;
  const otherWallet = (await world.lookup("launcher")).body;
  // A service that lies throughout: the derivation fits the address.
  const program = PublicKey.unique();
  const seeds = [Buffer.from("social"), Buffer.from(own!.id)];
  const [address, bump] = PublicKey.findProgramAddressSync(seeds, program);
  const derivation = { ...wallet.derivation, program: program.toBase58(), bump };
  const wrongAddresses = [
    { ...wallet, address: other!.address },
    { ...wallet, address: address.toBase58(), derivation },
  ];
  const wrongIds = [otherWallet, { ...wallet, socialId: other!.id }];
  expect(
    await check(
      [wallet, own!.id],
      [otherWallet, other!.id],
      ...wrongAddresses.map((wrong): [object, string] => [wrong, own!.id]),
      ...wrongIds.map((wrong): [object, string] => [wrong, own!.id]),
    ),
  ).toEqual([
    ...Array<string>(2).fill("accepted"),
    ...Array<string>(2).fill("the address is wrong"),
    ...Array<string>(2).fill("this is another account"),
  ]);
}
