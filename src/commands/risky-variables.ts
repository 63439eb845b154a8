import { statSync } from "node:fs";

/** The permission of a file's mode that lets every user of the machine read it. */
const READABLE_BY_ALL = 0o004;

/** Warnings about variables that are valid but probably mistakes. No warning quotes a value. */
export function warnAboutRisks(env: Readonly<Record<string, string | undefined>>): string[] {
  const warnings: string[] = [];
  if (env.FEE_PAYER_KEYPAIR && isReadableByAll(env.FEE_PAYER_KEYPAIR))
    warnings.push(
      "FEE_PAYER_KEYPAIR: every user of this machine can read the key's file: run chmod 400, as the user that runs the service",
    );
  if (env.SANDBOX === "true" && env.NODE_ENV === "production")
    warnings.push("SANDBOX has no effect: with NODE_ENV=production no sandbox starts. Remove one of the two");
  return warnings;
}

/** Whether `path`, which may also be a key itself, is such a file. */
function isReadableByAll(path: string): boolean {
  try {
    return (statSync(path).mode & READABLE_BY_ALL) !== 0;
  } catch {
    return false;
  }
}
