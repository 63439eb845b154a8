import { readFileSync } from "node:fs";
import { getBase58Encoder } from "@solana/codecs-strings";
import { Keypair } from "@solana/web3.js";
import { codeOf } from "./observability/thrown.ts";

const EXPECTED =
  "expected the path of a keypair file, its JSON array of 64 bytes, or the secret key in base58";

const SECRET_KEY_BYTES = 64;

/**
 * Reads a keypair from `text`: a JSON array of 64 bytes, as `solana-keygen` writes it; the same
 * bytes in base58; or the path of a file that contains either. Errors never quote a key: they quote
 * `text` only if it looks like a path.
 */
export function readKeypair(text: string): Keypair {
  const secretKey =
    decodeKey(text) ?? decodeKey(readKeyFile(text)) ?? refuse("the file contains no such key");
  try {
    return Keypair.fromSecretKey(secretKey);
  } catch {
    return refuse("this key's public half does not match its secret half");
  }
}

function refuse(problem: string): never {
  throw new Error(`${EXPECTED}; ${problem}`);
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = codeOf(error) ?? "unknown";
    // Quote only a text with a dot and a slash, as most paths have: a key in base64 has no dot.
    const triedPath = path.includes(".") && path.includes("/") ? ` ${path}` : "";
    const hint = path.startsWith("~") ? "; ~ is not expanded, so write the whole path" : "";
    return refuse(
      `the value is not a key, and cannot be read as a file${triedPath} (${code})${hint}`,
    );
  }
}

/** Returns the 64 bytes of a JSON array or of base58; undefined for other text. */
function decodeKey(text: string): Uint8Array | undefined {
  const trimmed = text.trim();
  try {
    const bytes = trimmed.startsWith("[")
      ? (JSON.parse(trimmed) as number[])
      : getBase58Encoder().encode(trimmed);
    return bytes.length === SECRET_KEY_BYTES ? Uint8Array.from(bytes) : undefined;
  } catch {
    return undefined;
  }
}
